"""The options that reach the builder, each declared once.

A field of `BuildOptions` or `TrtOptions` is the row of one option: it has name, type and default,
and in its metadata an `Option`: how it is written on the command line and in trtplug.toml, its text
in `--help` and in the documentation, and what it sets in TensorRT. Nothing else lists them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from trtplug.settings import as_flag

if TYPE_CHECKING:
    from collections.abc import Iterator

JOBS = (1, 1024)
REPEAT = (1, 1000)
TIMEOUT_S = (0.1, 1e9)
"""Least and most of what a build takes, here and on the command line."""

Kind = Literal[
    "choice", "flag", "integer", "libraries", "names", "number", "path", "signed", "size", "switch",
    "text", "texts",
]  # fmt: skip
"""A `flag` is on if given, a `switch` has a `--no-` form, a `size` is bytes with a unit; `names`
and `signed` (`+NAME`, `-NAME`) are names in an enum. Those of `LISTS` may be repeated."""

LISTS: tuple[Kind, ...] = ("libraries", "names", "signed", "texts")


@dataclass(frozen=True, slots=True)
class Option:
    """How one option of `trtplug build` is written, explained and applied."""

    key: str
    """In trtplug.toml, and with dashes on the command line; empty for the name of the field."""
    kind: Kind
    section: str
    """Heading in `--help`."""
    help: str
    _: KW_ONLY
    metavar: str = ""
    """The value in `--help`; empty for that of the kind."""
    bounds: tuple[float, float] | None = None
    """Smallest and largest value of a number."""
    choices: tuple[str, ...] = ()
    """Values of a `choice`, in lower case."""
    default: str = ""
    """What applies where the option is not given, for `--help`."""
    backend: Literal["", "trt"] = ""
    """`trt`: for enterprise TensorRT only."""
    in_config: bool = True
    """Whether trtplug.toml may have it."""
    sets: str = ""
    """Name in TensorRT's bindings that the option sets, as in `backends/trt/capabilities.py`."""
    sets_by_value: Mapping[str, str] = field(default_factory=dict)
    """The same where the value decides."""
    enum: str = ""
    """TensorRT's enum that values are names of."""

    @property
    def flag(self) -> str:
        """On the command line."""
        return f"--{self.key.replace('_', '-')}"

    @property
    def off_flag(self) -> str:
        """On the command line, to turn a switch off."""
        return f"--no-{self.key.replace('_', '-')}"


SELECTION = "Kernel selection, timing caches and locks"
BUILDER = "Builder"
RUNNING = "Running the build"
PLUGIN = "Plugins"
ENGINE = "More TensorRT options"

_ROW = "option"


def _row(
    kind: Kind,
    text: str,
    *,
    section: str = ENGINE,
    key: str = "",
    value: object = None,
    **more: Any,  # noqa: ANN401 - as `Option` has them
) -> Any:  # noqa: ANN401 - the type is the field's
    """A field with the row of its option; `value` is the default of the field."""
    return field(default=value, metadata={_ROW: Option(key, kind, section, text, **more)})


