"""All options of `trtplug build`, one row each, and the values that they are read into.

Rows of options for the builder are fields in `trtplug.backends.options`; the others are here.
Command line, `--help`, trtplug.toml and the table in the documentation are made from the rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trtplug.backends.options import (
    BUILDER,
    ENGINE,
    JOBS,
    LISTS,
    PLUGIN,
    REPEAT,
    RUNNING,
    SELECTION,
    TIMEOUT_S,
    BuildOptions,
    Option,
    TrtOptions,
    options_of,
)
from trtplug.cli.options import (
    IO_PRECISION_HELP,
    IO_PRECISIONS,
    KEEP_FP32_HELP,
    PRECISION_HELP,
    PRECISIONS,
    SHAPE_HELP,
    SHAPE_METAVAR,
    TARGET_HELP,
    NumberRange,
    parse_bytes,
    path,
)
from trtplug.errors import UsageError
from trtplug.files import read_bytes
from trtplug.plugin.options import PLUGIN_MODES, PluginOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from trtplug.backends.options import Kind, PluginLibrary
    from trtplug.lock.policy import CacheUse, TacticPolicy


OUTPUT = "Model and output"
SECTIONS = (OUTPUT, BUILDER, RUNNING, SELECTION, PLUGIN, ENGINE)
"""Headings, in the order of `--help`."""

MODEL = Option("model", "path", OUTPUT, "ONNX model.")
"""An argument on the command line."""

_OPTIONS = (
    Option("target", "texts", OUTPUT, TARGET_HELP, metavar="TARGET"),
    Option("shape", "texts", OUTPUT, SHAPE_HELP, metavar=SHAPE_METAVAR),
    Option(
        "profile",
        "texts",
        OUTPUT,
        "Another optimization profile: NAME=MIN:OPT:MAX, with ; between inputs; repeatable.",
        metavar="SHAPES",
    ),
    Option("precision", "choice", OUTPUT, PRECISION_HELP, choices=PRECISIONS, default="keep"),
    Option(
        "io_precision",
        "choice",
        OUTPUT,
        IO_PRECISION_HELP,
        choices=IO_PRECISIONS,
        default="keep",
    ),
    Option("keep_fp32", "texts", OUTPUT, KEEP_FP32_HELP, metavar="GLOB"),
    Option(
        "backend",
        "choice",
        OUTPUT,
        "TensorRT (trt) or TensorRT-RTX (rtx); null prints the plan.",
        choices=("auto", "trt", "rtx", "null"),
        default="auto",
    ),
    Option("out", "path", OUTPUT, "Folder of the bundle.", metavar="FOLDER", default="out"),
    Option(
        "config",
        "path",
        OUTPUT,
        "trtplug.toml with a [build] table; options override it.",
        in_config=False,
    ),
    Option("force", "flag", OUTPUT, "Build even if the store has the engine.", in_config=False),
    Option("dry_run", "flag", OUTPUT, "Print the plan and build nothing.", in_config=False),
    *options_of(BuildOptions).values(),
    Option(
        "repeat",
        "integer",
        RUNNING,
        "Build each engine N times and compare the results.",
        bounds=REPEAT,
        default="1",
    ),
    Option(
        "jobs",
        "integer",
        RUNNING,
        "Number of parallel builds.",
        bounds=JOBS,
        default="one per CPU",
    ),
    Option(
        "timeout", "number", RUNNING, "Time limit per build.", bounds=TIMEOUT_S, metavar="SECONDS"
    ),
    Option("memory_limit", "size", RUNNING, "Memory limit per build, such as 8GiB."),
    Option(
        "wait",
        "switch",
        RUNNING,
        "Wait while another build uses the GPU.",
        backend="trt",
        default="on",
    ),
    Option(
        "pin",
        "texts",
        SELECTION,
        "Tactic of a layer or ONNX node, by hash or kernel name; repeatable.",
        backend="trt",
        metavar="LAYER=TACTIC",
    ),
    Option(
        "ban",
        "texts",
        SELECTION,
        "Kernels that no layer may use; repeatable.",
        backend="trt",
        metavar="GLOB",
    ),
    Option(
        "prefer",
        "texts",
        SELECTION,
        "Kernels to use where a layer has one of them; repeatable.",
        backend="trt",
        metavar="GLOB",
    ),
    Option(
        "timing_cache",
        "switch",
        SELECTION,
        "Use and update the store's timing cache.",
        backend="trt",
        default="on",
    ),
    Option(
        "require_cache",
        "flag",
        SELECTION,
        "Exit with status 1 unless the timing cache had every tactic.",
        backend="trt",
    ),
    Option(
        "locked",
        "path",
        SELECTION,
        "Repeat the build of a lock.json, or of a bundle; fail on any difference.",
    ),
    Option(
        "plugin",
        "choice",
        PLUGIN,
        "Use trtplug's plugin where measured faster (auto), wherever possible, or never.",
        backend="trt",
        choices=PLUGIN_MODES,
        default="auto",
    ),
    Option(
        "plugin_sites",
        "texts",
        PLUGIN,
        "Sites or pairs (dw+pw) that may use the plugin; repeatable.",
        backend="trt",
        metavar="GLOB",
    ),
    Option(
        "plugin_tactics",
        "texts",
        PLUGIN,
        "Tactics of `trtplug kernels list` that the plugin may use; repeatable.",
        backend="trt",
        metavar="GLOB",
    ),
    Option(
        "plugin_pairs",
        "switch",
        PLUGIN,
        "Allow one kernel for a depthwise + pointwise pair.",
        backend="trt",
        default="on",
    ),
    Option(
        "evidence", "path", PLUGIN, "Measurements for --plugin auto, as JSON lines.", backend="trt"
    ),
    *options_of(TrtOptions).values(),
)

OPTIONS = tuple(sorted(_OPTIONS, key=lambda row: SECTIONS.index(row.section)))
"""All options of `trtplug build`, by section."""

_METAVARS: Mapping[Kind, str] = {
    "integer": "N",
    "libraries": "FILE",
    "names": "NAME",
    "path": "FILE",
    "signed": "[+|-]NAME",
    "size": "SIZE",
    "text": "TEXT",
}


def value_of(row: Option) -> str:
    """How the value of an option is written in `--help`; empty for flags and switches."""
    return row.metavar or _METAVARS.get(row.kind, "|".join(row.choices))


class SectionedCommand(click.Command):
    """Shows options by section; those without a row come last."""

    rows: tuple[Option, ...] = ()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One list per section."""
        options = (p for p in self.get_params(ctx) if isinstance(p, click.Option))
        found = {p.name: p.get_help_record(ctx) for p in options}
        records = {name: record for name, record in found.items() if record is not None}
        for title in SECTIONS:
            names = [row.key for row in self.rows if row.section == title]
            with formatter.section(title):
                formatter.write_dl([records.pop(name) for name in names])
        with formatter.section("Options"):
            formatter.write_dl(list(records.values()))


