"""A plan: what one build command will do, before anything is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from trtplug.store import key_of

SCHEMA = "trtplug.plan/1"


Choice = Literal["plugin", "native"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSite:
    """A site or a pair in the plan, and what is to run it."""

    site: str
    """Label of the convolution; of a pair both, such as `dw+pw`."""
    convs: tuple[str, ...]
    choice: Choice
    reason: str
    problem_sha256: str | None
    """What a measurement names it by; None where its sizes are not known."""
    tactics: tuple[str, ...]
    """Offered to the builder, all of one packing; empty where native."""
    packing: str | None


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
    sites: tuple[PlannedSite, ...] | None = None
    """What is to run each site and pair; None where the backend takes no plugins, or does not
    build for this SM."""


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
    """Builds of each engine, to compare them."""
    out: str
    targets: tuple[PlannedTarget, ...]

    @property
    def sha256(self) -> str:
        """Digest of all that is built: not of where it is written, nor of what the store has."""
        plain = asdict(self)
        del plain["out"]
        for target in plain["targets"]:
            del target["in_store"]
        return key_of(plain)
