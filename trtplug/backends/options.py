"""What a builder is told beside model, shapes and SM; the defaults are the builder's own."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from trtplug.globs import as_flag


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginLibrary:
    """A shared library with plugins, to be loaded before the model is parsed."""

    path: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.path.rpartition('/')[2]} {self.sha256[:16]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrtOptions:
    """Options of enterprise TensorRT alone. Signed names are `+NAME` (on) or `-NAME` (off)."""

    avg_timing: int | None = None
    """How often each tactic is timed; the mean is taken."""
    max_tactics: int | None = None
    """Most tactics that are timed for a layer."""
    tiling: str | None = None
    """`none`, `fast`, `moderate` or `full`."""
    l2_limit_bytes: int | None = None
    """What tiling may take of the L2 cache."""
    aux_streams: int | None = None
    """Most streams beside the main one that an engine may use."""
    tactic_shared_memory_bytes: int | None = None
    sparsity: bool = False
    """Whether weights with 2:4 structured zeros may use sparse kernels."""
    version_compatible: bool = False
    exclude_lean_runtime: bool = False
    hardware_compatibility: str | None = None
    """`none`, `ampere_plus` or `same_compute_capability`."""
    strip: bool = False
    """Leave out of the engine the weights that it can be refitted with."""
    refit: str | None = None
    """`all`: any weights; `identical`: only those that it was built with."""
    tactic_sources: tuple[str, ...] = ()
    preview: tuple[str, ...] = ()
    parser_flags: tuple[str, ...] = ()
    builder_flags: tuple[str, ...] = ()
    """Names of further flags to set, such as `STRICT_NANS`."""
    build_route: str | None = None
    plugin_libraries: tuple[PluginLibrary, ...] = ()
    trial_run: bool = True
    """Whether the finished engine is loaded in a process of its own and run once."""

    def changed(self) -> dict[str, Any]:
        """Those that are not at their default, by name."""
        values = ((f.name, getattr(self, f.name), f.default) for f in fields(self))
        return {name: value for name, value, default in values if value != default}


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """All options of a build."""

    tf32: bool = True
    """Whether FP32 convolutions and matrix products may run in TF32 on Tensor Cores."""
    optimization_level: int | None = None
    """0 to 5; None is the builder's default."""
    workspace_bytes: int | None = None
    """Upper limit on scratch memory; None is the builder's default."""
    weight_streaming: bool = False
    trt: TrtOptions = field(default_factory=TrtOptions)

    def as_flags(self) -> dict[str, str]:
        """By name, as text, for reports and keys: those that each builder has, and others given."""
        common = {f.name: _as_text(getattr(self, f.name)) for f in fields(self) if f.name != "trt"}
        return {**common, **{name: _as_text(v) for name, v in self.trt.changed().items()}}


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return as_flag(map(str, value))
    return "default" if value is None else str(value)


def trt_options_from(given: Any) -> TrtOptions:  # noqa: ANN401 - whatever has these fields
    """Options as a child gets them: the fields by name, lists where they have tuples."""
    values = {f.name: getattr(given, f.name) for f in fields(TrtOptions)}
    plain: dict[str, Any] = {
        name: tuple(v) if isinstance(v, list) else v for name, v in values.items()
    }
    plain["plugin_libraries"] = tuple(
        PluginLibrary(path=p.path, sha256=p.sha256) for p in given.plugin_libraries
    )
    return TrtOptions(**plain)


_FLAGS = {
    "l2_limit_bytes": "--l2-limit",
    "tactic_shared_memory_bytes": "--tactic-shared-memory",
    "tactic_sources": "--tactic-source",
    "parser_flags": "--parser-flag",
    "builder_flags": "--builder-flag",
    "plugin_libraries": "--plugin-library",
    "trial_run": "--no-trial-run",
}


def option_flag(name: str) -> str:
    """How an option is written on the command line."""
    return _FLAGS.get(name, f"--{name.replace('_', '-')}")
