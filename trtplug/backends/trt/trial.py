"""The trial run: a finished engine is loaded in a child process and run once, before it ships."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from trtplug.backends.child import PARENT_VARIABLE

MODULE = "trtplug.backends.trt.child_run"

RAN = "The engine was loaded and run once on random input where it was built"
"""How the sentence begins that says so in a report."""

_LAST_LINES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRequest:
    """An engine to run, as it crosses into the child."""

    folder: str
    """Holds `engine`; takes `inspector.json`, and more lines of `build.log`."""
    plugin_libraries: tuple[str, ...] = ()
    host_code: bool = False
    """Whether code in the engine may run on the host: version-compatible engines need it."""
    weightless: bool = False
    """Whether the engine is only loaded: it lacks weights, or is not the one that ships."""

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """How it went."""

    problem: str
    """Empty where all went well."""
    last_lines: tuple[str, ...] = ()
    sentence: str = ""
    """What was run, for the report."""


def run_trial(request: TrialRequest) -> TrialResult:
    """Runs an engine in a child process; a crash there is a result like any other."""
    done = subprocess.run(
        [sys.executable, "-m", MODULE],
        input=request.to_json() + "\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # it writes to the log
        text=True,
        check=False,
        env={**os.environ, PARENT_VARIABLE: str(os.getpid())},
    )
    said = _last_event(done.stdout)
    if "problem" in said:
        return TrialResult(problem=said["problem"], sentence=said.get("sentence", ""))
    log = Path(request.folder) / "build.log"
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return TrialResult(
        problem=f"the finished engine crashed when it was loaded and run once ({_how(done)}); "
        "the log ends:",
        last_lines=tuple(lines[-_LAST_LINES:]),
    )


def _last_event(text: str) -> dict[str, str]:
    lines = text.splitlines()
    try:
        said: dict[str, str] = json.loads(lines[-1]) if lines else {}
    except ValueError:
        return {}  # it died in the middle of the line
    return said


def _how(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode < 0:
        return f"signal {signal.Signals(-done.returncode).name}"
    return f"exit status {done.returncode}"