def _trt(kind: Kind, text: str, **more: Any) -> Any:  # noqa: ANN401 - as `_row`
    return _row(kind, text, backend="trt", **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginLibrary:
    """A shared library with plugins, to be loaded before the model is parsed."""

    path: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.path.rpartition('/')[2]} {self.sha256[:16]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrtOptions:
    """Options of enterprise TensorRT only. Signed names are `+NAME` (on) or `-NAME` (off)."""

    avg_timing: int | None = _trt(
        "integer",
        "Timing iterations averaged per tactic.",
        section=SELECTION,
        bounds=(1, 64),
        sets="IBuilderConfig.avg_timing_iterations",
    )
    max_tactics: int | None = _trt(
        "integer",
        "Maximum number of tactics timed per layer.",
        section=SELECTION,
        bounds=(1, 10000),
        sets="IBuilderConfig.max_num_tactics",
    )
    tactic_sources: tuple[str, ...] = _trt(
        "signed",
        "Enable or disable a tactic source, such as -JIT_CONVOLUTIONS; repeatable.",
        value=(),
        key="tactic_source",
        section=SELECTION,
        sets="IBuilderConfig.set_tactic_sources",
        enum="TacticSource",
    )
    tactic_shared_memory_bytes: int | None = _trt(
        "size",
        "Shared memory limit per tactic, such as 48KiB.",
        key="tactic_shared_memory",
        section=SELECTION,
        sets="MemoryPoolType.TACTIC_SHARED_MEMORY",
    )
    tiling: str | None = _trt(
        "choice",
        "Tiling optimization level.",
        choices=("none", "fast", "moderate", "full"),
        sets="IBuilderConfig.tiling_optimization_level",
        enum="TilingOptimizationLevel",
    )
    l2_limit_bytes: int | None = _trt(
        "size",
        "L2 cache limit for tiling, such as 1MiB.",
        key="l2_limit",
        sets="IBuilderConfig.l2_limit_for_tiling",
    )
    aux_streams: int | None = _trt(
        "integer",
        "Maximum number of auxiliary streams.",
        bounds=(0, 64),
        sets="IBuilderConfig.max_aux_streams",
    )
    sparsity: bool = _trt(
        "flag",
        "Allow sparse kernels for weights with 2:4 structured sparsity.",
        value=False,
        sets="BuilderFlag.SPARSE_WEIGHTS",
    )
    version_compatible: bool = _trt(
        "flag",
        "Build an engine that later TensorRT versions can load.",
        value=False,
        sets="BuilderFlag.VERSION_COMPATIBLE",
    )
    exclude_lean_runtime: bool = _trt(
        "flag",
        "Leave the lean runtime out of a version-compatible engine.",
        value=False,
        sets="BuilderFlag.EXCLUDE_LEAN_RUNTIME",
    )
    hardware_compatibility: str | None = _trt(
        "choice",
        "Hardware compatibility: none, ampere_plus or same_compute_capability.",
        choices=("none", "ampere_plus", "same_compute_capability"),
        metavar="LEVEL",
        sets="IBuilderConfig.hardware_compatibility_level",
        enum="HardwareCompatibilityLevel",
    )
    strip: bool = _trt(
        "flag",
        "Leave refittable weights out of the engine.",
        value=False,
        sets="BuilderFlag.STRIP_PLAN",
    )
    refit: str | None = _trt(
        "choice",
        "Make weights refittable: all, or with identical values only.",
        choices=("all", "identical"),
        sets_by_value={"all": "BuilderFlag.REFIT", "identical": "BuilderFlag.REFIT_IDENTICAL"},
    )
    preview: tuple[str, ...] = _trt(
        "signed",
        "Enable or disable a preview feature; repeatable.",
        value=(),
        sets="IBuilderConfig.set_preview_feature",
        enum="PreviewFeature",
    )
    parser_flags: tuple[str, ...] = _trt(
        "signed",
        "Set or clear a flag of the ONNX parser; repeatable.",
        value=(),
        key="parser_flag",
        sets="OnnxParser.set_flag",
        enum="OnnxParserFlag",
    )
    builder_flags: tuple[str, ...] = _trt(
        "names",
        "Set another builder flag, such as STRICT_NANS; repeatable.",
        value=(),
        key="builder_flag",
        sets="IBuilderConfig.set_flag",
        enum="BuilderFlag",
    )
    build_route: str | None = _trt(
        "text",
        "Build route of the compiler, such as '-a=on -b=2'.",
        sets="IBuilderConfig.build_route",
    )
    plugin_libraries: tuple[PluginLibrary, ...] = _trt(
        "libraries",
        "Shared library with TensorRT plugins of your own; repeatable.",
        value=(),
        key="plugin_library",
        section=PLUGIN,
        sets="IPluginRegistry.load_library",
    )
    trial_run: bool = _trt(
        "switch",
        "Load the finished engine in a new process and run it once.",
        value=True,
        section=RUNNING,
        default="on",
    )

    def changed(self) -> dict[str, Any]:
        """Those that are not at their default, by name."""
        values = ((f.name, getattr(self, f.name), f.default) for f in fields(self))
        return {name: value for name, value, default in values if value != default}


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """All options of a build that reach the builder; the defaults are the builder's own."""

    tf32: bool = _row(
        "switch",
        "Allow TF32 Tensor Cores for FP32 convolutions and matrix products.",
        value=True,
        section=BUILDER,
        default="on",
    )
    optimization_level: int | None = _row(
        "integer", "Builder optimization level, 0 to 5.", section=BUILDER, bounds=(0, 5)
    )
    workspace_bytes: int | None = _row(
        "size", "Workspace memory limit, such as 1GiB.", key="workspace", section=BUILDER
    )
    weight_streaming: bool = _row(
        "flag", "Allow weights to be streamed from host memory.", value=False, section=BUILDER
    )
    trt: TrtOptions = field(default_factory=TrtOptions)

    def as_flags(self) -> dict[str, str]:
        """By name, as text, for reports and keys: those that each builder has, and others given."""
        common = {f.name: _as_text(getattr(self, f.name)) for f in fields(self) if f.name != "trt"}
        return {**common, **{name: _as_text(v) for name, v in self.trt.changed().items()}}


def options_of(record: Any) -> dict[str, Option]:  # noqa: ANN401 - a dataclass or one of its values
    """Field -> option, of `BuildOptions`, `TrtOptions` or a class made from one of them."""
    rows = ((f.name, f.metadata[_ROW]) for f in fields(record) if _ROW in f.metadata)
    return {name: replace(row, key=row.key or name) for name, row in rows}


def given_options(options: TrtOptions) -> Iterator[tuple[Option, Any]]:
    """The options that are not at their default, with their values."""
    rows = options_of(options)
    for name, value in options.changed().items():
        yield rows[name], value


def option_flag(name: str) -> str:
    """How a field of `TrtOptions` is written on the command line to leave its default."""
    row = options_of(TrtOptions)[name]
    return row.off_flag if row.kind == "switch" else row.flag


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return as_flag(map(str, value))
    return "default" if value is None else str(value)


def trt_options_from(given: Any) -> TrtOptions:  # noqa: ANN401 - by their names
    """Options as a child receives them: the fields by name, lists where they have tuples."""
    values = {f.name: getattr(given, f.name) for f in fields(TrtOptions)}
    plain: dict[str, Any] = {
        name: tuple(v) if isinstance(v, list) else v for name, v in values.items()
    }
    plain["plugin_libraries"] = tuple(
        PluginLibrary(path=p.path, sha256=p.sha256) for p in given.plugin_libraries
    )
    return TrtOptions(**plain)
