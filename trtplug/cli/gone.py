"""Options of other tools and of TensorRT 10 that exist no more, and what to do now."""

from __future__ import annotations

import re

_PRECISION = "precision belongs to the model: build with --precision {0}"
_QUANTIZE = (
    "TensorRT 11 has no calibrators and no such flag: quantize the model with a tool that writes "
    "QuantizeLinear and DequantizeLinear nodes, and build that"
)
_TYPES = "networks are strongly typed: --keep-fp32 GLOB leaves nodes in float32"
_TACTICS = "IAlgorithmSelector went with TensorRT 11: tactics are pinned through the timing cache"

_GONE = {
    "fp16": _PRECISION.format("fp16"),
    "half": _PRECISION.format("fp16"),
    "bf16": _PRECISION.format("bf16"),
    "best": _PRECISION.format("fp16 or bf16"),
    "int8": _QUANTIZE,
    "fp8": _QUANTIZE,
    "int4": _QUANTIZE,
    "calib": _QUANTIZE,
    "calibrator": _QUANTIZE,
    "calibration-cache": _QUANTIZE,
    "int8-calibrator": _QUANTIZE,
    "precision-constraints": _TYPES,
    "layer-precisions": _TYPES,
    "layer-output-types": _TYPES,
    "strongly-typed": "leave it out: every network is strongly typed",
    "explicit-batch": "leave it out: batch is an axis like any other",
    "algorithm-selector": _TACTICS,
    "load-tactics": _TACTICS,
    "save-tactics": _TACTICS,
}
"""Name, in lower case with dashes -> what to do now."""


def advice_for_gone_option(name: str) -> str:
    """What to do now where an option is no more; empty for any other name."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name.lstrip("-")).lower().replace("_", "-")
    return _GONE.get(words, "")


def advice_in(message: str) -> str:
    """The same for the option that a message of typer's says does not exist."""
    found = re.search(r"No such option:? ['\"]?(--?[\w-]+)", message)
    return advice_for_gone_option(found[1]) if found else ""
