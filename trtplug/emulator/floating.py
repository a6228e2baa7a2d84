"""Floating-point instructions of every width, scalar and packed.

fp16 and bf16 are computed in fp32 and rounded once: for add, multiply and divide that is exact.
A fused multiply-add is computed in fp64, whose product of two fp32 is exact. Approximate functions
(`ex2.approx` and its like) are computed to full precision: their error on hardware is not modelled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from trtplug.emulator.integer import simple
from trtplug.emulator.layout import Builder, Layout, kinds, one_type, unsupported
from trtplug.emulator.values import (
    F16,
    F32,
    F64,
    SCALARS,
    U32,
    Array,
    bf16_to_f32,
    f32_to_bf16,
    split,
)

if TYPE_CHECKING:
    from trtplug.emulator.machine import Step
    from trtplug.emulator.ptx import Instruction

FLOAT_TYPES = {"f16", "bf16", "f32", "f64", "f16x2", "bf16x2"}
ROUNDINGS = {"rn", "rz", "rm", "rp"}
_FLAGS = ROUNDINGS | {"ftz", "sat", "approx", "full", "relu", "NaN"}
_TINY = float(np.finfo(np.float32).tiny)

Numbers = Callable[[Array], Array]


def decoder(name: str) -> Numbers:
    """From the bits of a register to numbers to compute with; packed types get a last axis of 2."""
    table: dict[str, Numbers] = {
        "f32": lambda x: x,
        "f64": lambda x: x,
        "f16": lambda x: x.astype(F32),
        "f16x2": lambda x: split(x, 2).view(F16).astype(F32),
        "bf16": bf16_to_f32,
        "bf16x2": lambda x: bf16_to_f32(split(x, 2)),
    }
    return table[name]


def _packed(x: Array) -> Array:
    return np.ascontiguousarray(x).view(U32)[..., 0]


def encoder(name: str) -> Numbers:
    """From numbers back to the bits of a register."""
    table: dict[str, Numbers] = {
        "f32": lambda x: x.astype(F32, copy=False),
        "f64": lambda x: x,
        "f16": lambda x: x.astype(F16),
        "f16x2": lambda x: _packed(x.astype(F16)),
        "bf16": lambda x: f32_to_bf16(x.astype(F32, copy=False)),
        "bf16x2": lambda x: _packed(f32_to_bf16(x.astype(F32, copy=False))),
    }
    return table[name]


def rounded(exact: Array, mode: str) -> Array:
    """fp64 to fp32 in one of PTX's rounding modes."""
    near = exact.astype(F32)
    if mode == "rn":
        return near
    back = near.astype(F64)
    if mode == "rz":
        past, towards = np.abs(back) > np.abs(exact), F32.type(0)
    elif mode == "rm":
        past, towards = back > exact, F32.type(-np.inf)
    else:
        past, towards = back < exact, F32.type(np.inf)
    return np.where(past, np.nextafter(near, towards), near)


def finish(flags: set[str]) -> Numbers | None:
    """What flags do to a result before it is stored; None: nothing."""
    steps: list[Numbers] = []
    if "ftz" in flags:
        steps.append(lambda x: np.where(np.abs(x) < _TINY, np.copysign(x.dtype.type(0), x), x))
    if "sat" in flags:
        steps.append(lambda x: np.where(np.isnan(x), 0, np.clip(x, 0, 1)).astype(x.dtype))
    if "relu" in flags:
        steps.append(lambda x: np.where(np.isnan(x), x, np.maximum(x, 0)))
    if not steps:
        return None

    def all_of(x: Array) -> Array:
        for step in steps:
            x = step(x)
        return x

    return all_of


def _build(ins: Instruction, lay: Layout, function: Callable[..., Array], count: int) -> Step:
    """A step over `count` operands of the instruction's one type."""
    flags, name, dtype = one_type(ins, _FLAGS)
    if name not in FLOAT_TYPES:
        raise unsupported(ins)
    return simple(ins, lay, _with_flags(function, flags, name), *(dtype,) * count)


def _with_flags(function: Callable[..., Array], flags: set[str], name: str) -> Callable[..., Array]:
    """`function` over bits of the type `name`, its result rounded and finished as flags say."""
    decode, encode, after = decoder(name), encoder(name), finish(flags)
    mode = next(iter(flags & ROUNDINGS - {"rn"}), None)
    if mode is not None and name == "f32":

        def directed(*xs: Array) -> Array:
            out = rounded(function(*[x.astype(F64) for x in xs]), mode)
            return out if after is None else after(out)

        return directed
    if name == "f32" and after is None:
        return function

    def general(*xs: Array) -> Array:
        out = function(*[decode(x) for x in xs])
        return encode(out if after is None else after(out))

    return general


def fused(a: Array, b: Array, c: Array) -> Array:
    """A * b + c with one rounding to fp32; the product of fp32 is exact in fp64."""
    exact = np.multiply(a, b, dtype=F64)
    return np.asarray(exact + c).astype(F32) if c.dtype is F32 else np.asarray(exact + c)


