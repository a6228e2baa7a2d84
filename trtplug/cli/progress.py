"""Progress on stderr: bars where it is a terminal, plain lines where it is not."""

from __future__ import annotations

import contextlib
import importlib
import sys
import time
from typing import TYPE_CHECKING, Any, TextIO

from trtplug.cli.options import echo
from trtplug.report.words import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trtplug.backends.request import Event
    from trtplug.build.command import Listener, Result
    from trtplug.plan import Plan


_EVERY_S = 5.0


@contextlib.contextmanager
def counting(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A function to be called at each step done."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (TextColumn("kernels {task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
            task = bars.add_task(what, total=total)
            yield lambda: bars.advance(task)
        return
    yield _Lines(what, total).step


class _Lines:
    """Says how far it is, at most every few seconds, and once at the end."""

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total, self._done = what, total, 0
        self._begun = self._said = time.monotonic()

    def step(self) -> None:
        self._done += 1
        now = time.monotonic()
        if self._done == self._total or now - self._said > _EVERY_S:
            self._said = now
            line = f"[{now - self._begun:6.1f} s] kernels {self._what}: {self._done}/{self._total}"
            # Progress that nobody reads any more is no reason to stop.
            with contextlib.suppress(OSError):
                echo(f"{line}\n", err=True)


@contextlib.contextmanager
def make_listener(stream: TextIO) -> Iterator[Listener]:
    """A listener that writes to a stream."""
    if stream.isatty():
        from rich.console import Console

        with _bars(Console(file=stream)) as bars:
            yield BarListener(bars)
    else:
        yield LineListener(stream)


def _bars(console: Any) -> Any:  # noqa: ANN401 - rich is loaded only where it is used
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.fields[target]}", markup=False),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
        console=console,
        refresh_per_second=8,
    )


def result_line(result: Result) -> str:
    """How one target ended, in one line."""
    if result.made is None:
        error = result.error
        return f"failed: {error.code if error else 'unknown'}"
    made = result.made
    how = "from the store" if made.from_store else f"built in {made.build_seconds:.1f} s"
    size = f"{made.engine.bytes / 2**20:.1f} MiB"
    return f"{how}, {size}{agreement_words(result)}"


def agreement_words(result: Result) -> str:
    """What repeated builds agreed in; no more than was compared."""
    agreement = result.made.agreement if result.made else None
    if agreement is None:
        return ""
    if agreement.same_bytes:
        return f"; {agreement.builds} builds have the same bytes"
    if agreement.same_canonical:
        return f"; {agreement.builds} builds agree in the canonical digest, not in their bytes"
    return f"; {agreement.builds} builds differ, in the canonical digest too"


def pass_words(event: Event) -> str:
    """Such as `pass 1 of 2: recording the tactics of each layer`."""
    return f"pass {event['number']} of {event['of']}: {event['name']}"


class LineListener:
    """One line when a target starts, one when it ends; nothing in between."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._begun = time.monotonic()
        self._started: set[str] = set()

    def planned(self, plan: Plan) -> None:
        """Says what will be built."""
        todo = sum(t.supported and not t.in_store for t in plan.targets)
        have = sum(t.in_store for t in plan.targets)
        targets = f"{len(plan.targets)} target{'s' if len(plan.targets) != 1 else ''}"
        self._say(
            f"{plan.model_file}: {targets} on {plan.backend} "
            f"{plan.backend_version}: {todo} to build, {have} in the store"
        )

    def event(self, target: str, event: Event) -> None:
        """Says once that a build has started, and what comes before it or takes several passes."""
        if event["event"] == "waiting":
            self._say(f"{target}: {event['name']}")
        if event["event"] == "pass":
            self._say(f"{target}: {pass_words(event)}")
        if event["event"] == "phase" and event.get("ahead"):
            self._say(f"{target}: {str(event['name']).lower()}")
        elif event["event"] == "phase" and target not in self._started:
            self._started.add(target)
            self._say(f"{target}: building")
            # The table at the end needs it: it loads while the builder works.
            importlib.import_module("rich.table")
            importlib.import_module("trtplug.report.text")

    def ended(self, result: Result) -> None:
        """Says how it ended."""
        self._say(f"{result.target.target}: {result_line(result)}")

    def _say(self, line: str) -> None:
        # Progress that nobody reads any more is no reason to stop.
        with contextlib.suppress(OSError):
            print(
                printable(f"[{time.monotonic() - self._begun:6.1f} s] {line}"),
                file=self._stream,
                flush=True,
            )


class BarListener:
    """A bar for each target, driven by the builder's own progress monitor."""

    def __init__(self, bars: Any) -> None:  # noqa: ANN401 - rich is loaded only where it is used
        self._bars = bars
        self._tasks: dict[str, Any] = {}
        self._phases: dict[str, _Phases] = {}

    def planned(self, plan: Plan) -> None:
        """One bar for each target."""
        for target in plan.targets:
            self._phases[target.target] = _Phases()
            self._tasks[target.target] = self._bars.add_task(
                "waiting", target=printable(target.target), total=1.0
            )

    def event(self, target: str, event: Event) -> None:
        """Moves the bar, and names the phase."""
        done, name = self._phases[target].take(event)
        self._bars.update(self._tasks[target], completed=done, description=printable(name))

    def ended(self, result: Result) -> None:
        """Fills the bar, and says how it ended."""
        task = self._tasks[result.target.target]
        self._bars.update(
            task, completed=1.0 if result.made else None, description=printable(result_line(result))
        )
        self._bars.stop_task(task)


class _Phases:
    """Nested phases of one build as a share of the whole: each step of a phase weighs the same."""

    def __init__(self) -> None:
        self._open: list[tuple[str, int, int]] = []
        self._most = 0.0
        self._pass = (1, 1)
        self._said = ""

    def take(self, event: Event) -> tuple[float, str]:
        kind, name = event["event"], str(event.get("name", ""))
        if kind == "phase":
            self._open.append((name, int(str(event["steps"])) or 1, 0))
        elif kind == "step":
            step = int(str(event["step"]))
            self._open = [(n, s, step if n == name else d) for n, s, d in self._open]
        elif kind == "waiting":
            return self._most, name
        elif kind == "pass":
            self._pass = int(str(event["number"])), int(str(event["of"]))
            self._open, self._said = [], pass_words(event)
            return self._most, self._said
        elif kind == "end":
            self._open = [p for p in self._open if p[0] != name]
        share, width = 0.0, 1.0
        for _, steps, done in self._open:
            share += width * min(done, steps) / steps
            width /= steps
        number, of = self._pass
        share = (number - 1 + min(share, 1.0)) / of
        # A bar that goes back would be read as a fault.
        self._most = max(self._most, share)
        phase = self._open[-1][0] if self._open else "finishing"
        return self._most, f"{self._said}: {phase}" if self._said else phase
