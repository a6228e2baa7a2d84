"""Whole texts that renderers must give; `python -m tests.report.golden` writes them anew."""

from __future__ import annotations

from pathlib import Path

from tests.report.samples import small_report
from trtplug.report.markdown import report_to_markdown
from trtplug.report.text import report_to_text

FOLDER = Path(__file__).with_name("golden")

GOLDEN = {
    "small-100.txt": lambda: report_to_text(small_report(), width=100),
    "small-80.txt": lambda: report_to_text(small_report(), width=80),
    "small.md": lambda: report_to_markdown(small_report()),
}


def golden(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


if __name__ == "__main__":
    for name, render in GOLDEN.items():
        (FOLDER / name).write_text(render(), encoding="utf-8")
