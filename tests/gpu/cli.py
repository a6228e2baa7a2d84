"""The command line of trtplug, in this process; builders run in processes of their own anyway."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.cli_runner import Ran, run_here

if TYPE_CHECKING:
    from pathlib import Path


def trtplug(folder: Path, *arguments: object) -> Ran:
    """One command line, in a folder, to its end; what it said stands in the step's log too."""
    before = os.getcwd()  # noqa: PTH109 - it is only gone back to
    os.chdir(folder)
    try:
        ran = run_here(*arguments)
    finally:
        os.chdir(before)
    said = f"$ trtplug {' '.join(map(str, arguments))}\n{ran.out[-4000:]}{ran.err[-4000:]}"
    print(f"{said}[{ran.status}]\n", flush=True)  # noqa: T201
    return ran
