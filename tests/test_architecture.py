"""The shape of the package: which folders, how many modules and lines, how deep imports go."""

from __future__ import annotations

from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "trtplug"
FOLDERS = {
    "model", "ops", "rewrite", "kernels", "emulator", "measure", "backends", "backends/rtx",
    "backends/trt", "backends/cuda_layer", "plugin", "timing", "lock", "bundle", "report", "build",
    "cli",
}  # fmt: skip


MOST_LINES = 36_320
"""What was reached; it only goes down. The goal is 33,000."""


@cache
def modules() -> dict[Path, int]:
    """Module -> its lines."""
    files = PACKAGE.rglob("*.py")
    return {f: len(f.read_text(encoding="utf-8").splitlines()) for f in files}


def test_the_package_has_these_folders_and_no_others():
    there = {str(f.parent.relative_to(PACKAGE)) for f in modules()} - {"."}
    assert there == FOLDERS


def test_modules_are_few_and_short():
    beside = [f for f in modules() if f.parent == PACKAGE and not f.stem.startswith("__")]
    assert len(beside) <= 10
    assert len(modules()) <= 215
    assert sum(modules().values()) <= MOST_LINES
    assert [f for f, lines in modules().items() if lines > 500] == []