def fma(ins: Instruction, lay: Layout) -> Step:
    """`fma`; of fp16 and bf16 in fp32, where the product is exact."""
    _, name, _ = one_type(ins, _FLAGS)
    exact = fused if name in ("f32", "f64") else lambda a, b, c: a * b + c
    return _build(ins, lay, exact, 3)


_ONE: dict[str, Numbers] = {
    "neg": np.negative, "abs": np.abs, "sqrt": np.sqrt,
    "rsqrt": lambda x: np.reciprocal(np.sqrt(x)), "rcp": np.reciprocal,
    "ex2": np.exp2, "lg2": np.log2, "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
}  # fmt: skip
_TWO: dict[str, Callable[..., Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "min": np.fmin, "max": np.fmax,
}  # fmt: skip


def one(ins: Instruction, lay: Layout) -> Step:
    """Functions of one operand."""
    return _build(ins, lay, _ONE[ins.op], 1)


def two(ins: Instruction, lay: Layout) -> Step:
    """Functions of two operands; `min.NaN` and `max.NaN` hand NaN on."""
    function = _TWO[ins.op]
    if "NaN" in ins.parts:
        function = np.minimum if ins.op == "min" else np.maximum
    return _build(ins, lay, function, 2)


def copysign(ins: Instruction, lay: Layout) -> Step:
    """`copysign d, a, b`: the sign of a, the size of b."""
    return _build(ins, lay, lambda a, b: np.copysign(b, a), 2)


def is_float(ins: Instruction) -> bool:
    """Whether the opcode names a floating-point type."""
    return any(p in FLOAT_TYPES for p in ins.parts)


# Conversions.

_TO_INTEGER = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def convert(ins: Instruction, lay: Layout) -> Step:
    """`cvt` between any two types, and of two fp32 into one packed register."""
    if "tf32" in ins.parts:
        raise unsupported(ins)
    flags, types = kinds(ins, {*ROUNDINGS, *_TO_INTEGER, "ftz", "sat", "relu"})
    if len(types) != 2:
        raise unsupported(ins)
    to, of = types
    if to.endswith("x2"):
        encode, after = encoder(to), finish(flags)

        def pack(a: Array, b: Array) -> Array:
            both = np.stack(np.broadcast_arrays(b, a), axis=-1)
            return encode(both if after is None else after(both))

        return simple(ins, lay, pack, F32, F32)
    width = lay.width(getattr(ins.operands[0], "text", ""))
    return simple(ins, lay, _conversion(ins, flags, to, of, width), SCALARS[of])


def _conversion(ins: Instruction, flags: set[str], to: str, of: str, width: int) -> Numbers:
    if of in FLOAT_TYPES:
        if to in FLOAT_TYPES:
            return _float_to_float(flags, to, of)
        return _float_to_integer(ins, flags, to, of, width)
    target = SCALARS[to]
    if to in FLOAT_TYPES:
        encode = encoder(to)
        mode = next(iter(flags & ROUNDINGS), "rn")
        if to == "f64":
            return lambda x: x.astype(F64)
        if to == "f32" and mode != "rn":
            return lambda x: rounded(x.astype(F64), mode)
        return lambda x: encode(x.astype(F32))
    if "sat" in flags:
        low, high = np.iinfo(target).min, np.iinfo(target).max
        return lambda x: _into(np.clip(x.astype(np.int64), low, high).astype(target), width)
    return lambda x: _into(x.astype(target), width)


def _into(x: Array, width: int) -> Array:
    """An integer in a register of `width` bytes."""
    return x if x.itemsize == width else x.astype(f"{x.dtype.kind}{width}")


def _float_to_float(flags: set[str], to: str, of: str) -> Numbers:
    decode, encode, after = decoder(of), encoder(to), finish(flags)
    whole = next((_TO_INTEGER[f] for f in flags if f in _TO_INTEGER), None)
    mode = next(iter(flags & ROUNDINGS - {"rn"}), None)

    def function(x: Array) -> Array:
        y = decode(x)
        if whole is not None:
            y = whole(y)
        if mode is not None and to == "f32":
            y = rounded(y.astype(F64), mode)
        y = y.astype(F64 if to == "f64" else F32) if y.dtype != F64 or to != "f16" else y
        return encode(y if after is None else after(y))

    return function


def _float_to_integer(ins: Instruction, flags: set[str], to: str, of: str, width: int) -> Numbers:
    whole = next((_TO_INTEGER[f] for f in flags if f in _TO_INTEGER), None)
    if whole is None:
        raise unsupported(ins)
    decode, target = decoder(of), SCALARS[to]
    info = np.iinfo(target)

    def function(x: Array) -> Array:
        y = whole(decode(x).astype(F64))
        # The largest int64 is no fp64: what reaches it is set apart.
        safe = np.where((y > info.min) & (y < info.max), y, 0).astype(target)
        clipped = np.where(y >= info.max, target.type(info.max), safe)
        return _into(np.where(y <= info.min, target.type(info.min), clipped), width)

    return function


BUILDERS: dict[str, Builder] = {
    **dict.fromkeys(_ONE, one),
    **dict.fromkeys(_TWO, two),
    "fma": fma,
    "mad": fma,
    "copysign": copysign,
}
"""For opcodes whose type is floating-point; integer ones of the same name are elsewhere."""
