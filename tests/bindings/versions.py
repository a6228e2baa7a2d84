"""The real bindings of several TensorRT releases, without TensorRT: names and signatures as data.

The bindings' wheels hold no library; they import over three stub libraries that export nine
symbols. Every class, enum, signature and docstring can be looked at then; nothing can be called.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from tests.bindings.packages import CACHE, installed
from tests.doubles.shared_library import RETURN_ZERO, write_library

VERSIONS = {
    "10.9": "tensorrt-cu12-bindings==10.9.0.34",
    "10.13": "tensorrt-cu12-bindings==10.13.3.9",
    "10.16": "tensorrt-cu13-bindings==10.16.1.11",
    "11.0": "tensorrt-cu13-bindings==11.0.0.114",
    "11.4": "tensorrt-cu13-bindings==11.4.0.106",
}
"""Release -> its wheel; the first and the last of each major version, and one between."""

SYMBOLS = {
    "nvinfer": (
        "createInferBuilder_INTERNAL",
        "createInferRefitter_INTERNAL",
        "createInferRuntime_INTERNAL",
        "getBuilderPluginRegistry",
        "getPluginRegistry",
    ),
    "nvonnxparser": (
        "createNvOnnxParser_INTERNAL",
        "createNvOnnxParserRefitter_INTERNAL",
        "getNvOnnxParserVersion",
    ),
    "nvinfer_plugin": ("initLibNvInferPlugins",),
}
"""Library -> what the bindings need of it."""

_PROBE = Path(__file__).with_name("probe.py")


@dataclass(frozen=True, slots=True)
class Bindings:
    """Public names of one release."""

    version: str
    names: Mapping[str, Any]

    def find(self, name: str) -> Mapping[str, Any] | None:
        """`BuilderFlag.TF32`, `IBuilderConfig` or a function's name; None where it is missing."""
        first, _, member = name.partition(".")
        found = self.names.get(first)
        if found is None or not member:
            return found
        return found.get("members", {}).get(member)

    def fits(self, name: str, positional: int, keywords: tuple[str, ...]) -> bool:
        """Whether a call with so many positional arguments, and these by name, has an overload."""
        found = self.find(name)
        if found is not None and found["kind"] in ("class", "enum"):
            found = self.find(f"{name}.__init__")
        overloads = (found or {}).get("overloads")
        return overloads is None or any(_fits(o, positional, keywords) for o in overloads)


def _fits(overload: list[list[Any]], positional: int, keywords: tuple[str, ...]) -> bool:
    if positional > len(overload):
        return False
    rest = overload[positional:]
    names = [name for name, _ in rest]
    required = [name for name, has_default in rest if not has_default]
    return set(keywords) <= set(names) and set(required) <= set(keywords)


@functools.cache
def bindings(release: str) -> Bindings:
    """The bindings of one of `VERSIONS`."""
    raw = json.loads(_probed(VERSIONS[release]))
    return Bindings(version=raw["version"], names=raw["names"])


def _probed(requirement: str) -> str:
    """What the probe prints, kept in the cache until the probe changes."""
    folder = installed(requirement)
    digest = hashlib.sha256(_PROBE.read_bytes()).hexdigest()[:12]
    kept = CACHE / f"{requirement}.{digest}.json"
    with FileLock(f"{kept}.lock"):
        if not kept.is_file():
            text = run_with_bindings(folder, [str(_PROBE), str(folder)])
            partial = kept.with_suffix(".partial")
            partial.write_text(text, encoding="utf-8")
            partial.rename(kept)
    return kept.read_text(encoding="utf-8")


def run_with_bindings(folder: Path, arguments: list[str]) -> str:
    """Runs Python over the stub libraries; returns its stdout."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "LD_LIBRARY_PATH": str(stub_libraries()), "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@functools.cache
def stub_libraries() -> Path:
    """Folder with the stub libraries of both major versions."""
    folder = CACHE / "stubs"
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(CACHE / "stubs.lock"):
        for library, symbols in SYMBOLS.items():
            for major in (10, 11):
                path = folder / f"lib{library}.so.{major}"
                if not path.is_file():
                    write_library(path, dict.fromkeys(symbols, RETURN_ZERO))
    return folder
