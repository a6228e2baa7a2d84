"""The options that reach the builder, each declared once.

A field of `BuildOptions` or `TrtOptions` is the row of one option: it has name, type and default,
and in its metadata an `Option`: how it is written on the command line and in trtplug.toml, its text
in `--help` and in the documentation, and what it sets in TensorRT. Nothing else lists them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from trtplug.globs import as_flag

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal[
    "choice", "flag", "integer", "libraries", "names", "number", "path", "signed", "size", "switch",
    "text", "texts",
]  # fmt: skip
"""A `flag` is on if given, a `switch` has a `--no-` form, a `size` is bytes with a unit; `names`
and `signed` (`+NAME`, `-NAME`) are names in an enum. Those of `LISTS` may be repeated."""

LISTS: tuple[Kind, ...] = ("libraries", "names", "signed", "texts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """How one option of `trtplug build` is written, explained and applied."""

    key: str = ""
    """In trtplug.toml, and with dashes on the command line; empty for the name of the field."""
    kind: Kind
    section: str
    """Heading in `--help`."""
    help: str
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


def _row(default: object = None, /, **row: Any) -> Any:  # noqa: ANN401 - the type is the field's
    """A field with the row of its option."""
    return field(default=default, metadata={_ROW: Option(**row)})


def _trt(default: object = None, /, **row: Any) -> Any:  # noqa: ANN401 - the type is the field's
    return _row(default, **{"section": ENGINE, **row}, backend="trt")


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
        kind="integer",
        bounds=(1, 64),
        section=SELECTION,
        help="Timing iterations averaged per tactic.",
        sets="IBuilderConfig.avg_timing_iterations",
    )
    max_tactics: int | None = _trt(
        kind="integer",
        bounds=(1, 10000),
        section=SELECTION,
        help="Maximum number of tactics timed per layer.",
        sets="IBuilderConfig.max_num_tactics",
    )
    tactic_sources: tuple[str, ...] = _trt(
        (),
        key="tactic_source",
        kind="signed",
        section=SELECTION,
        help="Enable or disable a tactic source, such as -JIT_CONVOLUTIONS; repeatable.",
        sets="IBuilderConfig.set_tactic_sources",
        enum="TacticSource",
    )
    tactic_shared_memory_bytes: int | None = _trt(
        key="tactic_shared_memory",
        kind="size",
        section=SELECTION,
        help="Shared memory limit per tactic, such as 48KiB.",
        sets="MemoryPoolType.TACTIC_SHARED_MEMORY",
    )
    tiling: str | None = _trt(
        kind="choice",
        choices=("none", "fast", "moderate", "full"),
        help="Tiling optimization level.",
        sets="IBuilderConfig.tiling_optimization_level",
        enum="TilingOptimizationLevel",
    )
    l2_limit_bytes: int | None = _trt(
        key="l2_limit",
        kind="size",
        help="L2 cache limit for tiling, such as 1MiB.",
        sets="IBuilderConfig.l2_limit_for_tiling",
    )
    aux_streams: int | None = _trt(
        kind="integer",
        bounds=(0, 64),
        help="Maximum number of auxiliary streams.",
        sets="IBuilderConfig.max_aux_streams",
    )
    sparsity: bool = _trt(
        False,
        kind="flag",
        help="Allow sparse kernels for weights with 2:4 structured sparsity.",
        sets="BuilderFlag.SPARSE_WEIGHTS",
    )
    version_compatible: bool = _trt(
        False,
        kind="flag",
        help="Build an engine that later TensorRT versions can load.",
        sets="BuilderFlag.VERSION_COMPATIBLE",
    )
    exclude_lean_runtime: bool = _trt(
        False,
        kind="flag",
        help="Leave the lean runtime out of a version-compatible engine.",
        sets="BuilderFlag.EXCLUDE_LEAN_RUNTIME",
    )
    hardware_compatibility: str | None = _trt(
        kind="choice",
        choices=("none", "ampere_plus", "same_compute_capability"),
        metavar="LEVEL",
        help="Hardware compatibility: none, ampere_plus or same_compute_capability.",
        sets="IBuilderConfig.hardware_compatibility_level",
        enum="HardwareCompatibilityLevel",
    )
    strip: bool = _trt(
        False,
        kind="flag",
        help="Leave refittable weights out of the engine.",
        sets="BuilderFlag.STRIP_PLAN",
    )
    refit: str | None = _trt(
        kind="choice",
        choices=("all", "identical"),
        help="Make weights refittable: all, or with identical values only.",
        sets_by_value={"all": "BuilderFlag.REFIT", "identical": "BuilderFlag.REFIT_IDENTICAL"},
    )
    preview: tuple[str, ...] = _trt(
        (),
        kind="signed",
        help="Enable or disable a preview feature; repeatable.",
        sets="IBuilderConfig.set_preview_feature",
        enum="PreviewFeature",
    )
    parser_flags: tuple[str, ...] = _trt(
        (),
        key="parser_flag",
        kind="signed",
        help="Set or clear a flag of the ONNX parser; repeatable.",
        sets="OnnxParser.set_flag",
        enum="OnnxParserFlag",
    )
    builder_flags: tuple[str, ...] = _trt(
        (),
        key="builder_flag",
        kind="names",
        help="Set another builder flag, such as STRICT_NANS; repeatable.",
        sets="IBuilderConfig.set_flag",
        enum="BuilderFlag",
    )
    build_route: str | None = _trt(
        kind="text",
        help="Build route of the compiler, such as '-a=on -b=2'.",
        sets="IBuilderConfig.build_route",
    )
    plugin_libraries: tuple[PluginLibrary, ...] = _trt(
        (),
        key="plugin_library",
        kind="libraries",
        section=PLUGIN,
        help="Shared library with TensorRT plugins of your own; repeatable.",
        sets="IPluginRegistry.load_library",
    )
    trial_run: bool = _trt(
        True,
        kind="switch",
        section=RUNNING,
        help="Load the finished engine in a new process and run it once.",
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
        True,
        kind="switch",
        section=BUILDER,
        help="Allow TF32 Tensor Cores for FP32 convolutions and matrix products.",
        default="on",
    )
    optimization_level: int | None = _row(
        kind="integer",
        bounds=(0, 5),
        section=BUILDER,
        help="Builder optimization level, 0 to 5.",
    )
    workspace_bytes: int | None = _row(
        key="workspace",
        kind="size",
        section=BUILDER,
        help="Workspace memory limit, such as 1GiB.",
    )
    weight_streaming: bool = _row(
        False,
        kind="flag",
        section=BUILDER,
        help="Allow weights to be streamed from host memory.",
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


def trt_options_from(given: Any) -> TrtOptions:  # noqa: ANN401 - whatever has these fields
    """Options as a child receives them: the fields by name, lists where they have tuples."""
    values = {f.name: getattr(given, f.name) for f in fields(TrtOptions)}
    plain: dict[str, Any] = {
        name: tuple(v) if isinstance(v, list) else v for name, v in values.items()
    }
    plain["plugin_libraries"] = tuple(
        PluginLibrary(path=p.path, sha256=p.sha256) for p in given.plugin_libraries
    )
    return TrtOptions(**plain)
