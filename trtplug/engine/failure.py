"""A build that failed, as an error: what happened, and what to do about it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trtplug.errors import (
    BuilderCrashedError,
    BuildFailedError,
    BuildMemoryError,
    BuildTimeoutError,
    ParseFailedError,
    TargetUnsupportedError,
    TrtplugError,
    error_from_plain,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.backends.backend import Outcome
    from trtplug.target import Sm

_ADVICE: tuple[tuple[str, str], ...] = (
    (
        r"FP32 .*(is not|not) supported|for Turing \(SM75\): FP32",
        "this GPU takes the operation in FP16 only: build with --precision fp16",
    ),
    (
        r"bf16.*not supported|BF16.*(SM75|Turing)",
        "this GPU has no bfloat16: build with --precision fp16",
    ),
    (
        r"contradictory IOptimizationProfile",
        "axes of one name must have equal sizes: give equal sizes, or rename the axes in the model",
    ),
    (
        r"training_mode",
        "export the model again in evaluation mode: BatchNormalization uses batch statistics",
    ),
    (r"No space left", "free some space where --out lies, and build again"),
)


def failure_of(
    outcome: Outcome, *, timeout_s: float | None, memory_bytes: int | None
) -> TrtplugError:
    """The error for an outcome that is not `built`."""
    if outcome.error is not None:
        return error_from_plain(outcome.error)
    target, reasons = outcome.target, outcome.reasons
    match outcome.status:
        case "refused":
            return ParseFailedError(target=target, refusals=reasons, advice=advice_for(reasons))
        case "timeout":
            return BuildTimeoutError(target=target, limit_s=timeout_s or 0.0)
        case "memory":
            limit = None if outcome.how == "killed" else memory_bytes
            return BuildMemoryError(target=target, peak_bytes=outcome.peak_bytes, limit_bytes=limit)
        case "crashed":
            return BuilderCrashedError(target=target, how=outcome.how, last_lines=reasons)
        case _:
            return BuildFailedError(target=target, reasons=reasons, advice=advice_for(reasons))


def advice_for(reasons: Sequence[str]) -> str:
    """What to do about reasons that are known; empty where none is."""
    text = "\n".join(reasons)
    return next((advice for pattern, advice in _ADVICE if re.search(pattern, text)), "")


def unsupported(target: str, sm: Sm, backend: str, sms: Sequence[Sm]) -> TargetUnsupportedError:
    """The error for an SM that a backend does not build for."""
    return TargetUnsupportedError(
        target=target,
        backend=backend,
        supported=tuple(map(str, sms)),
        who=f"build it with TensorRT (enterprise) on a machine with a {sm} GPU",
    )
