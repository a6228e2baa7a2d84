"""Depthwise convolutions: one filter for each channel, 8 channels a thread, HWC8."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from trtplug.kernels.family import Exclusion, Tactic, Work, divide_up, fill, is_depthwise
from trtplug.kernels.problem import KernelProblem, padded
from trtplug.kernels.sm import WARP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trtplug.kernels.problem import Array
    from trtplug.target import Sm


_MOST_TAPS = 56


@dataclass(frozen=True, slots=True, kw_only=True)
class Depthwise(Tactic[KernelProblem]):
    """A thread makes neighbouring outputs of 8 channels."""

    includes: ClassVar[tuple[str, ...]] = ("cbr/depthwise.cuh",)
    rank: ClassVar[int] = 0

    across: int
    """Neighbouring outputs that a thread makes."""

    def exclusions(self, problem: KernelProblem) -> Iterator[Exclusion]:
        """Reasons of the family's own."""
        if not is_depthwise(problem):
            yield Exclusion.NOT_DEPTHWISE
        if problem.taps > _MOST_TAPS:
            yield Exclusion.KERNEL_SIZE

    def body(self, problem: KernelProblem, sm: Sm) -> str:
        """A call of plugins/cbr/depthwise.cuh."""
        return f"trtplug::Depthwise<Site, {self.across}>::run(x, weights, bias, residual, y, at);"

    def grid(self, problem: KernelProblem, sizes: Sequence[Any]) -> tuple[Any, Any, Any]:
        """One thread for each bundle of outputs and chunk of 8 channels."""
        batch, _, rows, columns = problem.output(sizes)
        bundles = batch * rows * divide_up(columns, self.across)
        return (divide_up(bundles * (padded(problem.channels) // 8), self.threads), 1, 1)

    def packing(self, problem: KernelProblem) -> str:
        """One for the family."""
        return "taps"

    def pack_weights(self, problem: KernelProblem, weights: Array, conv: int = 0) -> Array:
        """[tap, padded channels]."""
        taps = weights.reshape(problem.channels, problem.taps).T
        return fill(taps, (problem.taps, padded(problem.channels)))

    def pack_bias(self, problem: KernelProblem, bias: Array, conv: int = 0) -> Array:
        """[padded channels]."""
        return fill(bias.astype(np.float32), (padded(problem.outputs),))

    def work(self, problem: KernelProblem) -> Work:
        """A thread loads 16 bytes for each tap of its outputs' span; pixels share their weights."""
        a = problem.attributes
        across = (self.across - 1) * a.strides[1] + (a.kernel_shape[1] - 1) * a.dilations[1] + 1
        read = min(across, self.across * a.kernel_shape[1])
        lanes = read * WARP + a.kernel_shape[1] * min(WARP, padded(problem.channels) // 8)
        return Work(
            multiply_adds=self.threads * self.across * 8 * problem.taps,
            shared_bytes=0,
            l1_bytes=a.kernel_shape[0] * lanes * 16 * (self.threads // WARP),
            l2_bytes=0,
            steps=a.kernel_shape[0],
        )


TACTICS: tuple[Depthwise, ...] = (
    Depthwise(name="depthwise_1", number=50, across=1, use="depthwise on small maps: most threads"),
    Depthwise(
        name="depthwise_2",
        number=51,
        use="depthwise on large maps: an input is read once for two outputs",
        across=2,
    ),
)