def add_options(
    rows: Iterable[Option] = OPTIONS,
) -> Callable[[SectionedCommand], SectionedCommand]:
    """A decorator that gives a command the options of these rows; none has a default."""

    def add(command: SectionedCommand) -> SectionedCommand:
        command.rows = tuple(rows)
        # The options that the command has already come behind them.
        command.params[1:1] = map(_click_option, command.rows)
        return command

    return add


class _RowOption(click.Option):
    """An option whose help has its range already."""

    def get_help_extra(self, ctx: click.Context) -> Any:  # noqa: ANN401, ARG002 - a TypedDict of click's
        return {}


def _click_option(row: Option) -> click.Option:
    names = [f"{row.flag}/{row.off_flag}" if row.kind == "switch" else row.flag, row.key]
    if row.kind in ("flag", "switch"):
        return click.Option(names, is_flag=True, default=None, help=_help(row))
    return _RowOption(
        names,
        type=_click_type(row),
        multiple=row.kind in LISTS,
        metavar=value_of(row) if not row.choices or row.metavar else None,
        help=_help(row),
    )


def _help(row: Option) -> str:
    mark = f"[{row.backend}] " if row.backend else ""
    limits = [str(n) for n in row.bounds or () if row.kind == "integer"]
    brackets = (" to ".join(limits), row.default and f"default: {row.default}")
    return f"{mark}{row.help}" + "".join(f"  [{text}]" for text in brackets if text)


