"""The command line of trtplug, in this process; builders run in processes of their own anyway."""

from __future__ import annotations

import contextlib
import io
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What one command line did."""

    status: int
    out: str
    err: str


def trtplug(folder: Path, *arguments: object) -> Ran:
    """One command line, in a folder, to its end; what it said stands in the step's log too."""
    from trtplug.cli.main import main

    words = [str(a) for a in arguments]
    out, err = io.StringIO(), io.StringIO()
    before = os.getcwd()  # noqa: PTH109 - it is only gone back to
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(words)
    finally:
        os.chdir(before)
    said = f"$ trtplug {' '.join(words)}\n{out.getvalue()[-4000:]}{err.getvalue()[-4000:]}"
    print(f"{said}[{status}]\n", flush=True)  # noqa: T201
    return Ran(status=status, out=out.getvalue(), err=err.getvalue())
