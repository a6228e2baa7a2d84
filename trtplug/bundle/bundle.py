"""The bundle: the folder that is shipped, published whole or not at all."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import logging
import os
import shutil
from typing import TYPE_CHECKING

from trtplug.bundle.manifest import ManifestTarget, read_manifest, unexpected_files
from trtplug.document import from_own_json, to_json
from trtplug.errors import (
    DocumentError,
    FileUnreadableError,
    OutputError,
    OutputInTheWayError,
)
from trtplug.files import file_inside, read_bytes
from trtplug.store import as_output_error, scratch_folder, sweep

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trtplug.plan import PlannedTarget

_log = logging.getLogger(__name__)

_RENAME_EXCHANGE = 2
_AT_FDCWD = -100


@contextlib.contextmanager
def bundle_folder(out: Path) -> Iterator[Path]:
    """A scratch folder to fill; on a clean exit it is published as `out`.

    A bundle at that path is replaced in one step where the system can exchange two folders.

    Raises:
        OutputInTheWayError: `out` is not a bundle.
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
    try:
        str(out.absolute()).encode()
    except UnicodeEncodeError as error:
        # The path goes to the builder, which takes UTF-8 alone.
        problem = "its path is not UTF-8; choose another"
        raise OutputError(path=ascii(str(out)), problem=problem) from error
    with as_output_error(out):
        if out.is_symlink() or (out.exists() and not out.is_dir()):
            raise OutputInTheWayError(path=str(out), problem="not a folder")
        if out.is_dir() and any(out.iterdir()):
            _refuse_other_files(out)


def _refuse_other_files(out: Path) -> None:
    try:
        manifest = read_manifest(out)
    except DocumentError as error:
        problem = "the folder is not empty and not a bundle"
        raise OutputInTheWayError(path=str(out), problem=problem) from error
    if unexpected := unexpected_files(out, manifest):
        problem = f"it has files that its manifest does not list, such as {unexpected[0]}"
        raise OutputInTheWayError(path=str(out), problem=problem)


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


_TARGET = "target.json"


def put_entry(folder: Path, target: ManifestTarget, entry: Path) -> None:
    """Copies a target's files and its manifest record into a store entry."""
    for file in target.files:
        shutil.copyfile(folder / file.path, entry / file.path.rpartition("/")[2])
    (entry / _TARGET).write_text(to_json(target), encoding="utf-8")


def read_entry(entry: Path) -> ManifestTarget | None:
    """The manifest record of the target in a store entry; None where it cannot be read."""
    try:
        return from_own_json(ManifestTarget, read_bytes(entry / _TARGET))
    except (ValueError, FileUnreadableError):
        return None


def take_entry(entry: Path, folder: Path, planned: PlannedTarget) -> ManifestTarget | None:
    """Copies the files of a store entry into a bundle under way; None where they are not usable.

    A store may be shared, or restored by a CI cache, so what the entry says is not trusted: it is
    for the planned target, or a miss, and no path of it leads anywhere else. Another process may
    clear the entry away meanwhile; then nothing of it is left in the bundle.
    """
    target = read_entry(entry)
    if target is None:
        return None
    places: list[Path] = []
    try:
        sources = _sources(entry, target, planned)
        (folder / planned.sm).mkdir(exist_ok=True)
        for path, source in sources.items():
            places.append(folder / path)
            shutil.copyfile(source, folder / path)
    except (ValueError, FileNotFoundError) as error:
        _log.info("store entry %s is not used: %s", entry.name, error)
        for place in places:
            place.unlink(missing_ok=True)
        return None
    return dataclasses.replace(target, from_store=True)


def _sources(entry: Path, target: ManifestTarget, planned: PlannedTarget) -> dict[str, Path]:
    """Path in the bundle -> file of the entry.

    Raises:
        ValueError: the entry is for another target, or names a file outside its folder.
    """
    if (target.target, target.sm) != (planned.target, planned.sm):
        raise ValueError(f"it is for {target.target!r} in {target.sm!r}")
    paths = [file.path for file in target.files]
    if target.engine.file not in paths:
        raise ValueError("its engine is not among its files")
    sources = {}
    for path in paths:
        _, _, name = path.rpartition("/")
        source = file_inside(entry, name)
        if path != f"{planned.sm}/{name}" or name in ("", ".", "..") or source is None:
            raise ValueError(f"{path!r} lies elsewhere")
        sources[path] = source
    return sources
