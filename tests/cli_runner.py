"""Runs the command line: in this process, where tests may put doubles in, or as a user would."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

TRTPLUG = (sys.executable, "-m", "trtplug")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What one command line did."""

    status: int
    out: str
    err: str


def run_here(*arguments: object) -> Ran:
    """One command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(a) for a in arguments])
    return Ran(status=status, out=out.getvalue(), err=err.getvalue())


def start(*arguments: object, cwd: Path, **options: object) -> subprocess.Popen[str]:
    """One command line in a process of its own."""
    return subprocess.Popen(
        [*TRTPLUG, *map(os.fspath, arguments)],  # type: ignore[arg-type]
        cwd=cwd,
        text=True,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},  # type: ignore[call-overload]
    )


def run_apart(*arguments: object, cwd: Path, **options: object) -> Ran:
    """As `start`, to its end."""
    process = start(*arguments, cwd=cwd, **options)
    out, err = process.communicate(timeout=120)
    return Ran(status=process.returncode, out=out or "", err=err or "")


def children_of(parent: int) -> list[int]:
    """Process numbers of the builders that a trtplug process started and that still live."""
    mark = f"TRTPLUG_PARENT={parent}\0".encode()
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                with open(f"/proc/{entry.name}/environ", "rb") as file:  # noqa: PTH123
                    environ = file.read()
                if mark in environ + b"\0":
                    found.append(int(entry.name))
    return found
