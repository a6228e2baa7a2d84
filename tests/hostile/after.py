"""What must hold after a build was killed, stopped or starved, at any moment."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from tests.cli_runner import children_of
from trtplug.bundle.manifest import verify_bundle
from trtplug.store import Store

if TYPE_CHECKING:
    from pathlib import Path

ORPHAN_S = 2.0


def check_nothing_is_half(folder: Path, store: Path, out: str = "out") -> None:
    """No half bundle at `out`, and each entry of the store is whole or a miss."""
    if (folder / out).exists():
        assert verify_bundle(folder / out).problems == ()
    for entry in store.glob("??/*"):
        assert Store(root=store).find(entry.name) is not None, f"{entry} is broken"


def check_no_orphan(parent: int) -> None:
    """No builder that `parent` started lives on."""
    until = time.monotonic() + ORPHAN_S
    while left := children_of(parent):
        assert time.monotonic() < until, f"builders {left} outlived {parent}"
        time.sleep(0.02)


def scratch_in(*folders: Path) -> list[Path]:
    """Scratch folders that were left behind."""
    return [
        p
        for folder in folders
        if folder.is_dir()
        for p in folder.iterdir()
        if ".partial-" in p.name or p.name.startswith("part-")
    ]


def make_old(*folders: Path) -> None:
    """Makes what was left behind older than the minute for which it is left alone."""
    for folder in folders:
        os.utime(folder, (0, 0))
