"""Options of `trtplug build` that only enterprise TensorRT has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trtplug.cli.options import parse_bytes, path
from trtplug.errors import FileUnreadableError, UsageError
from trtplug.plugin_wish import PLUGIN_MODES, PluginWish

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtplug.backends.options import PluginLibrary, TrtOptions

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


def read_plugin_wish(options: dict[str, Any]) -> PluginWish:
    """What is asked of the plugin, from options by name.

    Raises:
        UsageError: a mode that there is not, or globs beside `never`.
    """
    mode = options.get("plugin", "auto")
    if mode not in PLUGIN_MODES:
        raise UsageError(f"unknown --plugin {mode!r}", f"it is one of {', '.join(PLUGIN_MODES)}")
    evidence = options.get("evidence")
    wish = PluginWish(
        mode=mode,
        sites=tuple(options.get("plugin_sites", ())),
        tactics=tuple(options.get("plugin_tactics", ())),
        pairs=options.get("plugin_pairs", True),
        evidence=Path(evidence) if evidence is not None else None,
    )
    if mode == "never" and (wish.sites or wish.tactics):
        raise UsageError("--plugin never leaves no site to choose", "leave out one of the two")
    return wish


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

    try:
        data = path.read_bytes()
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
        raise FileUnreadableError(path=str(path), problem=problem) from error
    return PluginLibrary(path=str(path.resolve()), sha256=hashlib.sha256(data).hexdigest())
