"""Options of `trtplug build` that only enterprise TensorRT has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trtplug.cli.options import parse_bytes, path
from trtplug.errors import UsageError
from trtplug.files import read_bytes
from trtplug.plugin.options import PLUGIN_MODES, PluginOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trtplug.backends.options import PluginLibrary, TrtOptions
    from trtplug.lock.policy import CacheUse, TacticPolicy


BUILD_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "What is built": (
        "target",
        "shape",
        "profile",
        "precision",
        "io_precision",
        "keep_fp32",
        "backend",
        "out",
        "config",
        "force",
        "dry_run",
        "format",
    ),
    "Builder": ("tf32", "optimization_level", "workspace", "weight_streaming"),
    "How it runs": ("repeat", "jobs", "timeout", "memory_limit", "trial_run", "wait"),
    "Kernels, timing caches and locks": (
        "pin",
        "ban",
        "prefer",
        "timing_cache",
        "require_cache",
        "locked",
        "avg_timing",
        "max_tactics",
        "tactic_source",
        "tactic_shared_memory",
    ),
    "Plugin": (
        "plugin",
        "plugin_sites",
        "plugin_tactics",
        "plugin_pairs",
        "evidence",
        "plugin_library",
    ),
    "More of enterprise TensorRT": (
        "aux_streams",
        "tiling",
        "l2_limit",
        "sparsity",
        "version_compatible",
        "exclude_lean_runtime",
        "hardware_compatibility",
        "strip",
        "refit",
        "build_route",
        "preview",
        "parser_flag",
        "builder_flag",
    ),
}
"""Heading -> names of options, in the order in which they are shown."""


class SectionedCommand(click.Command):
    """Shows the options of `trtplug build` by section; those that none names come last."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One list a section."""
        found = {p.name: p.get_help_record(ctx) for p in self.get_params(ctx)}
        records = {name: record for name, record in found.items() if record is not None}
        for title, names in BUILD_SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([records.pop(name) for name in names])
        with formatter.section("Options"):
            formatter.write_dl(list(records.values()))


_OPTIONS = (
    click.option(
        "--pin",
        multiple=True,
        help="[trt] LAYER=TACTIC: a layer or ONNX node, and a tactic's hash or kernel; repeatable.",
    ),
    click.option(
        "--ban", multiple=True, help="[trt] Kernels that no layer may use, as a glob; repeatable."
    ),
    click.option(
        "--prefer",
        multiple=True,
        help="[trt] Kernels to use where a layer has any, as a glob; repeatable.",
    ),
    click.option(
        "--timing-cache/--no-timing-cache",
        default=None,
        help="[trt] Begin with the store's timing cache, and add to it.  [default: on]",
    ),
    click.option(
        "--require-cache",
        is_flag=True,
        default=None,
        help="[trt] End with status 1 unless the timing cache had every tactic.",
    ),
    click.option(
        "--locked",
        type=path,
        help="Replay this lock.json, or that of a bundle; fail on any difference.",
    ),
)


def tactic_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that gives a command all of them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def read_policy(options: dict[str, Any]) -> TacticPolicy:
    """From options by name, as given on the command line or in trtplug.toml.

    Raises:
        UsageError: a value or a combination that cannot be meant.
        DocumentError: `--locked` names a folder that is no bundle.
    """
    from trtplug.lock.pins import TacticOverrides, parse_pin
    from trtplug.lock.policy import TacticPolicy

    policy = TacticPolicy(
        overrides=TacticOverrides(
            pins=tuple(parse_pin(text) for text in options.get("pin", ())),
            bans=tuple(options.get("ban", ())),
            prefers=tuple(options.get("prefer", ())),
        ),
        cache=_cache_use(options),
        locked=_lock_file(Path(options["locked"])) if "locked" in options else None,
    )
    policy.check()
    return policy


def _cache_use(options: dict[str, Any]) -> CacheUse:
    use, require = options.get("timing_cache", True), options.get("require_cache", False)
    if require and not use:
        raise UsageError(
            "--require-cache and --no-timing-cache contradict each other", "give one of the two"
        )
    if require:
        return "require"
    return "use" if use else "fresh"


def _lock_file(given: Path) -> Path:
    """The lock in a bundle of one target, or in a target's folder; any other path is the lock."""
    from trtplug.bundle.manifest import read_manifest
    from trtplug.lock.lock import LOCK

    if not given.is_dir():
        return given
    if (given / LOCK).is_file():
        return given / LOCK
    folders = [given / t.sm for t in read_manifest(given).targets]
    if len(folders) != 1:
        names = " or ".join(f"{f.name}/{LOCK}" for f in folders) or "a bundle with an engine"
        raise UsageError(f"--locked {given} has {len(folders)} locks", f"name one of them: {names}")
    return folders[0] / LOCK


