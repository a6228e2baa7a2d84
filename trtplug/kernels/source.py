"""One kernel's source: generated text and the files of `plugins/` that it includes.

Its digest covers all of it, so that a kernel is compiled again exactly when a line of it changed.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.settings import resource_folder
from trtplug.store import key_of
from trtplug.tensor import FLOATS

if TYPE_CHECKING:
    from trtplug.kernels.problem import KernelProblem

ELEMENTS = {element.name: element.cuda for element in FLOATS}
"""Types of the op -> those of plugins/common/dtype.cuh."""

_LARGEST = (2 - 2**-23) * 2.0**127
"""The largest finite FP32."""

MIN_BLOCKS = "TRTPLUG_MIN_BLOCKS"
"""Macro: the blocks that an SM is to hold at a time."""

_INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSource:
    """CUDA C++ with one `extern "C"` kernel."""

    name: str
    """The kernel's name."""
    text: str
    headers: tuple[tuple[str, str], ...]
    """Name as included -> text, in order of names; only those that the text reaches."""
    min_blocks: tuple[int, ...] = ()
    """Values of the macro `MIN_BLOCKS`, to be tried in order until a kernel spills nothing.

    A kernel gives it to `__launch_bounds__`, and ptxas fills all the registers that it leaves. Now
    and then it overfills them by a few, and at any other limit, even a lower one, it does not.
    """

    digest: str = field(init=False)
    """SHA-256 over everything."""

    def __post_init__(self) -> None:
        """Takes the digest once: it is asked for often, and the headers are long."""
        names = ("name", "text", "min_blocks")
        everything = {name: getattr(self, name) for name in names}
        everything["headers"] = dict(self.headers)
        object.__setattr__(self, "digest", key_of(everything))


@dataclass(frozen=True, slots=True, kw_only=True)
class Headers:
    """The files that sources include, each read once in the life of this value."""

    folders: tuple[Path, ...]
    """Where they are looked for, in order."""
    _read: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    """Name -> text, and the names that it includes itself."""

    def reached_from(self, text: str) -> tuple[tuple[str, str], ...]:
        """Name -> text of all that a source includes, by and by, in order of names.

        Raises:
            FileNotFoundError: an include that is not there.
        """
        found: dict[str, str] = {}
        todo = list(_INCLUDE.findall(text))
        while todo:
            header = todo.pop()
            if header not in found:
                found[header], names = self._header(header)
                todo += names
        return tuple(sorted(found.items()))

    def _header(self, name: str) -> tuple[str, tuple[str, ...]]:
        if name not in self._read:
            file = next((f for p in self.folders if (f := p / name).is_file()), None)
            text = (file or self.folders[0] / name).read_text(encoding="utf-8")
            self._read[name] = text, tuple(_INCLUDE.findall(text))
        return self._read[name]


def plugin_headers(*more: Path) -> Headers:
    """Those of `plugins/`, and of more folders."""
    return Headers(folders=(resource_folder("plugins"), *more))


def assemble(
    name: str,
    text: str,
    headers: Headers | None = None,
    min_blocks: tuple[int, ...] = (),
) -> KernelSource:
    """A source with all that it includes; of the files in `plugins/` by default.

    Raises:
        FileNotFoundError: an include that is not there.
    """
    reached = (headers or plugin_headers()).reached_from(text)
    return KernelSource(name=name, text=text, headers=reached, min_blocks=min_blocks)


def site_struct(problem: KernelProblem, name: str) -> str:
    """What is fixed of a convolution, as a `struct`; see plugins/cbr/geometry.cuh."""
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
    element = ELEMENTS[problem.dtype]
    return "\n".join(
        (
            f"struct {name} {{",
            f"  using Element = {element};",
            f"  using Input = {element};",
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


def _enumerator(name: str) -> str:
    return "k" + "".join(part.capitalize() for part in name.split("_"))


def _float(value: float) -> str:
    """The nearest FP32, by its bits: exact, and good for infinities."""
    if math.isfinite(value):
        # `pack` refuses what rounds beyond the largest FP32.
        value = max(-_LARGEST, min(_LARGEST, value))
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return f"__uint_as_float(0x{bits:08x}u)"
