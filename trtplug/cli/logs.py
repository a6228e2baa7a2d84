"""Log lines: on stderr with `-v` and `-vv`, and in the file that `TRTPLUG_LOG` names."""

from __future__ import annotations

import contextlib
import logging
import sys
from typing import TYPE_CHECKING

from trtplug.report.words import printable
from trtplug.store import as_output_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import click

_SHORT = "%(level)s %(place)s: %(message)s"
_LONG = "%(asctime)s %(process)d %(level)s %(place)s: %(message)s"

_HANDLER = "trtplug.cli.logs"
"""Key of the context's notes: the handler that writes to stderr."""


def show_more(root: click.Context, count: int) -> None:
    """Shows log lines on stderr until the command ends.

    Args:
        root: context of the whole command line.
        count: of `-v`, beside those before; one shows decisions (INFO), two everything (DEBUG).
    """
    handler: logging.Handler | None = root.meta.get(_HANDLER)
    if handler is None:
        handler = root.with_resource(_show(_Stderr(logging.INFO), _SHORT))
        root.meta[_HANDLER] = handler
        count -= 1
    if count > 0:
        handler.setLevel(logging.DEBUG)
    _follow()


def log_to_file(root: click.Context, file: Path) -> None:
    """Appends all log lines to a file until the command ends.

    Raises:
        OutputError: it cannot be written.
    """
    with as_output_error(file):
        handler = _File(file, encoding="utf-8", errors="backslashreplace")
    root.with_resource(_show(handler, _LONG))


class _Line(logging.Formatter):
    """One line a record: names and messages from models and builders cannot start another one."""

    def format(self, record: logging.LogRecord) -> str:
        record.level = record.levelname.lower()
        record.place = record.name.removeprefix("trtplug.")
        return printable(super().format(record))


class _Stderr(logging.Handler):
    """Writes to what is `sys.stderr` at that moment, if anything."""

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError, ValueError):
            if sys.stderr is not None:
                sys.stderr.write(self.format(record) + "\n")
                sys.stderr.flush()


class _File(logging.FileHandler):
    """A full disk is no reason to stop a build, nor to write about it on stderr."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass


@contextlib.contextmanager
def _show(handler: logging.Handler, form: str) -> Iterator[logging.Handler]:
    logger = logging.getLogger("trtplug")
    handler.setFormatter(_Line(form))
    logger.addHandler(handler)
    _follow()
    try:
        yield handler
    finally:
        logger.removeHandler(handler)
        with contextlib.suppress(OSError):
            handler.close()
        _follow()


def _follow() -> None:
    """Records are made only where a handler shows them."""
    logger = logging.getLogger("trtplug")
    logger.setLevel(
        min((h.level or logging.DEBUG for h in logger.handlers), default=logging.NOTSET)
    )
