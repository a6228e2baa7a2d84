"""What a bundle holds: described when it is made, compared with its manifest when it is checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.document import to_json
from trtplug.engine.manifest import MANIFEST, Manifest, ManifestFile, read_manifest
from trtplug.store import sha256_of

if TYPE_CHECKING:
    from pathlib import Path


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
    """One sentence a file, each naming it; empty where all is as it was written."""


def verify_bundle(folder: Path) -> BundleCheck:
    """Compares every file of a bundle with its manifest.

    Raises:
        DocumentError: there is no usable manifest.
    """
    manifest = read_manifest(folder)
    listed = manifest.every_file()
    problems = [p for f in listed if (p := _compare(folder, f))]
    strangers = files_below(folder) - {f.path for f in listed} - {MANIFEST}
    problems += [f"{path}: not in the manifest" for path in sorted(strangers)]
    return BundleCheck(manifest=manifest, files=len(listed), problems=tuple(problems))


def _compare(folder: Path, listed: ManifestFile) -> str:
    if ".." in listed.path.split("/") or listed.path.startswith("/"):
        return f"{listed.path}: lies outside the bundle"
    file = folder / listed.path
    try:
        if file.exists() and not file.is_file():
            return f"{listed.path}: no regular file"
        size = file.stat().st_size
        if size != listed.bytes:
            return f"{listed.path}: {size} bytes, the manifest says {listed.bytes}"
        return "" if sha256_of(file) == listed.sha256 else f"{listed.path}: its bytes have changed"
    except FileNotFoundError:
        return f"{listed.path}: missing"
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        return f"{listed.path}: {getattr(error, 'strerror', None) or error}"


def files_below(folder: Path) -> set[str]:
    """Paths of all files in a folder, below it, with `/`."""
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir()}
