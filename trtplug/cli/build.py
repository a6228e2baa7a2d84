"""`trtplug build`: the main job."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trtplug.cli.build_options import (
    SectionedCommand,
    read_plugin_options,
    read_policy,
    read_trt_options,
    tactic_options,
    trt_options,
)
from trtplug.cli.options import Format, NumberRange, format_option, parse_bytes, path
from trtplug.errors import BUILD_FAILED, DONE, GATE_FAILED, UsageError

if TYPE_CHECKING:
    from trtplug.build.command import BuildCommand
    from trtplug.model.precision_options import PrecisionOptions
    from trtplug.tensor import ShapeRange


@click.command(cls=SectionedCommand)
@click.argument("model", type=path, required=False)
@click.option(
    "--target",
    multiple=True,
    help="GPU profile (rtx4090), SM (sm_89), local or all; repeatable.",
)
@click.option(
    "--shape", multiple=True, help="NAME=MIN[:OPT:MAX], shapes as 1x3x640x640; repeatable."
)
@click.option(
    "--profile",
    multiple=True,
    help="One more optimization profile: NAME=MIN[:OPT:MAX], with ; between inputs; repeatable.",
)
@click.option("--out", type=path, help="Folder of the bundle.  [default: out]")
@click.option("--precision", help="keep, fp16 or bf16: type to compute in.  [default: keep]")
@click.option("--io-precision", help="keep or match: type of inputs and outputs.  [default: keep]")
@click.option(
    "--keep-fp32",
    multiple=True,
    help="Nodes to leave in float32, as a glob of their names; repeatable.",
)
@click.option("--backend", help="auto, trt, rtx or null.  [default: auto]")
@click.option("--config", type=path, help="trtplug.toml with a [build] table; options win over it.")
@click.option("--tf32/--no-tf32", default=None, help="TF32 for FP32 layers.  [default: on]")
@click.option(
    "--optimization-level", type=click.IntRange(0, 5), help="Effort of the builder, 0 to 5."
)
@click.option("--workspace", help="Limit on the engine's scratch memory, such as 1GiB.")
@click.option(
    "--weight-streaming", is_flag=True, default=None, help="Let weights stay in host memory."
)
@trt_options
@tactic_options
@click.option(
    "--repeat",
    type=click.IntRange(1, 1000),
    help="Build each engine so often and compare the builds.",
)
@click.option(
    "--jobs", type=click.IntRange(1, 1024), help="Builds at once.  [default: one a processor]"
)
@click.option(
    "--timeout",
    type=NumberRange(0.1, 1e9),
    help="Time limit on each build, in seconds.",
)
@click.option("--memory-limit", help="Limit on each builder's memory, such as 8GiB.")
@click.option("--force", is_flag=True, help="Build even where the store has the engine.")
@click.option("--dry-run", is_flag=True, help="Print the plan and build nothing.")
@format_option
def build(
    config: Path | None, force: bool, dry_run: bool, format: Format, **options: object
) -> int:
    """Build one engine per target, with a report of its layers.

    Options that are marked [trt] are for enterprise TensorRT alone.
    """
    command = _command(_merged(options, config), force)
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
    from trtplug.backends.options import BuildOptions
    from trtplug.backends.run_child import LONGEST_BUILD_S, Limits
    from trtplug.build.command import BuildCommand
    from trtplug.tensor import parse_shape_range

    if "model" not in options:
        raise UsageError("no model was given", "trtplug build MODEL.onnx --target rtx4090")
    sizes = {
        k: parse_bytes(options[k], f"--{k.replace('_', '-')}")
        for k in ("workspace", "memory_limit")
        if k in options
    }
    return BuildCommand(
        model=options["model"],
        targets=tuple(options.get("target", ())),
        profiles=(
            tuple(parse_shape_range(s) for s in options.get("shape", ())),
            *map(_profile, options.get("profile", ())),
        ),
        out=options.get("out", Path("out")),
        precision=_precision(options),
        backend=options.get("backend", "auto"),
        options=BuildOptions(
            tf32=options.get("tf32", True),
            optimization_level=options.get("optimization_level"),
            workspace_bytes=sizes.get("workspace"),
            weight_streaming=options.get("weight_streaming", False),
            trt=read_trt_options(options),
        ),
        wait=options.get("wait", True),
        limits=Limits(
            timeout_s=options.get("timeout") or LONGEST_BUILD_S,
            memory_bytes=sizes.get("memory_limit"),
        ),
        jobs=options.get("jobs", len(os.sched_getaffinity(0))),
        repeat=options.get("repeat", 1),
        force=force,
        policy=read_policy(options),
        plugin=read_plugin_options(options),
    )


def _profile(text: str) -> tuple[ShapeRange, ...]:
    from trtplug.tensor import parse_shape_range

    return tuple(parse_shape_range(part.strip()) for part in text.split(";") if part.strip())


def _precision(options: dict[str, Any]) -> PrecisionOptions:
    from trtplug.model.precision_options import PrecisionOptions

    given = options.get("precision", "keep")
    io = options.get("io_precision", "keep")
    for name, value, known in (
        ("precision", given, ("keep", "fp16", "bf16")),
        ("io-precision", io, ("keep", "match")),
    ):
        if value not in known:
            raise UsageError(f"unknown --{name} {value!r}", f"it is one of {', '.join(known)}")
    return PrecisionOptions(target=given, io=io, keep_fp32=tuple(options.get("keep_fp32", ())))


def _show_plan(command: BuildCommand, format: Format) -> int:
    from trtplug.build.plan import plan_build
    from trtplug.build.replay import check_replay
    from trtplug.cli.show import plan_text
    from trtplug.document import to_json
    from trtplug.settings import read_settings

    context, plan = plan_build(command, read_settings())
    _ = context.source  # a model that a build refuses is refused here too
    check_replay(context, plan)
    click.echo(to_json(plan) if format is Format.JSON else plan_text(plan), nl=False)
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
        click.echo(f"gate failed: {problem}", err=True)
    if built.manifest.failures:
        return BUILD_FAILED
    return GATE_FAILED if built.gate_problems else DONE
