"""Sums of tensor-core products that are not in their registers yet."""

from __future__ import annotations

from dataclasses import dataclass

from trtplug.emulator.values import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """What is still to be added to the accumulators of one matrix product."""

    kind: str
    """Type of the accumulators: `f32`, `f16` or `s32`."""
    results: tuple[tuple[int, ...], ...]
    """Their registers, of one `mma` after the other."""
    order: Array
    """Elements of a warp's matrix in order of registers, then lanes."""
    total: Array
    """[warps of the batch, rows, columns] fp32."""

    @property
    def registers(self) -> frozenset[int]:
        """All the accumulators."""
        return frozenset(r for registers in self.results for r in registers)
