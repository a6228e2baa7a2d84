"""The bundle: the folder that is shipped, published whole or not at all, and checked by file."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.document import to_json
from trtplug.engine.manifest import MANIFEST, Manifest, ManifestFile, read_manifest
from trtplug.errors import DocumentError, OutputError, OutputInTheWayError
from trtplug.scratch import as_output_error, scratch_folder, sweep
from trtplug.store import sha256_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_RENAME_EXCHANGE = 2
_AT_FDCWD = -100


@contextlib.contextmanager
def bundle_folder(out: Path) -> Iterator[Path]:
    """A scratch folder to fill; on a clean exit it is published as `out`.

    A bundle that stands there is replaced in one step where the system can exchange two folders.

    Raises:
        OutputInTheWayError: `out` is something else than a bundle of ours.
        OutputError: it cannot be written.
    """
    refuse_if_in_the_way(out)
    prefix = f".{out.name}.partial-"
    sweep(out.parent, prefix)
    with scratch_folder(out.parent, prefix) as folder, as_output_error(out):
        yield folder
        _publish(folder, out)


def refuse_if_in_the_way(out: Path) -> None:
    """Raises OutputInTheWayError for what must not be replaced, OutputError for what cannot be."""
    with as_output_error(out):
        _refuse_if_in_the_way(out)


def _refuse_if_in_the_way(out: Path) -> None:
    try:
        str(out.absolute()).encode()
    except UnicodeEncodeError as error:
        # The path goes to the builder, which takes UTF-8 alone.
        problem = "its path is not UTF-8; choose another"
        raise OutputError(path=ascii(str(out)), problem=problem) from error
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise OutputInTheWayError(path=str(out), problem="it is no folder")
    if not out.is_dir() or not any(out.iterdir()):
        return
    try:
        manifest = read_manifest(out)
    except DocumentError as error:
        problem = "it is a folder that holds something else than a bundle"
        raise OutputInTheWayError(path=str(out), problem=problem) from error
    strangers = sorted(_files_below(out) - {f.path for f in manifest.every_file()} - {MANIFEST})
    if strangers:
        problem = f"it holds files that no build put there, such as {strangers[0]}"
        raise OutputInTheWayError(path=str(out), problem=problem)


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
    strangers = _files_below(folder) - {f.path for f in listed} - {MANIFEST}
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


def _files_below(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir()}


def _publish(folder: Path, out: Path) -> None:
    if not out.exists():
        folder.rename(out)
    elif _exchange(folder, out):
        shutil.rmtree(folder, ignore_errors=True)
    else:
        with scratch_folder(out.parent, f".{out.name}.partial-") as away:
            out.rename(away / "old")
            folder.rename(out)


def _exchange(one: Path, other: Path) -> bool:
    """Swaps two folders in one step (renameat2, Linux 3.15); False where that cannot be done."""
    renameat2 = getattr(ctypes.CDLL(None), "renameat2", None)
    if renameat2 is None:
        return False
    result: int = renameat2(
        _AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE
    )
    return result == 0
