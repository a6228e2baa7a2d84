"""Children that build: watched, held to limits, every end an Outcome, none left behind."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.backends.double import CHILD
from tests.cli_runner import children_of
from trtplug.backends import run_child
from trtplug.backends.options import BuildOptions
from trtplug.backends.request import BuildRequest, Event, InputRange
from trtplug.backends.run_child import Children, Limits

if TYPE_CHECKING:
    from pathlib import Path

    from trtplug.backends.backend import Outcome

PROMPT_S = 20.0
"""Far above what a double needs, far below what it would take to wait for one that hangs."""


def request(folder: Path, action: str, number: int = 0) -> BuildRequest:
    place = folder / f"{number}-{action}"
    place.mkdir()
    return BuildRequest(
        target=f"rtx-1.7:sm_{number + 80}",
        sm=number + 80,
        model=f"/nowhere/{action}.onnx",
        data=None,
        ranges=(InputRange(name="x", min=(1,), opt=(2,), max=(3,)),),
        options=BuildOptions(),
        folder=str(place),
    )


def run(
    folder: Path, *actions: str, jobs: int = 2, events: list[tuple[str, Event]] | None = None,
    **limits: float,
) -> list[Outcome]:  # fmt: skip
    received = events if events is not None else []
    begun = time.monotonic()
    with Children(CHILD, jobs, Limits(**limits)) as children:  # type: ignore[arg-type]
        children.submit([request(folder, a, i) for i, a in enumerate(actions)])
        outcomes = list(children.outcomes(lambda target, event: received.append((target, event))))
    assert time.monotonic() - begun < PROMPT_S
    assert children_of(os.getpid()) == []
    return sorted(outcomes, key=lambda o: o.target)


def test_built_with_progress(tmp_path: Path):
    events: list[tuple[str, Event]] = []
    (outcome,) = run(tmp_path, "build", events=events)
    assert outcome.status == "built"
    assert outcome.warnings == ("a warning",)
    assert outcome.builder_version == "1.7.1.116"
    assert outcome.seconds > 0
    assert [e["event"] for _, e in events] == ["ready", "phase", "step", "end"]
    assert {t for t, _ in events} == {"rtx-1.7:sm_80"}


def test_a_note_of_the_child_is_a_line_of_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO", "trtplug")
    events: list[tuple[str, Event]] = []
    (outcome,) = run(tmp_path, "notes", events=events)
    assert outcome.status == "built"
    assert "note" not in {e["event"] for _, e in events}
    assert "build for rtx-1.7:sm_80: not kept on one processor: no" in caplog.messages


@pytest.mark.parametrize(
    ("action", "status", "how", "words"),
    [
        ("refuse", "refused", "", "node 'n' (T): no"),
        ("fail", "failed", "", "a reason"),
        ("unwritable", "unwritable", "", "No space left on device"),
        ("crash", "crashed", "signal SIGSEGV", "[V] line 99"),
        ("exits", "crashed", "exit status 1", "what it says before its log is open"),
        ("half", "crashed", "exit status 0", ""),
        ("killed", "memory", "killed", ""),
    ],
)
def test_each_end_is_an_outcome_and_the_others_go_on(
    tmp_path: Path, action: str, status: str, how: str, words: str
):
    bad, good = run(tmp_path, action, "build", jobs=1)
    assert (bad.status, bad.how) == (status, how)
    assert words in "\n".join(bad.reasons)
    assert good.status == "built"


def test_last_lines_of_a_crash_are_few(tmp_path: Path):
    (outcome,) = run(tmp_path, "crash")
    assert outcome.reasons == tuple(f"[V] line {i}" for i in range(88, 100))


def test_a_crash_is_met_again_with_a_log_in_full(tmp_path: Path):
    (outcome,) = run(tmp_path, "verbose")
    assert outcome.status == "crashed"
    assert outcome.reasons[-1] == "[V] verbose: True"
    log = (tmp_path / "0-verbose/build.log").read_text()
    assert log.count("[V] verbose: ") == 2


def test_child_that_closes_its_channel_and_lives_on_is_ended(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(run_child, "_LINGER_S", 0.3)
    bad, good = run(tmp_path, "stubborn", "build")
    assert bad.status == "crashed"
    assert good.status == "built"


def test_time_limit(tmp_path: Path):
    bad, good = run(tmp_path, "hang", "build", timeout_s=0.5)
    assert bad.status == "timeout"
    assert 0.5 <= bad.seconds < 5
    assert good.status == "built"


def test_a_stopped_child_ends_by_its_time_limit(tmp_path: Path):
    bad, good = run(tmp_path, "stop", "build", timeout_s=0.5)
    assert bad.status == "timeout"
    assert good.status == "built"


def test_a_library_that_never_loads_is_a_failed_build(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(run_child, "_LOAD_S", 0.5)
    command = (sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)")
    with Children(command, 1, Limits()) as children:
        children.submit([request(tmp_path, "build")])
        (outcome,) = children.outcomes(lambda *_: None)
    assert (outcome.status, outcome.reasons) == (
        "failed",
        ("the builder's library did not load within 0.5 s",),
    )
    assert children_of(os.getpid()) == []


def test_memory_limit(tmp_path: Path):
    bad, good = run(tmp_path, "eat", "build", memory_bytes=100 << 20)
    assert bad.status == "memory"
    assert bad.how != "killed"
    assert 100 << 20 < bad.peak_bytes < 1000 << 20
    assert good.status == "built"


def test_many_events_lose_none(tmp_path: Path):
    events: list[tuple[str, Event]] = []
    (outcome,) = run(tmp_path, "chatty", events=events)
    assert outcome.status == "built"
    assert sum(e["event"] == "step" for _, e in events) == 20_001


def test_no_more_at_once_than_allowed(tmp_path: Path):
    most = processes = 0
    building: set[str] = set()

    def count(target: str, event: Event) -> None:
        nonlocal most, processes
        if event["event"] == "phase":
            building.add(target)
        elif event["event"] == "end":
            building.discard(target)
        most = max(most, len(building))
        processes = max(processes, len(children_of(os.getpid())))

    with Children(CHILD, 2, Limits()) as children:
        children.warm(5)
        children.submit([request(tmp_path, "build", i) for i in range(5)])
        assert len(list(children.outcomes(count))) == 5
    assert most <= 2
    assert processes <= 2 + 1 + 2  # that build, that loads for the next one, that have just ended


def test_warm_children_that_get_no_request_do_not_stay():
    with Children(CHILD, 3, Limits()) as children:
        children.warm(3)
        assert len(children_of(os.getpid())) == 3
    assert children_of(os.getpid()) == []


def test_withdrawn_builds_end_and_leave_nothing_and_others_may_follow(tmp_path: Path):
    asked = [request(tmp_path, action, i) for i, action in enumerate(("hang", "build", "hang"))]
    with Children(CHILD, 1, Limits()) as children:
        children.submit(asked)
        (tmp_path / "0-hang" / "build.log").touch()
        children.withdraw()
        assert not [*tmp_path.glob("*/*")]
        again = dataclasses.replace(asked[0], model="/nowhere/build.onnx")
        children.submit([again])
        (outcome,) = children.outcomes(lambda *_: None)
    assert (outcome.status, outcome.folder) == ("built", again.folder)
    assert children_of(os.getpid()) == []


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, GeneratorExit])
def test_none_is_left_when_the_caller_gives_up(tmp_path: Path, error: type[BaseException]):
    def give_up(target: str, event: Event) -> None:
        if event["event"] == "phase":
            raise error

    with contextlib.suppress(error), Children(CHILD, 2, Limits()) as children:
        children.submit([request(tmp_path, "hang", i) for i in range(3)])
        list(children.outcomes(give_up))
    assert children_of(os.getpid()) == []


def test_child_that_cannot_start_is_told(tmp_path: Path):
    def submit():
        with Children(("/nowhere/child",), 1, Limits()) as children:
            children.submit([request(tmp_path, "build")])

    with pytest.raises(FileNotFoundError):
        submit()


def test_environment_of_a_child_is_fixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    monkeypatch.setenv("LANG", "C")
    run(tmp_path, "environment")
    environ = json.loads((tmp_path / "0-environment/engine").read_text())
    assert environ["PYTHONHASHSEED"] == "0"
    assert environ["LANG"] == "C"
    assert not {"NVIDIA_TF32_OVERRIDE", "CUDA_VISIBLE_DEVICES"} & set(environ)
