"""`trtplug inspect` and `trtplug verify-bundle`: what a file holds, and whether it is intact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trtplug.cli.options import (
    Format,
    echo,
    epilog,
    format_option,
    lines_of,
    path,
    shape_option_for,
)
from trtplug.document import to_json
from trtplug.errors import DONE, GATE_FAILED, UsageError
from trtplug.report.tables import render_json, render_rows

if TYPE_CHECKING:
    from pathlib import Path

    from trtplug.api import EngineFile
    from trtplug.bundle.manifest import BundleCheck, Manifest, ManifestTarget
    from trtplug.lock.lock import Lock
    from trtplug.model.summary import ModelSummary
    from trtplug.timing.files import Sidecar

    Rows = list[tuple[str, str]]


def _text(
    found: ModelSummary | Manifest | Lock | Sidecar | EngineFile, file: Path, format: Format
) -> str:
    from trtplug.api import EngineFile
    from trtplug.bundle.manifest import Manifest
    from trtplug.lock.lock import Lock
    from trtplug.timing.files import Sidecar

    match found:
        case Sidecar():
            from trtplug.cli.cache import render_moved

            return render_moved("sidecar of", found, file.name.removesuffix(".json"), format)
        case Manifest():
            rows = _manifest_rows(found)
        case Lock():
            rows = _lock_rows(found)
        case EngineFile():
            rows = _engine_rows(found)
        case _:  # Not by its class, which would load onnx.
            rows = _model_rows(found)
    return render_rows(rows, format)


def _manifest_rows(manifest: Manifest) -> Rows:
    rows = [
        ("bundle of", manifest.model.file),
        ("model sha256", manifest.model.sha256),
        ("made by", f"trtplug {manifest.tool_version}"),
    ]
    for target in manifest.targets:
        rows += _target_rows(target)
    rows += [("failed", f"{f.target}: {f.code}: {f.message}") for f in manifest.failures]
    return rows


def _target_rows(target: ManifestTarget) -> Rows:
    return [
        ("target", target.target),
        ("  serves", ", ".join(target.gpus) or "no known GPU"),
        ("  builder", f"{target.backend} {target.backend_version}"),
        ("  engine", f"{target.engine.file}, {target.engine.bytes} bytes"),
        ("  sha256", target.engine.sha256),
        ("  canonical sha256", target.engine.canonical_sha256),
        ("  shapes", ", ".join(target.shapes)),
        ("  precision", target.precision),
        ("  flags", ", ".join(f"{k}={v}" for k, v in target.flags.items())),
    ]


def _lock_rows(lock: Lock) -> Rows:
    from trtplug.cli.lock import lock_facts

    return [
        *lock_facts(lock),
        ("layers", str(len(lock.layers))),
        ("kernels chosen", str(sum(layer.kernel is not None for layer in lock.layers))),
    ]


def _engine_rows(engine: EngineFile) -> Rows:
    header = engine.header
    rows = [
        ("engine", engine.file),
        ("built by", f"builder {header.builder_version} (magic {header.magic})"),
        ("bytes", str(engine.bytes)),
        ("complete", "yes" if header.complete else "no: it is shorter or longer than it says"),
    ]
    if header.prefix_bytes:
        foreign = f"{header.prefix_bytes} bytes of another tool; TensorRT refuses it like that"
        rows.append(("in front", foreign))
    if engine.manifest is None:
        rows.append(("manifest", "none beside it that lists this file with these bytes"))
    else:
        rows += _target_rows(engine.manifest)
    return rows


def _model_rows(summary: ModelSummary) -> Rows:
    rows = [
        ("model", f"{summary.file}, {summary.bytes} bytes"),
        ("sha256", summary.sha256),
        ("producer", summary.producer or "not said"),
        ("IR version", str(summary.ir_version)),
        *(("opset", f"{domain} {version}") for domain, version in summary.opsets.items()),
        *(("external data", location) for location in summary.external_files),
    ]
    for title, specs in (("input", summary.inputs), ("output", summary.outputs)):
        for spec in specs:
            dims = ", ".join("?" if d is None else str(d) for d in spec.shape)
            rows.append((title, f"{spec.name}  {spec.dtype} [{dims}]"))
    for name, axes in summary.dynamic_axes.items():
        rows.append(("dynamic axes", f"{name}: {', '.join(axes)}"))
    operators = ", ".join(f"{op} {count}" for op, count in summary.operators.items())
    rows += [
        ("nodes", f"{summary.nodes}: {operators}"),
        ("parameters", f"{summary.parameters:,}"),
        ("operations", _operations(summary)),
    ]
    return rows


def _operations(summary: ModelSummary) -> str:
    if summary.flops is None:
        return f"unknown: {summary.shapes_problem}"
    unknown = summary.flops_unknown_nodes
    left_out = f"; {unknown} nodes left out, not known" if unknown else ""
    return f"{summary.flops:,} floating-point at {', '.join(summary.shapes)}{left_out}"


@click.command(
    epilog=epilog(
        "trtplug inspect det.onnx --shape x=1x3x640x640",
        "trtplug inspect out/manifest.json",
        statuses=(0, 1, 2),
        failed="with --verify, a file differs",
    )
)
@click.argument("file", type=path)
@shape_option_for("Input shape for FLOPs of a model")
@click.option("--verify", is_flag=True, help="Compare the files of a bundle with its manifest.")
@format_option
def inspect(file: Path, shape: tuple[str, ...], verify: bool, format: Format) -> int:
    """Show the contents of a model, bundle, report or engine.

    FILE may also be a lock or the sidecar of a timing cache.
    """
    if verify:
        return _verify(file, format)

    from trtplug import api
    from trtplug.report.data import Report

    found = api.inspect(file, shapes=shape)
    if format is Format.JSON:
        echo(to_json(found))
    elif isinstance(found, Report):
        from trtplug.cli.show import show_reports

        show_reports([found], format)
    else:
        echo(_text(found, file, format))
    return DONE


@click.command(
    epilog=epilog("trtplug verify-bundle out", statuses=(0, 1, 2), failed="a file differs")
)
@click.argument("folder", type=path)
@format_option
def verify_bundle(folder: Path, format: Format) -> int:
    """Compare the files of a bundle with its manifest."""
    return _verify(folder, format)


def _verify(folder: Path, format: Format) -> int:
    from trtplug.bundle.manifest import verify_bundle as check

    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", "give the folder that `trtplug build` made")
    result = check(folder)
    echo(_verdict(folder, result, format))
    return GATE_FAILED if result.problems else DONE


def _verdict(folder: Path, result: BundleCheck, format: Format) -> str:
    if format is Format.JSON:
        record = {
            "files": result.files,
            "intact": not result.problems,
            "problems": list(result.problems),
        }
        return render_json("trtplug.bundle-check/1", record)
    verdict = f"{folder}: all {result.files} files are as the manifest says"
    if result.problems:
        verdict = f"{folder}: {len(result.problems)} of {result.files} files differ"
    return lines_of([verdict, *result.problems], format)
