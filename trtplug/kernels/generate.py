"""The CUDA source of a tactic for a problem: constants, one kernel, and the includes it needs.

A kernel's arguments are pointers to x, packed weights, packed bias and, where there is one, the
residual; then an int32 for each axis that is not fixed (batch, height, width); then y.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from trtplug.kernels.problem import DYNAMIC_AXES, Problem
from trtplug.kernels.source import MIN_BLOCKS, KernelSource, assemble
from trtplug.kernels.tactic import FIRST_ASYNC_SM, Depthwise, Direct, Gemm, Stem, Tactic, Tile
from trtplug.kernels.usage import LIMITS
from trtplug.tensor import FLOATS

if TYPE_CHECKING:
    from trtplug.kernels.source import Headers
    from trtplug.target import Sm


ELEMENTS = {element.name: element.cuda for element in FLOATS}
"""Types of the op -> those of plugins/common/dtype.cuh."""

_SCALAR_BLOCKS = 4
"""Without this figure ptxas has been seen to spill at 40 registers, for blocks beyond need."""

KERNEL = "trtplug_cbr"
"""Name of every kernel: engines hold one a plugin, and the tactic has a name already."""


def generate(
    tactic: Tactic, problem: Problem, sm: Sm, headers: Headers | None = None
) -> KernelSource:
    """The source of one kernel; `tactic` must be legal for the problem on the SM.

    Args:
        tactic: what is made.
        problem: for what.
        sm: and for which SM.
        headers: those of `plugins/`, read once for many kernels.
    """
    limits = blocks_to_try(tactic, problem, sm)
    text = "\n".join(
        (
            f"// {tactic.name}",
            *(f'#include "cbr/{name}.cuh"' for name in _includes(tactic)),
            "",
            site_struct(problem, "Site", x_dtype(tactic, problem)),
            "",
            _kernel(tactic, problem, sm),
            "",
        )
    )
    return assemble(KERNEL, text, headers, limits)


def threads_of(tactic: Tactic) -> int:
    """Threads of a block."""
    match tactic:
        case Gemm() | Stem():
            return tactic.tile.threads
        case Depthwise() | Direct():
            return tactic.threads


def bundle_of(tactic: Direct, problem: Problem) -> int:
    """Outputs that a thread of a direct kernel makes, all of one group: a power of 2."""
    most = 4 if tactic.layout == "LINEAR" else 8
    if problem.attributes.group == 1:
        return most
    return next(n for n in (8, 4, 2, 1) if n <= most and problem.group_outputs % n == 0)


def extents(problem: Problem) -> str:
    """Batch, height and width: each a number, or the name of the argument."""
    sizes = dict(zip(DYNAMIC_AXES, (problem.x.opt[p] for p in (0, 2, 3)), strict=True))
    return ", ".join(n if n in problem.dynamic else str(sizes[n]) for n in DYNAMIC_AXES)


def _includes(tactic: Tactic) -> tuple[str, ...]:
    match tactic:
        case Gemm():
            return ("igemm", "vector_loader")
        case Stem():
            return ("igemm", "linear_loader")
        case Depthwise():
            return ("depthwise",)
        case Direct():
            return ("direct",)


def site_struct(problem: Problem, name: str, input_dtype: str) -> str:
    """What is fixed, as a `struct`; see plugins/cbr/geometry.cuh."""
    a = problem.attributes
    constants = {
        "kChannels": problem.channels,
        "kOutputs": problem.outputs,
        "kGroups": a.group,
        "kKernelH": a.kernel_shape[0],
        "kKernelW": a.kernel_shape[1],
        "kStrideH": a.strides[0],
        "kStrideW": a.strides[1],
        "kPadTop": a.pads[0],
        "kPadLeft": a.pads[1],
        "kPadBottom": a.pads[2],
        "kPadRight": a.pads[3],
        "kDilationH": a.dilations[0],
        "kDilationW": a.dilations[1],
    }
    activation, residual = _enumerator(a.activation), _enumerator(a.residual)
    values = ", ".join(_float(v) for v in (a.alpha, a.beta, a.min, a.max))
    return "\n".join(
        (
            f"struct {name} {{",
            f"  using Element = {ELEMENTS[problem.dtype]};",
            f"  using Input = {ELEMENTS[input_dtype]};",
            *(f"  static constexpr int {key} = {value};" for key, value in constants.items()),
            "  static constexpr trtplug::Activation kActivation = "
            f"trtplug::Activation::{activation};",
            f"  static constexpr trtplug::Residual kResidual = trtplug::Residual::{residual};",
            "  static __device__ __forceinline__ trtplug::ActivationValues values() {",
            f"    return {{{values}}};",
            "  }",
            "};",
        )
    )


def x_dtype(tactic: Tactic, problem: Problem) -> str:
    """Type of the input: the op's own, but for stems that take FP32."""
    return (tactic.x_dtype if isinstance(tactic, Stem) else None) or problem.dtype


