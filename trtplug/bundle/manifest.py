"""The manifest: what a bundle holds, for whom, and with which digests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.document import read_document, to_json
from trtplug.errors import UsageError
from trtplug.files import file_inside
from trtplug.plan import PlannedSite
from trtplug.store import sha256_of

if TYPE_CHECKING:
    from pathlib import Path


SCHEMA = "trtplug.manifest/1"

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestModel:
    """The model that came in."""

    file: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """One file of the bundle."""

    path: str
    """Below the bundle, with `/`."""
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEngine:
    """The engine of a target."""

    file: str
    sha256: str
    canonical_sha256: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far repeated builds of one target agreed."""

    builds: int
    same_bytes: bool
    same_canonical: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestTarget:
    """One engine and what belongs to it."""

    target: str
    sm: str
    gpus: tuple[str, ...]
    """Profiles of the GPUs that it serves."""
    backend: str
    backend_version: str
    engine: ManifestEngine
    files: tuple[ManifestFile, ...]
    shapes: tuple[str, ...]
    """Such as `x=1x3x320x320:1x3x640x640:1x3x960x960`."""
    precision: str
    flags: Mapping[str, str]
    sites: tuple[PlannedSite, ...] | None = None
    """What the plan had for each site and pair; None where the backend takes no plugins, and in
    older manifests."""
    from_store: bool
    """Whether the engine was taken from the store, and no builder ran."""
    build_seconds: float
    """Of the build that made it."""
    peak_bytes: int
    """Largest resident size of the builder's process."""
    aslr_off: bool
    """Whether it was built without address-space randomisation, which reproducing it needs."""
    agreement: Agreement | None
    """Set where it was built several times."""
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFailure:
    """A requested target that was not built."""

    target: str
    code: str
    message: str
    hint: str
    log: str | None
    """Path of its build log in the bundle, where there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Everything in a bundle."""

    schema: str
    tool_version: str
    model: ManifestModel
    plan_sha256: str | None = None
    """Digest of the plan that was carried out; None in older manifests."""
    targets: tuple[ManifestTarget, ...]
    failures: tuple[ManifestFailure, ...]
    files: tuple[ManifestFile, ...]
    """Files that belong to no target: logs of failed builds."""

    def every_file(self) -> tuple[ManifestFile, ...]:
        """All files but the manifest itself."""
        return tuple(f for t in self.targets for f in t.files) + self.files


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a bundle.

    Raises:
        DocumentError: missing, not JSON, of another schema or version, or with unfit fields.
    """
    return read_document(Manifest, SCHEMA, folder / MANIFEST)


def describe_file(folder: Path, path: str) -> ManifestFile:
    """A file of a bundle as the manifest lists it."""
    file = folder / path
    return ManifestFile(path=path, sha256=sha256_of(file), bytes=file.stat().st_size)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Writes `manifest.json` into a bundle under way."""
    (folder / MANIFEST).write_text(to_json(manifest), encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleCheck:
    """How a bundle compares with its manifest."""

    manifest: Manifest
    files: int
    problems: tuple[str, ...]
    """One sentence a file, each naming it; empty where all match."""


def verify_bundle(folder: Path) -> BundleCheck:
    """Compares every file of a bundle with its manifest.

    Raises:
        DocumentError: there is no usable manifest.
    """
    manifest = read_manifest(folder)
    listed = manifest.every_file()
    problems = [f"{f.path}: {problem}" for f in listed if (problem := _problem(folder, f))]
    problems += [f"{path}: not in the manifest" for path in unexpected_files(folder, manifest)]
    return BundleCheck(manifest=manifest, files=len(listed), problems=tuple(problems))


def _problem(folder: Path, listed: ManifestFile) -> str:
    """How a file differs from its record; empty where it does not."""
    file = file_inside(folder, listed.path)
    if file is None:
        return "outside the bundle, or a link"
    try:
        if file.exists() and not file.is_file():
            return "not a regular file"
        size = file.stat().st_size
        if size != listed.bytes:
            return f"{size} bytes, the manifest says {listed.bytes}"
        same = sha256_of(file) == listed.sha256
        return "" if same else "SHA-256 does not match the manifest"
    except FileNotFoundError:
        return "missing"
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        return f"{getattr(error, 'strerror', None) or error}"


def unexpected_files(folder: Path, manifest: Manifest) -> list[str]:
    """Files of a bundle that its manifest does not list, with `/`, in order of their names."""
    found = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir()}
    return sorted(found - {f.path for f in manifest.every_file()} - {MANIFEST})


def file_of(path: Path, name: str) -> Path:
    """A file of a bundle of one target, or of a target's folder; any other path is the file."""
    if not path.is_dir():
        return path
    if (path / name).is_file():
        return path / name
    folders = [path / t.sm for t in read_manifest(path).targets]
    if len(folders) != 1:
        names = " or ".join(f"{f.name}/{name}" for f in folders) or "a bundle with an engine"
        raise UsageError(f"{path} has {len(folders)} of {name}", f"name one of them: {names}")
    return folders[0] / name
