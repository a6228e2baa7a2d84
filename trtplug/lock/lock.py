"""The lock: what went into an engine and what came out, so that a build can be compared later.

Written by every build. What a builder does not report is None; an empty tuple means there was
nothing: TensorRT-RTX records no tactics, since its kernels are chosen when the engine first runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from trtplug.bundle.manifest import ManifestEngine, ManifestModel
from trtplug.document import read_document
from trtplug.timing.files import CACHE

if TYPE_CHECKING:
    from pathlib import Path


SCHEMA = "trtplug.lock/1"

LOCK = "lock.json"

CACHE_FILES = (CACHE, f"{CACHE}.json")
"""The timing cache and its sidecar, as a bundle has them."""

Choice = Literal["plugin", "native"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LockLayer:
    """One layer and its recorded kernel."""

    name: str
    type: str
    onnx_nodes: tuple[str, ...]
    kernel: str | None
    kernel_status: str
    cache_key: str | None
    """Of the layer in the timing cache, where the builder's log has it."""
    tactic_hash: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LockTactic:
    """One entry of the timing cache that the build used: what a replay must reproduce."""

    key: str
    tactic_hash: str
    op: str | None
    """As the builder's log calls it."""
    kernel: str | None
    onnx_nodes: tuple[str, ...]
    asked_by: Literal["pin", "ban", "prefer"] | None = None
    """Set where an option overrode the builder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockSite:
    """A convolution with its bias and activation, and what runs it."""

    conv: str
    nodes: tuple[str, ...]
    choice: Choice
    tactic: str | None
    """Of the plugin."""
    ptx_sha256: str | None
    """Of the plugin's kernel; None where native, or where the tactic is not known."""
    kit_sha256: str | None = None
    """Of all that the builder could choose from: problem, packing, and the PTX of each tactic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockGpu:
    """The GPU that the builder timed on."""

    name: str
    sm: str
    driver: str
    cuda: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LockCache:
    """The timing cache that ships beside the engine."""

    file: str
    """Below the bundle."""
    sha256: str
    keys: int


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
    gpu: LockGpu | None
    """None where the builder needed none."""
    shapes: tuple[str, ...]
    precision: str
    flags: Mapping[str, str]
    engine: ManifestEngine
    timing_cache: LockCache | None
    layers: tuple[LockLayer, ...]
    tactics: tuple[LockTactic, ...] | None
    """In order of their keys; None where the builder records none: nothing can be replayed."""
    sites: tuple[LockSite, ...] | None

    @property
    def winners(self) -> dict[str, str]:
        """Key -> tactic hash."""
        return {t.key: t.tactic_hash for t in self.tactics or ()}


def read_lock(file: Path) -> Lock:
    """The lock in a file.

    Raises:
        DocumentError: missing, not JSON, of another schema or version, or with unfit fields.
    """
    return read_document(Lock, SCHEMA, file)
