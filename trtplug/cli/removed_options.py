"""Options of earlier TensorRT releases and of trtexec: what to use instead."""

from __future__ import annotations

import re

_PRECISION = "was removed in TensorRT 11.0, where networks are strongly typed; use --precision {0}"
_QUANTIZE = (
    "was removed in TensorRT 11.0; use a quantization tool that writes QuantizeLinear and "
    "DequantizeLinear nodes, and build its model"
)
_TYPES = (
    "was removed in TensorRT 11.0, where networks are strongly typed; use --keep-fp32 GLOB to keep "
    "nodes in FP32"
)
_TACTICS = "was removed in TensorRT 11.0 with IAlgorithmSelector; use --locked or --pin"

_REMOVED = {
    **dict.fromkeys(("fp16", "half"), _PRECISION.format("fp16")),
    "bf16": _PRECISION.format("bf16"),
    "best": _PRECISION.format("fp16 or bf16"),
    **dict.fromkeys(
        ("int8", "fp8", "int4", "calib", "calibrator", "calibration-cache", "int8-calibrator"),
        _QUANTIZE,
    ),
    **dict.fromkeys(("precision-constraints", "layer-precisions", "layer-output-types"), _TYPES),
    "strongly-typed": "was removed in TensorRT 11.0; leave it out: every network is strongly typed",
    "explicit-batch": "was removed in TensorRT 11.0; leave it out: every batch is explicit",
    **dict.fromkeys(("algorithm-selector", "load-tactics", "save-tactics"), _TACTICS),
    "shared-kib": "was renamed; use --shared-memory SIZE, such as 47KiB",
}
"""Name, in lower case with dashes -> what happened to it and what to use."""


def removed_option_advice(name: str) -> str:
    """What to use instead of a removed option; empty for any other name."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name.lstrip("-")).lower().replace("_", "-")
    return _REMOVED.get(words, "")


def removed_option_in(message: str) -> str:
    """The same for the option that a message of click's says does not exist."""
    found = re.search(r"No such option:? ['\"]?(--?[\w-]+)", message)
    advice = removed_option_advice(found[1]) if found else ""
    return f"{found[1]} {advice}" if found and advice else ""
