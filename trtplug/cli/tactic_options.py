"""Options of `trtplug build` that say where tactics come from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trtplug.cli.options import path
from trtplug.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtplug.engine.tactic_policy import CacheUse, TacticPolicy

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
    from trtplug.engine.pins import TacticWishes, parse_pin
    from trtplug.engine.tactic_policy import TacticPolicy

    policy = TacticPolicy(
        wishes=TacticWishes(
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
    from trtplug.engine.lock import LOCK
    from trtplug.engine.manifest import read_manifest

    if not given.is_dir():
        return given
    if (given / LOCK).is_file():
        return given / LOCK
    folders = [given / t.sm for t in read_manifest(given).targets]
    if len(folders) != 1:
        names = " or ".join(f"{f.name}/{LOCK}" for f in folders) or "a bundle with an engine"
        raise UsageError(f"--locked {given} has {len(folders)} locks", f"name one of them: {names}")
    return folders[0] / LOCK