_NUMBERS = (
    ("--avg-timing", 1, 64, "How often each tactic is timed."),
    ("--max-tactics", 1, 10000, "Most tactics timed for a layer."),
    ("--aux-streams", 0, 64, "Most streams beside the main one."),
)
_FLAGS = (
    ("--sparsity", "Use sparse kernels for weights with 2:4 zeros."),
    ("--version-compatible", "An engine that loads in later versions too."),
    ("--exclude-lean-runtime", "Leave the lean runtime out of a version-compatible engine."),
    ("--strip", "Leave refittable weights out."),
)
_WORDS = (
    ("--tiling", "none, fast, moderate or full."),
    ("--l2-limit", "What tiling may take of the L2 cache, such as 1MiB."),
    ("--tactic-shared-memory", "Limit on a tactic's shared memory, such as 48KiB."),
    ("--hardware-compatibility", "none, ampere_plus or same_compute_capability."),
    ("--refit", "all or identical: which weights may be set later."),
    ("--build-route", "The compiler's route, such as '-a=on -b=2'."),
)
_LISTS = (
    ("--tactic-source", "+NAME or -NAME, such as -JIT_CONVOLUTIONS; repeatable."),
    ("--preview", "Preview feature, +NAME or -NAME; repeatable."),
    ("--parser-flag", "ONNX parser flag, +NAME or -NAME; repeatable."),
    ("--builder-flag", "Builder flag, such as STRICT_NANS; repeatable."),
)
_GLOBS = (
    ("--plugin-sites", "Sites or pairs that may get the plugin, as a glob; repeatable."),
    ("--plugin-tactics", "Tactics of the plugin to offer, as a glob; repeatable."),
)
_SWITCHES = (
    (
        "--plugin-pairs/--no-plugin-pairs",
        "One kernel for a depthwise + pointwise pair.  [default: on]",
    ),
    ("--trial-run/--no-trial-run", "Load and run the finished engine once.  [default: on]"),
    ("--wait/--no-wait", "Wait while another build holds the GPU.  [default: on]"),
)


def trt_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that gives a command all of them; none has a default."""
    for option in reversed(tuple(_decorators())):
        command = option(command)
    return command


def _decorators() -> list[Callable[[Callable[..., Any]], Callable[..., Any]]]:
    def text(words: str) -> str:
        return f"[trt] {words}"

    return [
        *(click.option(n, type=click.IntRange(a, b), help=text(h)) for n, a, b, h in _NUMBERS),
        *(click.option(n, is_flag=True, default=None, help=text(h)) for n, h in _FLAGS),
        *(click.option(n, help=text(h)) for n, h in _WORDS),
        *(click.option(n, multiple=True, help=text(h)) for n, h in _LISTS),
        click.option(
            "--plugin-library",
            type=path,
            multiple=True,
            help=text("Shared library with plugins; repeatable."),
        ),
        click.option(
            "--plugin",
            type=click.Choice(PLUGIN_MODES),
            help=text(
                "Which sites get our plugin: auto (where a measurement says that it wins), always, "
                "never.  [default: auto]"
            ),
        ),
        *(click.option(n, multiple=True, help=text(h)) for n, h in _GLOBS),
        click.option(
            "--evidence", type=path, help=text("Measurements for --plugin auto, as JSON lines.")
        ),
        *(click.option(n, default=None, help=text(h)) for n, h in _SWITCHES),
    ]


def read_trt_options(options: dict[str, Any]) -> TrtOptions:
    """From options by name, as given on the command line or in trtplug.toml.

    Raises:
        UsageError: a value that cannot be meant.
        FileUnreadableError: a plugin library that cannot be read.
    """
    from trtplug.backends.options import TrtOptions

    plain = ("avg_timing", "max_tactics", "aux_streams", "sparsity", "version_compatible")
    more = ("exclude_lean_runtime", "strip", "build_route", "trial_run")
    given = {k: options[k] for k in (*plain, *more) if k in options}
    for key in ("tiling", "hardware_compatibility", "refit"):
        if key in options:
            given[key] = options[key].lower()
    for key, name in (
        ("l2_limit", "l2_limit_bytes"),
        ("tactic_shared_memory", "tactic_shared_memory_bytes"),
    ):
        if key in options:
            given[name] = parse_bytes(options[key], f"--{key.replace('_', '-')}")
    for key, name in (
        ("tactic_source", "tactic_sources"),
        ("preview", "preview"),
        ("parser_flag", "parser_flags"),
    ):
        if key in options:
            given[name] = tuple(signed_name(v, f"--{key.replace('_', '-')}") for v in options[key])
    if "builder_flag" in options:
        given["builder_flags"] = tuple(v.upper() for v in options["builder_flag"])
    if "plugin_library" in options:
        given["plugin_libraries"] = tuple(_library(Path(p)) for p in options["plugin_library"])
    return TrtOptions(**given)


def read_plugin_options(options: dict[str, Any]) -> PluginOptions:
    """What is asked of the plugin, from options by name.

    Raises:
        UsageError: a mode that there is not, or globs beside `never`.
    """
    mode = options.get("plugin", "auto")
    if mode not in PLUGIN_MODES:
        raise UsageError(f"unknown --plugin {mode!r}", f"it is one of {', '.join(PLUGIN_MODES)}")
    evidence = options.get("evidence")
    wanted = PluginOptions(
        mode=mode,
        sites=tuple(options.get("plugin_sites", ())),
        tactics=tuple(options.get("plugin_tactics", ())),
        pairs=options.get("plugin_pairs", True),
        evidence=Path(evidence) if evidence is not None else None,
    )
    if mode == "never" and (wanted.sites or wanted.tactics):
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
        raise UsageError(f"{option} {value!r} names nothing", f"write {option} +NAME or -NAME")
    return sign + name


def _library(path: Path) -> PluginLibrary:
    import hashlib

    from trtplug.backends.options import PluginLibrary

    data = read_bytes(path, largest=4 << 30)
    return PluginLibrary(path=str(path.resolve()), sha256=hashlib.sha256(data).hexdigest())
