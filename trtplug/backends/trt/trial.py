"""The trial run: a finished engine is loaded in a child process and run once, before it ships."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass
from pathlib import Path

from trtplug.backends.launch import ask

_log = logging.getLogger(__name__)

MODULE = "trtplug.backends.trt.child_run"

RAN = "The engine was loaded and run once on random input where it was built"
"""How the sentence begins that says so in a report."""

_LAST_LINES = 8

_LIMIT_S = 600.0
"""For loading TensorRT and the engine, and one run of each profile."""


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
    done = ask(MODULE, request.to_json(), limit_s=_LIMIT_S)
    answer = _last_event(done.lines)
    if "problem" in answer:
        return TrialResult(problem=answer["problem"], sentence=answer.get("sentence", ""))
    log = Path(request.folder) / "build.log"
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return TrialResult(
        problem=f"the finished engine {'hung' if done.timed_out else 'crashed'} when it was loaded "
        f"and run once ({done.how}); the log ends:",
        last_lines=tuple(lines[-_LAST_LINES:]),
    )


def _last_event(lines: tuple[str, ...]) -> dict[str, str]:
    try:
        answer: dict[str, str] = json.loads(lines[-1]) if lines else {}
    except ValueError as error:
        _log.debug("the trial run ended in the middle of a line: %s", error)
        return {}
    return answer
