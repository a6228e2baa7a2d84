"""`trtplug inspect` and `trtplug verify-bundle`: what a file holds, and whether it is intact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trtplug.cli.options import SHAPE_METAVAR, Format, epilog, format_option, path
from trtplug.document import read_document, schema_name, to_json
from trtplug.errors import DONE, GATE_FAILED, DocumentError, UsageError
from trtplug.report.tables import render_rows

if TYPE_CHECKING:
    from pathlib import Path

    from trtplug.bundle.engine_file import EngineHeader
    from trtplug.bundle.manifest import BundleCheck, Manifest, ManifestTarget
    from trtplug.lock.lock import Lock
    from trtplug.model.summary import ModelSummary
    from trtplug.report.data import Report
    from trtplug.timing.files import Sidecar


_SNIFFED = 1 << 16


def inspect_file(file: Path, shapes: tuple[str, ...], format: Format) -> str:
    """The text for one file.

    Raises:
        TrtplugError: it cannot be read, or is of no kind that is known here.
    """
    from trtplug.bundle.engine_file import read_header
    from trtplug.bundle.manifest import MANIFEST, read_manifest

    if file.is_dir():
        if not (file / MANIFEST).is_file():
            raise UsageError(f"{file} is a folder without {MANIFEST}", "a bundle has one")
        return _manifest(read_manifest(file), format)
    if _looks_like_json(file):
        return _document(file, format)
    header = read_header(file) if file.is_file() else None
    if header is not None:
        return _engine(file, header, format)
    return _model(file, shapes, format)


def _looks_like_json(file: Path) -> bool:
    if not file.is_file():
        return False
    try:
        with file.open("rb") as stream:
            return stream.read(_SNIFFED).lstrip().startswith(b"{")
    except OSError:
        return False


def _document(file: Path, format: Format) -> str:
    from trtplug.bundle import manifest
    from trtplug.lock import lock
    from trtplug.report import data as report
    from trtplug.timing.files import SCHEMA as SIDECAR_SCHEMA
    from trtplug.timing.files import Sidecar

    try:
        schema = schema_name(file.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        schema = None
    name = (schema or "").partition("/")[0]
    if name == "trtplug.report":
        return _report(read_document(report.Report, report.SCHEMA, file), format)
    if name == "trtplug.manifest":
        return _manifest(read_document(manifest.Manifest, manifest.SCHEMA, file), format)
    if name == "trtplug.lock":
        return _lock(read_document(lock.Lock, lock.SCHEMA, file), format)
    if name == "trtplug.timing-cache":
        return _sidecar(read_document(Sidecar, SIDECAR_SCHEMA, file), file, format)
    known = "report, manifest, lock or timing cache's sidecar"
    raise DocumentError(path=str(file), wanted=known, problem=f"its schema is {schema!r}")


def _report(report: Report, format: Format) -> str:
    if format is Format.JSON:
        return to_json(report)
    if format is Format.MARKDOWN:
        from trtplug.report.markdown import report_to_markdown

        return report_to_markdown(report)
    from trtplug.cli.show import render_text

    return render_text(report).rstrip("\n") + "\n"


def _manifest(manifest: Manifest, format: Format) -> str:
    if format is Format.JSON:
        return to_json(manifest)
    rows = [
        ("bundle of", manifest.model.file),
        ("model sha256", manifest.model.sha256),
        ("made by", f"trtplug {manifest.tool_version}"),
    ]
    for target in manifest.targets:
        rows += _target_rows(target)
    rows += [("failed", f"{f.target}: {f.code}: {f.message}") for f in manifest.failures]
    return render_rows(rows, format)


def _target_rows(target: ManifestTarget) -> list[tuple[str, str]]:
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


def _lock(lock: Lock, format: Format) -> str:
    if format is Format.JSON:
        return to_json(lock)
    rows = [
        ("lock of", lock.engine.file),
        ("model", f"{lock.model.file}  sha256 {lock.model.sha256}"),
        ("target", lock.target),
        ("builder", f"{lock.backend} {lock.backend_version} ({lock.library})"),
        ("shapes", ", ".join(lock.shapes)),
        ("engine sha256", lock.engine.sha256),
        ("layers", str(len(lock.layers))),
        ("kernels chosen", str(sum(layer.kernel is not None for layer in lock.layers))),
    ]
    return render_rows(rows, format)


def _sidecar(sidecar: Sidecar, file: Path, format: Format) -> str:
    from trtplug.cli.cache import render_moved

    if format is Format.JSON:
        return to_json(sidecar)
    return render_moved("sidecar of", sidecar, file.name.removesuffix(".json"), format)


def _engine(file: Path, header: EngineHeader, format: Format) -> str:
    import dataclasses
    import json

    target = _manifest_beside(file)
    if format is Format.JSON:
        document = {
            "schema": "trtplug.engine/1",
            "file": file.name,
            "header": dataclasses.asdict(header),
            "manifest": dataclasses.asdict(target) if target else None,
        }
        return json.dumps(document, indent=2) + "\n"
    rows = [
        ("engine", file.name),
        ("built by", f"builder {header.builder_version} (magic {header.magic})"),
        ("bytes", str(file.stat().st_size)),
        ("complete", "yes" if header.complete else "no: it is shorter or longer than it says"),
    ]
    if header.prefix_bytes:
        foreign = f"{header.prefix_bytes} bytes of another tool; TensorRT refuses it like that"
        rows.append(("in front", foreign))
    if target is None:
        rows.append(("manifest", "none beside it that lists this file with these bytes"))
    else:
        rows += _target_rows(target)
    return render_rows(rows, format)


def _manifest_beside(file: Path) -> ManifestTarget | None:
    """What the manifest of the bundle around an engine says of it, if it is that very file."""
    from trtplug.bundle.manifest import read_manifest
    from trtplug.store import sha256_of

    try:
        targets = read_manifest(file.absolute().parent.parent).targets
    except DocumentError:
        return None
    digest = sha256_of(file)
    return next((t for t in targets if t.engine.sha256 == digest), None)


def _model(file: Path, shapes: tuple[str, ...], format: Format) -> str:
    from trtplug.model.load import load_model
    from trtplug.model.ranges import resolve_ranges
    from trtplug.model.summary import summarize
    from trtplug.tensor import parse_shape_range

    model = load_model(file)
    given = tuple(parse_shape_range(s) for s in shapes)
    dynamic = any(spec.is_dynamic for spec in model.inputs)
    ranges = None if dynamic and not given else resolve_ranges(model, given)
    summary = summarize(model, ranges)
    return to_json(summary) if format is Format.JSON else render_rows(_summary(summary), format)


def _summary(summary: ModelSummary) -> list[tuple[str, str]]:
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
@click.option(
    "--shape",
    multiple=True,
    metavar=SHAPE_METAVAR,
    help="Input shape for FLOPs of a model, such as x=1x3x640x640; repeatable.",
)
@click.option("--verify", is_flag=True, help="Compare the files of a bundle with its manifest.")
@format_option
def inspect(file: Path, shape: tuple[str, ...], verify: bool, format: Format) -> int:
    """Show the contents of a model, bundle, report or engine.

    FILE may also be a lock or the sidecar of a timing cache.
    """
    if verify:
        return _verify(file, format)

    click.echo(inspect_file(file, shape, format), nl=False)
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
    click.echo(_verdict(folder, result, format), nl=False)
    return GATE_FAILED if result.problems else DONE


def _verdict(folder: Path, result: BundleCheck, format: Format) -> str:
    import json

    from trtplug.report.words import printable

    if format is Format.JSON:
        document = {
            "schema": "trtplug.bundle-check/1",
            "files": result.files,
            "intact": not result.problems,
            "problems": list(result.problems),
        }
        return json.dumps(document, indent=2) + "\n"
    if not result.problems:
        return f"{folder}: all {result.files} files are as the manifest says\n"
    lines = [f"{folder}: {len(result.problems)} of {result.files} files differ", *result.problems]
    return "".join(printable(line) + "\n" for line in lines)