def _click_type(row: Option) -> Any:  # noqa: ANN401 - as click takes it
    match row.kind:
        case "integer" if row.bounds is not None:
            return click.IntRange(int(row.bounds[0]), int(row.bounds[1]))
        case "number" if row.bounds is not None:
            return NumberRange(*row.bounds)
        case "choice":
            return click.Choice(row.choices, case_sensitive=False)
        case "path" | "libraries":
            return path
        case _:
            return None


def read_build_options(options: Mapping[str, Any]) -> BuildOptions:
    """From options by key, as given on the command line or in trtplug.toml.

    Raises:
        UsageError: a bad value.
        FileUnreadableError: a plugin library that cannot be read.
    """
    trt = TrtOptions(**_fields(TrtOptions, options))
    return BuildOptions(**_fields(BuildOptions, options), trt=trt)


def _fields(record: type, options: Mapping[str, Any]) -> dict[str, Any]:
    """Field -> value, of the options that were given."""
    rows = options_of(record).items()
    return {name: _value(row, options[row.key]) for name, row in rows if row.key in options}


def _value(row: Option, given: Any) -> Any:  # noqa: ANN401 - of any option
    match row.kind:
        case "size":
            return parse_bytes(given, row.flag)
        case "signed":
            return tuple(signed_name(value, row.flag) for value in given)
        case "names":
            return tuple(value.upper() for value in given)
        case "libraries":
            return tuple(_library(Path(value)) for value in given)
        case "choice":
            return given.lower()
        case _:
            return given


def read_policy(options: Mapping[str, Any]) -> TacticPolicy:
    """Which tactics and timing caches to use, from options by key.

    Raises:
        UsageError: a bad value or combination.
        DocumentError: `--locked` names a folder that is not a bundle.
    """
    from trtplug.bundle.manifest import file_of
    from trtplug.lock.lock import LOCK
    from trtplug.lock.policy import TacticOverrides, TacticPolicy, parse_pin

    policy = TacticPolicy(
        overrides=TacticOverrides(
            pins=tuple(parse_pin(text) for text in options.get("pin", ())),
            bans=tuple(options.get("ban", ())),
            prefers=tuple(options.get("prefer", ())),
        ),
        cache=_cache_use(options),
        locked=file_of(Path(options["locked"]), LOCK) if "locked" in options else None,
    )
    policy.check()
    return policy


def _cache_use(options: Mapping[str, Any]) -> CacheUse:
    use, require = options.get("timing_cache", True), options.get("require_cache", False)
    if require and not use:
        raise UsageError(
            "--require-cache and --no-timing-cache contradict each other", "give one of the two"
        )
    if require:
        return "require"
    return "use" if use else "fresh"


def read_plugin_options(options: Mapping[str, Any]) -> PluginOptions:
    """Where to use the plugin, from options by key.

    Raises:
        UsageError: globs together with `never`.
    """
    evidence = options.get("evidence")
    wanted = PluginOptions(
        mode=options.get("plugin", "auto"),
        sites=tuple(options.get("plugin_sites", ())),
        tactics=tuple(options.get("plugin_tactics", ())),
        pairs=options.get("plugin_pairs", True),
        evidence=Path(evidence) if evidence is not None else None,
    )
    if wanted.mode == "never" and (wanted.sites or wanted.tactics):
        raise UsageError("--plugin never leaves no site to choose", "leave out one of the two")
    return wanted


def signed_name(value: str, option: str) -> str:
    """`+name`, `-name` or `name` as `+NAME` or `-NAME`.

    Raises:
        UsageError: there is no name.
    """
    sign = value[0] if value[:1] in ("+", "-") else "+"
    name = value.lstrip("+-").upper()
    if not name:
        raise UsageError(f"{option} {value!r} has no name", f"write {option} +NAME or -NAME")
    return sign + name


def _library(path: Path) -> PluginLibrary:
    import hashlib

    from trtplug.backends.options import PluginLibrary

    data = read_bytes(path, largest=4 << 30)
    return PluginLibrary(path=str(path.resolve()), sha256=hashlib.sha256(data).hexdigest())