def _enumerator(name: str) -> str:
    return "k" + "".join(part.capitalize() for part in name.split("_"))


def _float(value: float) -> str:
    """The nearest FP32, by its bits: exact, and good for infinities."""
    bits = struct.unpack("<I", struct.pack("<f", _clamped(value)))[0]
    return f"__uint_as_float(0x{bits:08x}u)"


def _clamped(value: float) -> float:
    largest = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]
    finite = value == value and abs(value) != float("inf")
    return max(-largest, min(largest, value)) if finite else value


def _kernel(tactic: Tactic, problem: Problem, sm: Sm) -> str:
    element = ELEMENTS[problem.dtype]
    residual = f"const {element}* residual, " if problem.has_residual else ""
    numbers = "".join(f"int {name}, " for name in problem.dynamic)
    body = "" if problem.has_residual else f"  const {element}* residual = nullptr;\n"
    return (
        f'extern "C" __global__ void __launch_bounds__({threads_of(tactic)}, {MIN_BLOCKS}) '
        f"{KERNEL}(\n"
        f"    const Site::Input* x, const {element}* weights, const float* bias, {residual}"
        f"{numbers}{element}* y) {{\n"
        f"{body}"
        f"  const trtplug::Extents at = trtplug::extents_of<Site>({extents(problem)});\n"
        f"  {_call(tactic, problem, sm)}\n"
        "}"
    )


def limits_to_try(meant: int, threads: int, sm: Sm) -> tuple[int, ...]:
    """Blocks that an SM is to hold: the number that is meant, and others should it lead to spills.

    Higher ones come first, as they leave room for as many blocks.
    """
    most = LIMITS[sm.number].threads // threads
    tries = (meant, meant + 1, meant + 2, meant + 3, meant - 1, meant - 2)
    return tuple(n for n in tries if 1 <= n <= most)


def blocks_to_try(tactic: Tactic, problem: Problem, sm: Sm) -> tuple[int, ...]:
    """Blocks that an SM is to hold, as the kernel is to be compiled; the first is what is meant."""
    return limits_to_try(_meant_blocks(tactic, problem, sm), threads_of(tactic), sm)


def _meant_blocks(tactic: Tactic, problem: Problem, sm: Sm) -> int:
    match tactic:
        case Gemm() | Stem():
            if sm.number >= FIRST_ASYNC_SM:
                return max(1, tactic.blocks - _extra_registers(tactic, problem))
            # Operands on their way take registers here; no more blocks than shared memory allows.
            tile = tactic.tile_for(sm.number) if isinstance(tactic, Gemm) else tactic.tile
            return min(tactic.blocks, LIMITS[sm.number].shared_bytes // tile.shared_bytes)
        case Depthwise() | Direct():
            return _SCALAR_BLOCKS


def _extra_registers(tactic: Gemm | Stem, problem: Problem) -> int:
    """Blocks fewer that are to fit, since a thread has more to keep than usual and would spill.

    Masks of taps beyond 32 bits take two registers a row; where a step in depth leaves the channels
    of a tap, each thread keeps its own place.
    """
    if isinstance(tactic, Stem):
        return 0
    if problem.taps + tactic.tile.depth // 8 > 32:
        return 2
    return int(problem.group_channels % tactic.tile.depth != 0)


def _call(tactic: Tactic, problem: Problem, sm: Sm) -> str:
    match tactic:
        case Gemm():
            tile = tile_type(tactic.tile_for(sm.number))
            way = "Asynchronous" if sm.number >= FIRST_ASYNC_SM else "Staged"
            return _gemm(tile, "VectorLoader", way)
        case Stem():
            return _gemm(tile_type(tactic.tile), "LinearLoader", "Staged")
        case Depthwise():
            return (
                f"trtplug::Depthwise<Site, {tactic.across}>::run("
                "x, weights, bias, residual, y, at);"
            )
        case Direct():
            kind = (
                f"trtplug::Direct<Site, {bundle_of(tactic, problem)}, "
                f"{'true' if tactic.layout == 'LINEAR' else 'false'}>"
            )
            return (
                f"using Kernel = {kind};\n"
                "  Kernel::run(x, reinterpret_cast<const Kernel::Weights*>(weights), bias, "
                "residual, y, at);"
            )


def _gemm(tile: str, loader: str, way: str) -> str:
    return (
        f"trtplug::implicit_gemm<Site, {tile}, trtplug::{loader}, trtplug::{way}>(\n"
        "      x, weights, bias, residual, y, at);"
    )


def tile_type(tile: Tile) -> str:
    """The tile as a type of plugins/cbr/igemm.cuh."""
    sizes = (
        tile.rows,
        tile.columns,
        tile.depth,
        tile.warp_rows,
        tile.warp_columns,
        tile.stages,
    )
    return f"trtplug::Tile<{', '.join(map(str, sizes))}>"
