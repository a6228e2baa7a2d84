"""Straight from the definition: takes what the other families do not, and all of FP32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from trtplug.kernels.family import (
    SECTOR_BYTES,
    Tactic,
    Work,
    divide_up,
    fill,
    spread_sectors,
)
from trtplug.kernels.problem import ELEMENT_BYTES, KernelProblem, padded
from trtplug.kernels.sm import WARP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.kernels.problem import Array
    from trtplug.target import Sm


@dataclass(frozen=True, slots=True, kw_only=True)
class Direct(Tactic[KernelProblem]):
    """A thread makes a bundle of outputs of one pixel; `layout` is LINEAR in FP32, else HWC8."""

    includes: ClassVar[tuple[str, ...]] = ("cbr/direct.cuh",)
    rank: ClassVar[int] = 2

    def bundle(self, problem: KernelProblem) -> int:
        """Outputs that a thread makes, all of one group: a power of 2."""
        most = 4 if self.layout == "LINEAR" else 8
        if problem.attributes.group == 1:
            return most
        return next(n for n in (8, 4, 2, 1) if n <= most and problem.group_outputs % n == 0)

    def bundles(self, problem: KernelProblem) -> int:
        """Bundles of outputs; in HWC8 those that are only padding count."""
        outputs = problem.outputs if self.layout == "LINEAR" else padded(problem.outputs)
        return int(divide_up(outputs, self.bundle(problem)))

    def body(self, problem: KernelProblem, sm: Sm) -> str:
        """A call of plugins/cbr/direct.cuh."""
        linear = "true" if self.layout == "LINEAR" else "false"
        return (
            f"using Kernel = trtplug::Direct<Site, {self.bundle(problem)}, {linear}>;\n"
            "  Kernel::run(x, reinterpret_cast<const Kernel::Weights*>(weights), bias, "
            "residual, y, at);"
        )

    def grid(self, problem: KernelProblem, sizes: Sequence[Any]) -> tuple[Any, Any, Any]:
        """One thread for each pixel, then bundles."""
        batch, _, rows, columns = problem.output(sizes)
        return (divide_up(batch * rows * columns, self.threads), self.bundles(problem), 1)

    def packing(self, problem: KernelProblem) -> str:
        """Such as `bundles_HWC8_8`."""
        return f"bundles_{self.layout}_{self.bundle(problem)}"

    def pack_weights(self, problem: KernelProblem, weights: Array, conv: int = 0) -> Array:
        """[bundle, channel, tap, output] for LINEAR, [bundle, tap, channel, output] for HWC8."""
        bundle, inner = self.bundle(problem), (problem.group_channels, problem.taps)
        flat = weights.reshape(problem.outputs, *inner)
        filled = fill(flat, (self.bundles(problem) * bundle, *inner))
        order = (0, 2, 3, 1) if self.layout == "LINEAR" else (0, 3, 2, 1)
        return np.ascontiguousarray(filled.reshape(-1, bundle, *inner).transpose(order))

    def pack_bias(self, problem: KernelProblem, bias: Array, conv: int = 0) -> Array:
        """Filled up to whole bundles."""
        return fill(bias.astype(np.float32), (self.bundles(problem) * self.bundle(problem),))

    def work(self, problem: KernelProblem) -> Work:
        """Each term is one element of x for a thread, and one bundle of weights for all of them."""
        terms = problem.taps * problem.group_channels
        size = ELEMENT_BYTES[problem.dtype]
        lanes = padded(problem.channels) if self.layout == "HWC8" else 1
        sectors = spread_sectors(size * lanes * problem.attributes.strides[1], size)
        return Work(
            multiply_adds=self.threads * self.bundle(problem) * terms,
            shared_bytes=0,
            l1_bytes=self.threads // WARP * terms * (sectors + 1) * SECTOR_BYTES,
            l2_bytes=0,
            steps=terms,
        )


TACTICS: tuple[Direct, ...] = (
    Direct(
        name="direct_linear",
        number=1,
        use="what no other tactic takes; the only one in FP32",
        layout="LINEAR",
    ),
    Direct(
        name="direct_hwc8",
        number=2,
        use="what no other tactic takes: odd groups, kernels beyond 7x7",
    ),
)
