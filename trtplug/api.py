"""The Python interface: what `import trtplug` offers; `build` is in `trtplug.build.api`.

The command line is a thin layer over it. Each function takes plain values (paths and shapes as
text), and returns the frozen values that the commands print. Options carry the names that they have
on the command line, and are refused with the same errors, all of `trtplug.errors`. Nothing is
printed. Heavy packages load when a function needs them, not when this module does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trtplug.bundle.engine_file import EngineHeader, read_header
from trtplug.bundle.manifest import (
    MANIFEST,
    Manifest,
    ManifestTarget,
    file_of,
    read_manifest,
)
from trtplug.errors import DocumentError, FileUnreadableError, UsageError
from trtplug.model.arguments import (
    IoPrecision,
    PathLike,
    Precision,
    Shapes,
    to_path,
    to_precision,
    to_ranges,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from trtplug.lock.lock import Lock
    from trtplug.model.load import Model
    from trtplug.model.summary import ModelSummary
    from trtplug.report.data import Report
    from trtplug.rewrite.file import RewriteResult
    from trtplug.rewrite.listing import SitesListing
    from trtplug.tensor import ShapeRange
    from trtplug.timing.files import Sidecar


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFile:
    """An engine file, and what the bundle around it says of it."""

    schema: str
    file: str
    """Its name."""
    bytes: int
    header: EngineHeader
    manifest: ManifestTarget | None
    """None where no manifest beside it lists a file with these bytes."""


def sites(
    model: PathLike, *, shapes: Shapes = (), fold_overridable: bool | None = None
) -> SitesListing:
    """Lists where a model's convolutions fit one fused kernel, and where not and why.

    Args:
        model: an ONNX file.
        shapes: sizes of the inputs, axes in the model's order. Without them the figures
            (`flops`, `bytes`, dimensions) of a model with dynamic inputs are None.
        fold_overridable: treat initializers that are graph inputs too as constants. By default only
            where the file is older than IR 4.

    Returns:
        Sites, near misses, depthwise + pointwise pairs and totals. `flops` counts floating-point
        operations (a multiply-add is two) of one run at the opt sizes; `bytes` is in bytes.

    Raises:
        FileUnreadableError: no such file, or no permission.
        ModelInvalidError: it is no ONNX model.
        NodeInvalidError: a node that contradicts itself.
        ShapeError: the shapes do not fit the model's inputs.
        UsageError: a shape that cannot be read.

    Example:
        >>> listing = trtplug.sites("model.onnx", shapes={"x": "1x3x32x32"})
        >>> [(site.conv, site.activation, site.flops) for site in listing.sites]
        [('conv0', 'relu', 458752)]
    """
    from trtplug.model.ranges import resolve_ranges
    from trtplug.model.shapes import infer_shapes
    from trtplug.model.validate import model_warnings
    from trtplug.rewrite.find import find_all
    from trtplug.rewrite.listing import list_sites

    loaded = _valid_model(model)
    given = to_ranges(shapes)
    # Without a shape the sites are the same; only the figures are missing.
    wanted = given or all(not spec.is_dynamic for spec in loaded.inputs)
    ranges = resolve_ranges(loaded, given) if wanted else ()
    table = infer_shapes(loaded, {r.name: r.opt for r in ranges})
    found = find_all(loaded, fold_overridable=fold_overridable)
    return list_sites(loaded, found, table, model_warnings(loaded))


def rewrite(
    model: PathLike,
    output: PathLike,
    *,
    sites: bool = True,
    pairs: bool = False,
    precision: Precision = "keep",
    io_precision: IoPrecision = "keep",
    keep_fp32: Iterable[str] = (),
    fold_overridable: bool | None = None,
    check: bool = False,
    shapes: Shapes = (),
) -> RewriteResult:
    """Writes a model with one CBR node at each site, in another precision if asked.

    Args:
        model: an ONNX file; it is never changed.
        output: the file to write. One that is there is replaced.
        sites: put CBR nodes at the sites; False changes the precision alone.
        pairs: one CBRPair node where a depthwise and a pointwise site form a pair.
        precision: type to compute in; `keep`: as the model says.
        io_precision: inputs and outputs keep their type, or `match` the precision.
        keep_fp32: globs over node names that stay in float32.
        fold_overridable: treat initializers that are graph inputs too as constants.
        check: run both files in ONNX Runtime on random inputs and compare the outputs.
        shapes: for `check`, where inputs are dynamic: the min and the opt sizes are run.

    Returns:
        What was done, and the comparison where one was asked for. That the two differ is no
        exception: see `result.check.equal`.

    Raises:
        UsageError: options that contradict each other, or `output` is the model itself.
        PrecisionError: the model cannot be given that precision.
        RewriteInvalidError: ONNX's checker refuses the result; nothing was written.
        OutputError: `output` cannot be written.
        ReferenceFailedError: `check`: ONNX Runtime cannot run one of the files.
        BackendMissingError: `check`: ONNX Runtime is not installed.
        TrtplugError: as `sites` raises for the model and its shapes.

    Example:
        >>> result = trtplug.rewrite("model.onnx", "fused.onnx", check=True,
        ...                          shapes={"x": "1x3x32x32"})
        >>> result.sites, result.nodes_before, result.nodes_after, result.check.equal
        (('conv0',), 2, 1, True)
    """
    from trtplug.model.ranges import resolve_ranges
    from trtplug.rewrite.file import rewrite_file

    target = to_path(output)
    wish = to_precision(precision, io_precision, keep_fp32)
    loaded = _valid_model(model)
    ranges = to_ranges(shapes)
    if check:
        ranges = resolve_ranges(loaded, ranges)
    result = rewrite_file(
        loaded,
        target,
        sites=sites,
        pairs=pairs,
        precision=wish,
        fold_overridable=fold_overridable,
    )
    if not check:
        return result
    from trtplug.measure.equality import check_equality
    from trtplug.measure.reference import overload_notice

    equality = check_equality(loaded.path, target, loaded.inputs, ranges, wish.target)
    notice = overload_notice(target)
    notices = result.notices if notice is None else (*result.notices, notice)
    return replace(result, check=equality, notices=notices)


def load_report(path: PathLike) -> Report:
    """The report of an engine.

    Args:
        path: a `report.json`, the folder it is in, or a bundle of one target.

    Returns:
        Layers, sites, totals and warnings. Times (`..._us`) are in microseconds, sizes in bytes,
        dimensions of tensors as tuples of ints (-1: dynamic).

    Raises:
        DocumentError: missing, of another schema or version, or with unfit fields.
        UsageError: a bundle of several targets.

    Example:
        >>> report = trtplug.load_report("out/sm_89/report.json")
        >>> report.model.file, report.totals.sites
        ('model.onnx', 1)
    """
    from trtplug.document import read_document
    from trtplug.report.data import SCHEMA, Report

    return read_document(Report, SCHEMA, file_of(to_path(path), "report.json"))


def load_manifest(path: PathLike) -> Manifest:
    """The manifest of a bundle.

    Args:
        path: a bundle's folder, or its `manifest.json`.

    Returns:
        Each engine with its files and their SHA-256, sizes in bytes, and the targets that failed.
        A manifest is no signature: `trtplug verify-bundle` compares the files with it.

    Raises:
        DocumentError: missing, of another schema or version, or with unfit fields.

    Example:
        >>> manifest = trtplug.load_manifest("out")
        >>> [(target.sm, target.precision) for target in manifest.targets]
        [('sm_89', 'fp16')]
    """
    from trtplug.bundle.manifest import SCHEMA
    from trtplug.document import read_document

    file = to_path(path)
    return read_document(Manifest, SCHEMA, file / MANIFEST if file.is_dir() else file)


def load_lock(path: PathLike) -> Lock:
    """The lock of an engine: what went into its build and what came out.

    Args:
        path: a `lock.json`, the folder it is in, or a bundle of one target.

    Returns:
        Model, flags, shapes, layers and chosen kernels, and the engine's digests.

    Raises:
        DocumentError: missing, of another schema or version, or with unfit fields.
        UsageError: a bundle of several targets.

    Example:
        >>> lock = trtplug.load_lock("out")
        >>> lock.engine.sha256 == trtplug.load_manifest("out").targets[0].engine.sha256
        True
    """
    from trtplug.lock.lock import LOCK, read_lock

    return read_lock(file_of(to_path(path), LOCK))


def inspect(
    path: PathLike, *, shapes: Shapes = ()
) -> ModelSummary | Manifest | Report | Lock | Sidecar | EngineFile:
    """What a file holds, as a value of the kind that the file is of.

    Args:
        path: an ONNX model, a bundle (folder or `manifest.json`), a report, a lock, the sidecar of
            a timing cache, or an engine.
        shapes: for a model: sizes at which its floating-point operations are counted.

    Returns:
        `ModelSummary`, `Manifest`, `Report`, `Lock`, `Sidecar` or `EngineFile`.

    Raises:
        UsageError: a folder that is no bundle.
        FileUnreadableError: no such file, or no permission.
        DocumentError: JSON of another schema, or a broken document.
        ModelInvalidError: it is nothing of these.
        ShapeError: the shapes do not fit the model's inputs.

    Example:
        >>> summary = trtplug.inspect("model.onnx", shapes={"x": "1x3x32x32"})
        >>> summary.operators, summary.parameters, summary.flops
        ({'Conv': 1, 'Relu': 1}, 224, 458752)
    """
    file = to_path(path)
    if file.is_dir():
        if not (file / MANIFEST).is_file():
            raise UsageError(f"{file} is a folder without {MANIFEST}", "a bundle has one")
        return load_manifest(file)
    if _looks_like_json(file):
        return _read_any_document(file)
    header = read_header(file) if file.is_file() else None
    if header is not None:
        return EngineFile(
            schema="trtplug.engine/1",
            file=file.name,
            bytes=file.stat().st_size,
            header=header,
            manifest=_manifest_entry(file),
        )
    return _summarize(file, to_ranges(shapes))


_SNIFFED_BYTES = 1 << 16


def _looks_like_json(file: Path) -> bool:
    if not file.is_file():
        return False
    try:
        with file.open("rb") as stream:
            return stream.read(_SNIFFED_BYTES).lstrip().startswith(b"{")
    except OSError:
        return False


def _read_any_document(file: Path) -> Report | Manifest | Lock | Sidecar:
    from trtplug.document import read_document, schema_name
    from trtplug.files import read_text
    from trtplug.timing.files import SCHEMA, Sidecar

    try:
        schema = schema_name(read_text(file))
    except FileUnreadableError:
        schema = None
    match (schema or "").partition("/")[0]:
        case "trtplug.report":
            return load_report(file)
        case "trtplug.manifest":
            return load_manifest(file)
        case "trtplug.lock":
            return load_lock(file)
        case "trtplug.timing-cache":
            return read_document(Sidecar, SCHEMA, file)
        case _:
            pass
    known = "report, manifest, lock or timing cache's sidecar"
    raise DocumentError(path=str(file), wanted=known, problem=f"its schema is {schema!r}")


def _manifest_entry(file: Path) -> ManifestTarget | None:
    """What the manifest of the bundle around an engine says of it, if it is that very file."""
    from trtplug.store import sha256_of

    try:
        targets = read_manifest(file.absolute().parent.parent).targets
    except DocumentError:
        return None
    digest = sha256_of(file)
    return next((t for t in targets if t.engine.sha256 == digest), None)


def _summarize(file: Path, given: tuple[ShapeRange, ...]) -> ModelSummary:
    from trtplug.model.load import load_model
    from trtplug.model.ranges import resolve_ranges
    from trtplug.model.summary import summarize

    model = load_model(file)
    dynamic = any(spec.is_dynamic for spec in model.inputs)
    return summarize(model, None if dynamic and not given else resolve_ranges(model, given))


def _valid_model(model: PathLike) -> Model:
    from trtplug.model.load import load_model
    from trtplug.model.validate import validate

    loaded = load_model(to_path(model))
    validate(loaded)
    return loaded
