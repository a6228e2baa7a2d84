"""Log lines: on stderr by `-v`, in a file by TRTPLUG_LOG, never on stdout."""

from __future__ import annotations

import logging
import os
import re
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli_runner import run_here
from tests.models import conv_chain, save
from trtplug import profile

if TYPE_CHECKING:
    from pathlib import Path

LOG = logging.getLogger("trtplug.place")


@pytest.fixture
def speaking(monkeypatch: pytest.MonkeyPatch) -> None:
    """`trtplug targets` logs on the way."""
    real = profile.load_profiles

    def speak(*arguments):
        LOG.info("chosen: %s", "a\n::error::b\x1b]0;c\x07\u202ed")
        LOG.debug("looked at %d", 1)
        return real(*arguments)

    monkeypatch.setattr(profile, "load_profiles", speak)


INFO = "info place: chosen: a\\n::error::b\\x1b]0;c\\x07\\u202ed\n"
DEBUG = "debug place: looked at 1\n"


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("targets",), ""),
        (("-v", "targets"), INFO),
        (("targets", "-v"), INFO),
        (("targets", "--verbose"), INFO),
        (("-vv", "targets"), INFO + DEBUG),
        (("targets", "-vv"), INFO + DEBUG),
        (("-v", "targets", "-v"), INFO + DEBUG),
        (("-v", "targets", "-vvv"), INFO + DEBUG),
    ],
)
@pytest.mark.usefixtures("speaking")
def test_lines_on_stderr(arguments, shown: str):
    plain = run_here("targets").out
    for _ in range(2):  # one command leaves nothing to the next
        ran = run_here(*arguments)
        assert ran.status == 0
        assert ran.out == plain
        assert "".join(x for x in ran.err.splitlines(True) if " place: " in x) == shown


@pytest.mark.usefixtures("speaking")
def test_all_lines_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "log"
    monkeypatch.setenv("TRTPLUG_LOG", str(file))
    assert run_here("targets").err == ""
    assert run_here("targets", "-v").err.endswith(INFO)
    lines = [x for x in file.read_text().splitlines(True) if " place: " in x]
    assert len(lines) == 4
    stamp = rf"\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d,\d{{3}} {os.getpid()} "
    assert [re.sub(f"^{stamp}", "", x) for x in lines] == [INFO, DEBUG] * 2


def test_a_file_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TRTPLUG_LOG", str(tmp_path / "absent/log"))
    ran = run_here("targets")
    assert ran.status == 4
    assert ran.err.startswith("error[output]: ")


@pytest.mark.usefixtures("speaking")
def test_a_log_that_is_full_or_closed_stops_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TRTPLUG_LOG", "/dev/full")
    ran = run_here("targets")
    assert (ran.status, ran.err) == (0, "")
    monkeypatch.delenv("TRTPLUG_LOG")
    monkeypatch.setattr(sys, "stderr", None)
    LOG.info("nothing is shown any more")


def test_each_command_and_each_in_a_group_has_the_option():
    for arguments in (("build",), ("cache", "verify"), ("lock", "diff"), ("kernels", "list"), ()):
        assert "-v, --verbose" in run_here(*arguments, "--help").out


def test_why_a_backend_is_not_chosen(tmp_path: Path):
    save(conv_chain(1), tmp_path / "m.onnx")
    ran = run_here("build", tmp_path / "m.onnx", "--target", "sm_89", "--dry-run", "-v")
    assert "info backends.find: backend trt is not chosen: " in ran.err
