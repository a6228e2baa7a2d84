"""A plan: what one build command will do, before anything is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SCHEMA = "trtplug.plan/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTarget:
    """One engine to make."""

    target: str
    """Such as `rtx-1.7:sm_89`."""
    sm: str
    gpus: tuple[str, ...]
    """Profiles of the GPUs that it serves; those asked for by name come first."""
    supported: bool
    """Whether the backend builds for this SM here."""
    key: str
    """Of the store entry: SHA-256 of all that may change the result."""
    in_store: bool
    """Whether the store has it, so that no builder will run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that one build command will do."""

    schema: str
    tool_version: str
    model_file: str
    model_sha256: str
    backend: str
    backend_version: str
    shapes: tuple[str, ...]
    """As given; inputs with fixed sizes need none."""
    precision: str
    flags: Mapping[str, str]
    repeat: int
    """How often each engine is built, to see whether the builds agree."""
    out: str
    targets: tuple[PlannedTarget, ...]
