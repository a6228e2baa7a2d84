"""`trtplug.toml`: the options of `trtplug build`, for pipelines. The command line wins over it."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from trtplug.errors import ConfigError, FileUnreadableError
from trtplug.files import read_text

if TYPE_CHECKING:
    from pathlib import Path


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


if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_STRING = (str,)
_NUMBER = (int, float)
_KEYS: dict[str, tuple[type, ...]] = {
    "model": _STRING,
    "target": (list,),
    "shape": (list,),
    "out": _STRING,
    "precision": _STRING,
    "io_precision": _STRING,
    "keep_fp32": (list,),
    "backend": _STRING,
    "jobs": (int,),
    "repeat": (int,),
    "timeout": _NUMBER,
    "memory_limit": _STRING,
    "tf32": (bool,),
    "optimization_level": (int,),
    "workspace": _STRING,
    "weight_streaming": (bool,),
    "profile": (list,),
    "avg_timing": (int,),
    "max_tactics": (int,),
    "tiling": _STRING,
    "l2_limit": _STRING,
    "aux_streams": (int,),
    "tactic_shared_memory": _STRING,
    "sparsity": (bool,),
    "version_compatible": (bool,),
    "exclude_lean_runtime": (bool,),
    "hardware_compatibility": _STRING,
    "strip": (bool,),
    "refit": _STRING,
    "tactic_source": (list,),
    "preview": (list,),
    "parser_flag": (list,),
    "builder_flag": (list,),
    "build_route": _STRING,
    "plugin_library": (list,),
    "pin": (list,),
    "ban": (list,),
    "prefer": (list,),
    "timing_cache": (bool,),
    "require_cache": (bool,),
    "locked": _STRING,
    "plugin": _STRING,
    "plugin_sites": (list,),
    "plugin_tactics": (list,),
    "plugin_pairs": (bool,),
    "evidence": _STRING,
    "trial_run": (bool,),
    "wait": (bool,),
}
"""Key of the table `[build]` -> the types it takes; lists hold strings."""
_BOUNDS = {
    "jobs": (1, 1024),
    "repeat": (1, 1000),
    "timeout": (0.1, 1e9),
    "optimization_level": (0, 5),
    "avg_timing": (1, 64),
    "max_tactics": (1, 10000),
    "aux_streams": (0, 64),
}
"""The same as those of the options in `cli/build.py`."""


def read_config(file: Path) -> dict[str, Any]:
    """The table `[build]` of a file; paths in it are taken from the file's own folder.

    Raises:
        ConfigError: it cannot be read, is no TOML, or has a key or value of the wrong kind.
    """
    try:
        document = tomllib.loads(read_text(file))
    except FileUnreadableError as error:
        raise ConfigError(file=str(file), problem=error.problem) from error
    except (ValueError, RecursionError) as error:
        # ValueError: not TOML, or a number of thousands of digits.
        raise ConfigError(file=str(file), problem=str(error)) from error
    for key in document:
        if key != "build":
            raise ConfigError(file=str(file), problem=f"unknown table or key {key!r}; use [build]")
    table = document.get("build", {})
    if not isinstance(table, dict):
        raise ConfigError(file=str(file), problem="build must be a table: [build]")
    for key, value in table.items():
        if problem := _problem(key, value):
            raise ConfigError(file=str(file), problem=problem)
    return {key: _placed(key, value, file) for key, value in table.items()}


def _problem(key: str, value: object) -> str:
    if key not in _KEYS:
        if advice := advice_for_gone_option(key):
            return f"build.{key} is no more: {advice}"
        return f"unknown key {key!r} in [build]; known are {', '.join(sorted(_KEYS))}"
    # In Python True is an int; in TOML it is not.
    if not isinstance(value, _KEYS[key]) or (isinstance(value, bool) and bool not in _KEYS[key]):
        wanted = " or ".join(t.__name__ for t in _KEYS[key])
        return f"build.{key} must be {wanted}, not {value!r}"
    if isinstance(value, list) and not all(isinstance(v, str) for v in value):
        return f"build.{key} must be a list of strings, not {value!r}"
    texts = [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, str)]
    if any("\0" in text for text in texts):
        return f"build.{key} holds a NUL character"
    if not all(text.strip() for text in texts):
        return f"build.{key} is empty, or holds an empty text"
    least, most = _BOUNDS.get(key, (None, None))
    # Written so that nan is refused.
    if least is not None and most is not None and not least <= value <= most:  # type: ignore[operator]
        return f"build.{key} must be {least} to {most}, not {value!r}"
    return ""


def _placed(key: str, value: Any, file: Path) -> Any:  # noqa: ANN401 - a TOML value
    if key in ("model", "out", "locked", "evidence"):
        return file.parent / value
    if key == "plugin_library":
        return tuple(file.parent / v for v in value)
    return tuple(value) if isinstance(value, list) else value
