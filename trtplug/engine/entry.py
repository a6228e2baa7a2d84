"""A target's folder in a bundle as a store entry, and back."""

from __future__ import annotations

import dataclasses
import shutil
from typing import TYPE_CHECKING

from trtplug.document import from_own_json, to_json
from trtplug.engine.manifest import ManifestTarget

if TYPE_CHECKING:
    from pathlib import Path

_TARGET = "target.json"


def put_entry(folder: Path, target: ManifestTarget, entry: Path) -> None:
    """Copies a target's files, and what the manifest says of it, into a store entry."""
    for file in target.files:
        shutil.copyfile(folder / file.path, entry / file.path.rpartition("/")[2])
    (entry / _TARGET).write_text(to_json(target), encoding="utf-8")


def take_entry(entry: Path, folder: Path) -> ManifestTarget | None:
    """Copies the files of a store entry into a bundle under way; None where they are not usable.

    Another process may clear the entry away meanwhile; then nothing of it is left in the bundle.
    """
    places: list[Path] = []
    try:
        target = from_own_json(ManifestTarget, (entry / _TARGET).read_bytes())
        for file in target.files:
            _, _, name = file.path.rpartition("/")
            place = folder / target.sm / name
            place.parent.mkdir(exist_ok=True)
            places.append(place)
            shutil.copyfile(entry / name, place)
    except (ValueError, FileNotFoundError):
        for place in places:
            place.unlink(missing_ok=True)
        return None
    return dataclasses.replace(target, from_store=True)
