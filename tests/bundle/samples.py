"""A small bundle for tests: two targets' worth of files, and the manifest that lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.bundle.bundle import bundle_folder
from trtplug.bundle.manifest import (
    SCHEMA,
    Manifest,
    ManifestEngine,
    ManifestFailure,
    ManifestModel,
    ManifestTarget,
    describe_file,
    write_manifest,
)

if TYPE_CHECKING:
    from pathlib import Path

FILES = {"m.rtx-1.7-sm_89.engine": b"ptrt engine", "report.json": b"{}", "build.log": b"[V] x\n"}


def fill(folder: Path, mark: bytes = b"") -> Manifest:
    """Writes a target's files into a bundle under way; returns the manifest, not yet written."""
    place = folder / "sm_89"
    place.mkdir()
    for name, data in FILES.items():
        (place / name).write_bytes(data + mark)
    files = tuple(describe_file(folder, f"sm_89/{name}") for name in FILES)
    engine = ManifestEngine(
        file=files[0].path,
        sha256=files[0].sha256,
        canonical_sha256=files[0].sha256,
        bytes=files[0].bytes,
    )
    target = ManifestTarget(
        target="rtx-1.7:sm_89",
        sm="sm_89",
        gpus=("rtx4090", "l4"),
        backend="rtx",
        backend_version="1.7.1.116",
        engine=engine,
        files=files,
        shapes=("x=1x3x8x8",),
        precision="keep",
        flags={"tf32": "on"},
        from_store=False,
        build_seconds=1.5,
        peak_bytes=1,
        aslr_off=True,
        agreement=None,
        warnings=("a warning",),
    )
    failure = ManifestFailure(
        target="rtx-1.7:sm_75", code="build-failed", message="no", hint="", log=None
    )
    return Manifest(
        schema=SCHEMA,
        tool_version="0",
        model=ManifestModel(file="m.onnx", sha256="0" * 64),
        targets=(target,),
        failures=(failure,),
        files=(),
    )


def publish(out: Path, mark: bytes = b"") -> Manifest:
    """A whole bundle at `out`."""
    with bundle_folder(out) as folder:
        manifest = fill(folder, mark)
        write_manifest(folder, manifest)
    return manifest
