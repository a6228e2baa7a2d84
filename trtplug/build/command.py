"""What `trtplug build` was asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from trtplug.backends.options import BuildOptions
from trtplug.backends.run_child import Limits
from trtplug.lock.policy import TacticPolicy
from trtplug.model.precision_options import PrecisionOptions
from trtplug.plugin.options import PluginOptions
from trtplug.tensor import ShapeRange


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildCommand:
    """What `trtplug build` was asked to do."""

    model: Path
    targets: tuple[str, ...]
    """Each a profile, an SM, `local` or `all`; empty for the target of `policy.locked`."""
    profiles: tuple[tuple[ShapeRange, ...], ...] = ((),)
    """Optimization profiles, the first from `--shape`; inputs of fixed sizes need no range."""
    out: Path
    precision: PrecisionOptions = field(default_factory=PrecisionOptions)
    backend: str = "auto"
    options: BuildOptions = field(default_factory=BuildOptions)
    wait: bool = True
    """Wait while another build holds the GPU."""
    limits: Limits = field(default_factory=Limits)
    jobs: int = 2
    """Builds at once."""
    repeat: int = 1
    """Builds of each engine, to compare them."""
    force: bool = False
    """Build even where the store has the engine."""
    policy: TacticPolicy = field(default_factory=TacticPolicy)
    """Where tactics come from."""
    plugin: PluginOptions = field(default_factory=PluginOptions)
