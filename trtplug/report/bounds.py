"""Lower bounds on time that a GPU sets for a layer: the roofline.

Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore
architectures", CACM 52(4), 2009. A bound is the largest of three times: all bytes at the memory's
bandwidth, matrix operations at the Tensor Cores' peak, other operations at the FP32 peak. It is
derived from published peaks; nothing here is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trtplug.profile import GpuProfile
    from trtplug.report.data import BoundBy

ASSUMPTIONS = (
    "Every figure is at the opt shapes.",
    "A bound is a lower bound on time from the GPU's published peaks at its boost clock; it is no "
    "measurement and no prediction.",
    "A bound takes every input, constant and output of a layer to cross device memory once: what "
    "stays in the L2 cache between layers can be faster.",
    "A multiply-add counts as 2 operations; an ONNX node that the builder names in several layers "
    "is counted in one.",
    "FP32 convolutions and matrix products count at the TF32 peak where TF32 is on and the GPU has "
    "it, FP16 ones at the higher of the FP16 peaks.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one layer has to do; None where unknown."""

    matrix_flops: int | None
    """Operations of convolutions and matrix products."""
    vector_flops: int | None
    """All other operations."""
    bytes: int | None
    dtype: str
    """Type that the matrix operations read, in the builder's words, such as `Float`."""

    @property
    def flops(self) -> int | None:
        """All operations."""
        return known_sum((self.matrix_flops, self.vector_flops))


def known_sum(values: Iterable[int | None]) -> int | None:
    """The sum; None where one of the values is not known."""
    known = list(values)
    return None if None in known else sum(v or 0 for v in known)


def bound_us(work: Work, profile: GpuProfile, *, tf32: bool) -> tuple[float, BoundBy] | None:
    """The bound in microseconds and what sets it; None where nothing is known.

    A term that is not known is left out: what remains is still a lower bound.
    """
    peak = profile.dense_peak
    terms: list[tuple[float, BoundBy]] = []
    for amount, rate, kind in (
        (work.bytes, profile.memory_bandwidth_bytes_per_s, "memory"),
        (work.matrix_flops, matrix_peak(work.dtype, profile, tf32=tf32), "matrix"),
        (work.vector_flops, peak.fp32_flops_per_s, "vector"),
    ):
        if amount is not None and rate:
            terms.append((amount / rate * 1e6, kind))  # type: ignore[arg-type]
    return max(terms, default=None)


def matrix_peak(dtype: str, profile: GpuProfile, *, tf32: bool) -> float | None:
    """Dense peak for matrix operations on a type, in operations a second; None where unknown.

    The highest rate that a correct kernel could reach, so that the bound stays a lower bound.
    """
    peak = profile.dense_peak
    rates = {
        "Float": (peak.fp32_flops_per_s, peak.tf32_flops_per_s if tf32 else None),
        "Half": (peak.fp16_flops_per_s, peak.fp16_accumulate_fp16_flops_per_s),
        "BFloat16": (peak.bf16_flops_per_s,),
        "FP8": (peak.fp8_flops_per_s, peak.fp8_accumulate_fp16_flops_per_s),
        "Int8": (peak.int8_ops_per_s,),
    }.get(dtype, ())
    return max((r for r in rates if r is not None), default=None)
