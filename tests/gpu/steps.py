"""Steps of the GPU check, each in a child process with a time limit, and how each ended.

A crash of TensorRT is the status of one step; the others go on.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tests.gpu.place import environ

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

Status = Literal["passed", "failed", "crashed", "timed out", "not run"]

RESULT = "result.json"
FACTS = "facts.json"
LOG = "step.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing to do; `tests.gpu.child` knows how, by its name."""

    name: str
    kind: Literal["flow", "probe"]
    what: str
    """What is done, in a sentence."""
    limit_s: float = 90.0
    needs: tuple[str, ...] = ()
    """Steps whose folders it reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a step ended."""

    step: Step
    status: Status
    why: str = ""
    """Empty where it passed."""
    seconds: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)
    """What was seen; questions are answered from it."""

    def record(self) -> dict[str, Any]:
        """As a line of the records."""
        return {
            "kind": self.step.kind,
            "name": self.step.name,
            "what": self.step.what,
            "status": self.status,
            "why": self.why,
            "seconds": round(self.seconds, 1),
            "facts": self.facts,
        }


def run_all(
    steps: Iterable[Step],
    work: Path,
    limit_s: float,
    report: Callable[[Outcome], None] = lambda _: None,
) -> dict[str, Outcome]:
    """Runs steps in order, until the time is over; outcomes by name."""
    end = time.monotonic() + limit_s
    found: dict[str, Outcome] = {}
    for step in steps:
        left_s = end - time.monotonic()
        lacking = [n for n in step.needs if n not in found or found[n].status != "passed"]
        if left_s <= 0:
            outcome = Outcome(step=step, status="not run", why="out of time")
        elif lacking:
            words = f"it needs what did not pass: {', '.join(lacking)}"
            outcome = Outcome(step=step, status="not run", why=words)
        else:
            outcome = run_step(step, work, left_s)
        found[step.name] = outcome
        report(outcome)
    return found


def run_step(step: Step, work: Path, left_s: float = float("inf")) -> Outcome:
    """Runs one step in the folder `work/<name>`."""
    folder = work / step.name
    folder.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    limit_s = min(step.limit_s, left_s)
    with (folder / LOG).open("wb") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.gpu.child", step.kind, step.name],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**environ(), "TRTPLUG_STORE": str(work / "store")},
            start_new_session=True,
        )
        in_time = _wait(child, limit_s)
    seconds = time.monotonic() - begun
    if not in_time:
        cut = " (what was left of all the time)" if limit_s < step.limit_s else ""
        words = f"stopped after {limit_s:.0f} s{cut}"
        facts = _read(folder / FACTS) or {}
        return Outcome(step=step, status="timed out", why=words, seconds=seconds, facts=facts)
    return _outcome(step, folder, child.returncode, seconds)


def _wait(child: subprocess.Popen[bytes], limit_s: float) -> bool:
    """Waits; whether it ended by itself. Otherwise all that it has started ends with it."""
    try:
        child.wait(limit_s)
    except BaseException as error:
        # It is the first of its group, and its number is held until it is waited for.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            return False
        raise
    return True


def _outcome(step: Step, folder: Path, status: int, seconds: float) -> Outcome:
    facts = _read(folder / FACTS) or {}
    report = _read(folder / RESULT)
    if report is None:
        how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        words = f"the step's process ended without a result ({how}); {LOG} has what it said"
        return Outcome(step=step, status="crashed", why=words, seconds=seconds, facts=facts)
    return Outcome(
        step=step, status=report["status"], why=report["why"], seconds=seconds, facts=facts
    )


def _read(file: Path) -> dict[str, Any] | None:
    """A document; None where it is missing or cut short."""
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found
