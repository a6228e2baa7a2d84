"""Finds `profiles/` and `plugins/`, in a checkout or in an installed wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def resource_folder(name: str) -> Path:
    """The folder `profiles` or `plugins`.

    In a wheel they ship inside the package, under `trtplug/_resources/`; in a checkout they stand
    at the top level, beside the package.
    """
    shipped = _PACKAGE / "_resources" / name
    return shipped if shipped.is_dir() else _PACKAGE.parent / name
