"""Every error that the code goes on after is a line of the log, or of the child's notes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from trtplug.backends import child_loop
from trtplug.backends.child import run_alone
from trtplug.backends.gpu import Gpu
from trtplug.backends.gpu_lock import holding_gpu
from trtplug.backends.launch import ignoring
from trtplug.target import Sm

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level("DEBUG", "trtplug")
    return caplog


def test_only_the_named_kinds_are_ignored(log: pytest.LogCaptureFixture):
    with ignoring(ProcessLookupError):
        raise ProcessLookupError("no such process")
    assert log.messages == ["ignored: no such process"]
    with pytest.raises(PermissionError), ignoring(ProcessLookupError):
        raise PermissionError


def test_what_the_system_refuses_is_said(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    assert run_alone(0) == [
        "not kept on one processor: [Errno 1] Operation not permitted",
        "not under SCHED_BATCH: [Errno 1] Operation not permitted",
    ]
    assert len(run_alone(None)) == 1


def test_a_library_that_cannot_be_looked_up_is_a_note(monkeypatch: pytest.MonkeyPatch):
    notes: list[dict[str, object]] = []
    monkeypatch.setattr(child_loop, "Path", lambda _: BrokenFile())
    assert child_loop.loaded_library("lib", lambda **event: notes.append(event)) == ""
    assert notes == [{"event": "note", "text": "the library's file is not known: no /proc"}]


class BrokenFile:
    def read_text(self, encoding: str) -> str:
        raise OSError("no /proc")


def test_the_lock_of_a_gpu_that_is_made_first(tmp_path: Path, log: pytest.LogCaptureFixture):
    with holding_gpu(Gpu(name="H200", sm=Sm(90)), wait=False, folder=tmp_path):
        pass
    assert all(m.startswith("ignored: [Errno 2] No such file") for m in log.messages)
    assert log.messages != []
