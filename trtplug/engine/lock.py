"""The lock: what went into an engine and what came out, so that a build can be compared later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trtplug.engine.manifest import ManifestEngine, ManifestModel

SCHEMA = "trtplug.lock/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockLayer:
    """One layer and its recorded kernel."""

    name: str
    type: str
    onnx_nodes: tuple[str, ...]
    kernel: str | None
    kernel_status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """The recorded choices of one engine."""

    schema: str
    tool_version: str
    model: ManifestModel
    target: str
    backend: str
    backend_version: str
    library: str
    """File name of the builder's library, as loaded."""
    shapes: tuple[str, ...]
    precision: str
    flags: Mapping[str, str]
    engine: ManifestEngine
    layers: tuple[LockLayer, ...]
