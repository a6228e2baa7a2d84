"""Progress of many equal steps on stderr: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
                click.echo(line, err=True)
