"""The entry point: every end of a command is words and a status, never a traceback."""

from __future__ import annotations

import errno
import io
import os
import re
import shlex
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest

import trtplug
from tests.cli_runner import TRTPLUG, run_apart, run_here
from trtplug import errors
from trtplug.cli import main as entry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(arguments: object) -> int:
        raise error

    monkeypatch.setattr(entry, "main_inner", fail)


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (errors.UsageError("no", "do this"), 2, "error[usage]: no\nhint: do this\n"),
        (KeyboardInterrupt(), 130, "interrupted; nothing was left half-written\n"),
        (BrokenPipeError(), 0, ""),
        (OSError(errno.ENOSPC, "No space left on device"), 4, "cannot write its output: No space"),
        (OSError(errno.ENOSPC, "No space left on device", "f"), 4, "cannot write f: No space"),
        (OSError(errno.ENOENT, "No such file"), 70, "error[fault]: trtplug itself failed"),
        (RuntimeError("odd"), 70, "RuntimeError: odd"),
    ],
)
def test_each_end(monkeypatch: pytest.MonkeyPatch, capfd, error, status: int, words: str):
    raising(monkeypatch, error)
    if not isinstance(error, BrokenPipeError):
        ran = run_here()
        assert (ran.status, words in ran.err) == (status, True)
        assert "Traceback" not in ran.err


def test_traceback_of_a_fault_on_request(monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.setenv("TRTPLUG_TRACEBACK", "1")
    raising(monkeypatch, RuntimeError("odd"))
    assert entry.main([]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_no_command_says_what_there_is():
    ran = run_here()
    assert ran.status == 0
    assert "build" in ran.out
    assert ran.out == run_here("--help").out


@pytest.mark.parametrize("arguments", [("frob",), ("--frob",), ("build", "--no"), ("targets", "x")])
def test_wrong_use_says_where_to_look(arguments):
    ran = run_here(*arguments)
    assert ran.status == 2
    assert ran.err.startswith("error[usage]: ")
    command = f"trtplug {arguments[0]}" if len(arguments) > 1 else "trtplug"
    assert ran.err.endswith(f"hint: `{command} --help` lists its options\n")


def every_command() -> Iterator[tuple[str, ...]]:
    def below(group: click.Group, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        context = click.Context(group)
        for name in group.list_commands(context):
            yield (*path, name)
            command = group.get_command(context, name)
            if isinstance(command, click.Group):
                yield from below(command, (*path, name))

    yield from below(entry.app, ())


@pytest.mark.parametrize("command", list(every_command()), ids=" ".join)
def test_every_help_has_a_purpose_an_example_and_exit_statuses(command: tuple[str, ...]):
    ran = run_here(*command, "--help")
    assert ran.status == 0
    usage, purpose, *_ = ran.out.split("\n\n")
    assert usage.startswith(f"Usage: trtplug {' '.join(command)} ")
    assert re.fullmatch(r"  [A-Z][^.]+\.", purpose), "one sentence"
    assert re.search(rf"^  Examples?:\n    trtplug {' '.join(command)} ?", ran.out, re.MULTILINE)
    assert re.search(r"^  Exit status:\n    0  done$", ran.out, re.MULTILINE)
    # As the list of commands shows it, whole.
    listed = run_here(*command[:-1], "--help").out
    assert re.search(rf"^  {command[-1]} +{re.escape(purpose.strip())}$", listed, re.MULTILINE)


def test_examples_in_help_name_options_that_exist():
    for command in every_command():
        shown = run_here(*command, "--help").out
        examples = re.findall(r"^    trtplug (.*)$", shown, re.MULTILINE)
        for example in examples:
            words = shlex.split(example)
            place = 2 if words[0] in ("cache", "kernels", "lock") else 1
            options = run_here(*words[:place], "--help").out
            assert all(f"{w} " in options or f"{w}\n" in options for w in words if w[:2] == "--")


@pytest.mark.parametrize("group", ["cache", "kernels", "lock"])
def test_a_group_alone_prints_its_help(group: str):
    ran = run_here(group)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == run_here(group, "--help").out


@pytest.mark.parametrize(
    ("arguments", "near"),
    [(("biuld",), "'build'"), (("kernels", "chek"), "'check'"), (("lock", "dif"), "'diff'")],
)
def test_a_misspelt_command_gets_a_suggestion(arguments: tuple[str, ...], near: str):
    ran = run_here(*arguments)
    assert ran.status == 2
    assert f"no such command {arguments[-1]!r}; did you mean {near}?" in ran.err


def test_version():
    assert run_here("--version").out == f"trtplug {trtplug.__version__}\n"


def test_reader_that_leaves_is_no_error(tmp_path: Path):
    script = f"set -o pipefail; {TRTPLUG[0]} -m trtplug targets | head -n 1"
    ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_stream_that_is_closed_is_no_fault(tmp_path: Path, stream: str):
    redirect = {"stdout": ">&-", "stderr": "2>&-"}[stream]
    for arguments, status in (("targets", 0), ("frob", 2)):
        script = f"{TRTPLUG[0]} -m trtplug {arguments} {redirect}"
        ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
        assert ran.returncode == status
        assert "Traceback" not in ran.stderr


def test_full_disk_behind_stdout(tmp_path: Path):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        ran = run_apart("targets", cwd=tmp_path, stdout=full)
    assert ran.status == 4
    assert "No space left on device" in ran.err


def test_hangup_is_heard_unless_it_was_ignored(monkeypatch: pytest.MonkeyPatch):
    set_to: dict[int, object] = {}
    monkeypatch.setattr(signal, "signal", lambda number, action: set_to.update({number: action}))
    monkeypatch.setattr(entry, "main", lambda arguments: 7)
    left: list[int] = []
    monkeypatch.setattr(os, "_exit", left.append)
    entry.run()
    assert set(set_to) == {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    set_to.clear()
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.SIG_IGN)
    entry.run()
    assert set_to == {}
    assert left == [7, 7]


def test_what_is_still_to_be_flushed_at_the_end_may_fail(monkeypatch: pytest.MonkeyPatch):
    class Full(io.StringIO):
        def flush(self) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(entry, "main_inner", lambda arguments: 0)
    monkeypatch.setattr(sys, "stdout", Full())
    assert entry.main([]) == 4


def test_odd_bytes_in_arguments_are_refused_in_words(tmp_path: Path):
    for arguments in (("build", os.fsdecode(b"\xff"), "--target", "sm_89"), ("inspect", "\udcff")):
        ran = run_apart(*arguments, cwd=tmp_path)
        assert ran.status == 2, ran.err
        assert "Traceback" not in ran.err
