"""`trtplug build`: the main job."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trtplug.cli.build_options import (
    SectionedCommand,
    add_options,
    read_build_options,
    read_plugin_options,
    read_policy,
)
from trtplug.cli.options import Format, echo, epilog, format_option, parse_bytes, path
from trtplug.errors import (
    BUILD_FAILED,
    DONE,
    GATE_FAILED,
    MACHINE_LACKS,
    UsageError,
    every_error,
)

if TYPE_CHECKING:
    from trtplug.build.command import BuildCommand


@add_options()
@click.command(
    cls=SectionedCommand,
    epilog=epilog(
        "trtplug build det.onnx --target rtx4090 --shape x=1x3x640x640",
        "trtplug build --config trtplug.toml --precision fp16 --out bundle",
        statuses=(0, 1, 2, 3, 4),
        failed="--require-cache is not met",
    ),
)
@click.argument("model", type=path, required=False)
@format_option
def build(
    config: Path | None,
    force: bool | None,
    dry_run: bool | None,
    format: Format,
    **options: object,
) -> int:
    """Build one TensorRT engine per target, with a report.

    Options marked [trt] need enterprise TensorRT.
    """
    command = _command(_merged(options, config), bool(force))
    if dry_run or command.backend == "null":
        return _show_plan(command, format)
    return _build(command, format)


def _merged(options: dict[str, object], config: Path | None) -> dict[str, Any]:
    """Options over the file; what neither gives is left out."""
    from trtplug.cli.config import read_config

    given = {k: v for k, v in options.items() if v not in (None, ())}
    for key, value in given.items():
        if any(isinstance(v, str) and not v.strip() for v in _each(value)):
            raise UsageError(
                f"--{key.replace('_', '-')} is empty", "an unset variable of a script, perhaps"
            )
    return {**(read_config(config) if config is not None else {}), **given}


def _each(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)


def _command(options: dict[str, Any], force: bool) -> BuildCommand:
    from trtplug.backends.run_child import LONGEST_BUILD_S, Limits
    from trtplug.build.command import BuildCommand
    from trtplug.model.arguments import to_precision, to_ranges

    if "model" not in options:
        raise UsageError("no model was given", "trtplug build MODEL.onnx --target rtx4090")
    memory = options.get("memory_limit")
    return BuildCommand(
        model=options["model"],
        targets=tuple(options.get("target", ())),
        profiles=(
            to_ranges(options.get("shape", ())),
            *(
                to_ranges([part for part in map(str.strip, text.split(";")) if part])
                for text in options.get("profile", ())
            ),
        ),
        out=options.get("out", Path("out")),
        precision=to_precision(
            options.get("precision", "keep"),
            options.get("io_precision", "keep"),
            options.get("keep_fp32", ()),
        ),
        backend=options.get("backend", "auto"),
        options=read_build_options(options),
        wait=options.get("wait", True),
        limits=Limits(
            timeout_s=options.get("timeout") or LONGEST_BUILD_S,
            memory_bytes=parse_bytes(memory, "--memory-limit") if memory else None,
        ),
        jobs=options.get("jobs", len(os.sched_getaffinity(0))),
        repeat=options.get("repeat", 1),
        force=force,
        policy=read_policy(options),
        plugin=read_plugin_options(options),
    )


def _show_plan(command: BuildCommand, format: Format) -> int:
    from trtplug.build.plan import plan_build
    from trtplug.build.replay import check_replay
    from trtplug.cli.show import plan_text
    from trtplug.document import to_json
    from trtplug.settings import read_settings

    context, plan = plan_build(command, read_settings())
    _ = context.source  # a model that a build refuses is refused here too
    check_replay(context, plan)
    echo(to_json(plan) if format is Format.JSON else plan_text(plan))
    return DONE


def _build(command: BuildCommand, format: Format) -> int:
    from trtplug.build.run import run_build
    from trtplug.cli.progress import make_listener
    from trtplug.cli.show import show_bundle
    from trtplug.settings import read_settings

    with make_listener(sys.stderr) as listener:
        built = run_build(command, read_settings(), listener)
    show_bundle(built, command.out, format)
    for problem in built.gate_problems:
        echo(f"gate failed: {problem}\n", err=True)
    if failures := built.manifest.failures:
        lacks = {error.code for error in every_error() if error.exit_status == MACHINE_LACKS}
        return MACHINE_LACKS if all(f.code in lacks for f in failures) else BUILD_FAILED
    return GATE_FAILED if built.gate_problems else DONE
