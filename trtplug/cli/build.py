"""`trtplug build`: the main job."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trtplug.cli import build_options as trt
from trtplug.cli.options import Format, parse_bytes
from trtplug.errors import BUILD_FAILED, DONE, UsageError

if TYPE_CHECKING:
    from trtplug.pipeline import BuildCommand
    from trtplug.precision import PrecisionWish
    from trtplug.tensor import ShapeRange


def build(
    model: Annotated[Path | None, typer.Argument(help="The ONNX model.")] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(help="GPU profile (rtx4090), SM (sm_89), local or all; repeatable."),
    ] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(help="NAME=MIN[:OPT:MAX], shapes as 1x3x640x640; repeatable."),
    ] = None,
    profile: trt.Profile = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the bundle.  [default: out]")] = None,
    precision: Annotated[
        str | None,
        typer.Option(help="keep, fp16 or bf16: type to compute in.  [default: keep]"),
    ] = None,
    io_precision: Annotated[
        str | None,
        typer.Option(help="keep or match: type of inputs and outputs.  [default: keep]"),
    ] = None,
    keep_fp32: Annotated[
        list[str] | None,
        typer.Option(help="Nodes to leave in float32, as a glob of their names; repeatable."),
    ] = None,
    backend: Annotated[
        str | None, typer.Option(help="auto, trt, rtx or null.  [default: auto]")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="trtplug.toml with a [build] table; options win over it.")
    ] = None,
    tf32: Annotated[
        bool | None, typer.Option("--tf32/--no-tf32", help="TF32 for FP32 layers.  [default: on]")
    ] = None,
    optimization_level: Annotated[
        int | None, typer.Option(min=0, max=5, help="Effort of the builder, 0 to 5.")
    ] = None,
    workspace: Annotated[
        str | None, typer.Option(help="Limit on the engine's scratch memory, such as 1GiB.")
    ] = None,
    weight_streaming: Annotated[
        bool | None, typer.Option("--weight-streaming", help="Let weights stay in host memory.")
    ] = None,
    avg_timing: trt.AvgTiming = None,
    max_tactics: trt.MaxTactics = None,
    tiling: trt.Tiling = None,
    l2_limit: trt.L2Limit = None,
    aux_streams: trt.AuxStreams = None,
    tactic_shared_memory: trt.TacticSharedMemory = None,
    sparsity: trt.Sparsity = None,
    version_compatible: trt.VersionCompatible = None,
    exclude_lean_runtime: trt.ExcludeLeanRuntime = None,
    hardware_compatibility: trt.HardwareCompatibility = None,
    strip: trt.Strip = None,
    refit: trt.Refit = None,
    tactic_source: trt.TacticSource = None,
    preview: trt.Preview = None,
    parser_flag: trt.ParserFlag = None,
    builder_flag: trt.BuilderFlag = None,
    build_route: trt.BuildRoute = None,
    plugin_library: trt.PluginLibraries = None,
    trial_run: trt.TrialRun = None,
    wait: trt.Wait = None,
    repeat: Annotated[
        int | None,
        typer.Option(min=1, max=1000, help="Build each engine so often and compare the builds."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, max=1024, help="Builds at once.  [default: one a processor]"),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0.1, max=1e9, help="Time limit on each build, in seconds.")
    ] = None,
    memory_limit: Annotated[
        str | None, typer.Option(help="Limit on each builder's memory, such as 8GiB.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Build even where the store has the engine.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan and build nothing.")
    ] = False,
    format: Annotated[Format, typer.Option(help="Form of the result on stdout.")] = Format.TEXT,
) -> int:
    """Build one engine per target, with a report of its layers and kernels."""
    options = {
        k: v for k, v in locals().items() if k not in ("config", "force", "dry_run", "format")
    }
    command = _command(_merged(options, config), force)
    if dry_run or command.backend == "null":
        return _show_plan(command, format)
    return _build(command, format)


def _merged(options: dict[str, Any], config: Path | None) -> dict[str, Any]:
    """Options over the file; what neither gives is left out."""
    from trtplug.cli.config import read_config

    given = {k: v for k, v in options.items() if v is not None}
    return {**(read_config(config) if config is not None else {}), **given}


def _command(options: dict[str, Any], force: bool) -> BuildCommand:
    from trtplug.backends.options import BuildOptions
    from trtplug.backends.worker import Limits
    from trtplug.pipeline import BuildCommand
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
        shapes=tuple(parse_shape_range(s) for s in options.get("shape", ())),
        out=options.get("out", Path("out")),
        precision=_precision(options),
        backend=options.get("backend", "auto"),
        options=BuildOptions(
            tf32=options.get("tf32", True),
            optimization_level=options.get("optimization_level"),
            workspace_bytes=sizes.get("workspace"),
            weight_streaming=options.get("weight_streaming", False),
            trt=trt.trt_options(options),
        ),
        more_profiles=tuple(_profile(text) for text in options.get("profile", ())),
        wait=options.get("wait", True),
        limits=Limits(timeout_s=options.get("timeout"), memory_bytes=sizes.get("memory_limit")),
        jobs=options.get("jobs", len(os.sched_getaffinity(0))),
        repeat=options.get("repeat", 1),
        force=force,
    )


def _profile(text: str) -> tuple[ShapeRange, ...]:
    from trtplug.tensor import parse_shape_range

    return tuple(parse_shape_range(part.strip()) for part in text.split(";") if part.strip())


def _precision(options: dict[str, Any]) -> PrecisionWish:
    from trtplug.precision import PrecisionWish

    given = options.get("precision", "keep")
    io = options.get("io_precision", "keep")
    for name, value, known in (
        ("precision", given, ("keep", "fp16", "bf16")),
        ("io-precision", io, ("keep", "match")),
    ):
        if value not in known:
            raise UsageError(f"unknown --{name} {value!r}", f"it is one of {', '.join(known)}")
    return PrecisionWish(target=given, io=io, keep_fp32=tuple(options.get("keep_fp32", ())))


def _show_plan(command: BuildCommand, format: Format) -> int:
    from trtplug.cli.show import plan_text
    from trtplug.document import to_json
    from trtplug.model.source import read_source
    from trtplug.pipeline import plan_build
    from trtplug.settings import read_settings

    plan = plan_build(command, read_settings()).plan
    read_source(command.model, plan.model_sha256, command.shapes, command.precision)
    typer.echo(to_json(plan) if format is Format.JSON else plan_text(plan), nl=False)
    return DONE


def _build(command: BuildCommand, format: Format) -> int:
    from trtplug.cli.progress import make_listener
    from trtplug.cli.show import show_bundle
    from trtplug.pipeline import run_build
    from trtplug.settings import read_settings

    with make_listener(sys.stderr) as listener:
        built = run_build(command, read_settings(), listener)
    show_bundle(built, command.out, format)
    return BUILD_FAILED if built.manifest.failures else DONE
