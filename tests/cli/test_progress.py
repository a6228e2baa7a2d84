"""Progress: plain lines where stderr is no terminal, bars that never go back where it is."""

from __future__ import annotations

import dataclasses
import io
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build.samples import plan_of
from tests.bundle.samples import fill
from tests.cli_runner import run_here
from trtplug.build.command import Result
from trtplug.bundle.manifest import Agreement
from trtplug.cli.progress import (
    BarListener,
    LineListener,
    _Phases,
    agreement_words,
    make_listener,
)
from trtplug.errors import BuildTimeoutError
from trtplug.plan import PlannedTarget

if TYPE_CHECKING:
    from pathlib import Path

TARGET = PlannedTarget(
    target="rtx-1.7:sm_89", sm="sm_89", gpus=(), supported=True, key="k", in_store=False
)
FAILED = Result(target=TARGET, error=BuildTimeoutError(target="rtx-1.7:sm_89", limit_s=1.0))

EVENTS = st.one_of(
    st.builds(
        lambda n, s: {"event": "phase", "name": n, "parent": None, "steps": s},
        st.sampled_from("abc"),
        st.integers(0, 5),
    ),
    st.builds(
        lambda n, s: {"event": "step", "name": n, "step": s},
        st.sampled_from("abc"),
        st.integers(0, 9),
    ),
    st.builds(lambda n: {"event": "end", "name": n}, st.sampled_from("abc")),
    st.just({"event": "ready"}),
    st.builds(lambda n: {"event": "pass", "name": "p", "number": n, "of": 2}, st.integers(1, 2)),
)


@given(st.lists(EVENTS, max_size=30))
def test_share_stays_between_0_and_1_and_never_falls(events):
    phases, last = _Phases(), 0.0
    for event in events:
        share, name = phases.take(event)
        assert last <= share <= 1.0
        assert name
        last = share


def test_nested_phases_weigh_by_their_steps():
    phases = _Phases()
    assert phases.take({"event": "phase", "name": "a", "parent": None, "steps": 4}) == (0.0, "a")
    assert phases.take({"event": "step", "name": "a", "step": 2}) == (0.5, "a")
    assert phases.take({"event": "phase", "name": "b", "parent": "a", "steps": 2}) == (0.5, "b")
    assert phases.take({"event": "step", "name": "b", "step": 1}) == (0.625, "b")
    assert phases.take({"event": "end", "name": "b"})[1] == "a"


def test_lines_say_the_start_and_the_end_of_each_target(here: Path, model: Path, double):
    ran = run_here("build", model, "--target", "sm_89", "--target", "sm_90")
    said = [line.partition("] ")[2] for line in ran.err.splitlines() if line.startswith("[")]
    assert said[0] == "build.onnx: 2 targets on rtx 1.7.1.116: 1 to build, 0 in the store"
    assert "rtx-1.7:sm_90: failed: target-unsupported" in said
    assert said.count("rtx-1.7:sm_89: building") == 1
    assert any(line.startswith("rtx-1.7:sm_89: built in ") for line in said)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_bars_on_a_terminal_one_a_target_with_the_phase(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    stream = Terminal()
    with make_listener(stream) as listener:
        assert isinstance(listener, BarListener)
        listener.planned(plan_of(TARGET))
        listener.event(TARGET.target, {"event": "phase", "name": "[bold]Odd", "steps": 2})
        listener.event(TARGET.target, {"event": "step", "name": "[bold]Odd", "step": 1})
        listener.ended(FAILED)
    text = stream.getvalue()
    assert "rtx-1.7:sm_89" in text
    assert "failed: build-timeout" in text


def test_reader_that_is_gone_does_not_stop_a_build():
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    LineListener(Gone()).ended(FAILED)


@pytest.mark.parametrize(
    ("same_bytes", "same_canonical", "words"),
    [
        (True, True, "; 5 builds have the same bytes"),
        (False, True, "; 5 builds agree in the canonical digest, not in their bytes"),
        (False, False, "; 5 builds differ, in the canonical digest too"),
    ],
)
def test_agreement_is_never_overstated(tmp_path: Path, same_bytes, same_canonical, words: str):
    agreement = Agreement(builds=5, same_bytes=same_bytes, same_canonical=same_canonical)
    made = dataclasses.replace(fill(tmp_path).targets[0], agreement=agreement)
    assert agreement_words(Result(target=TARGET, made=made)) == words
    assert agreement_words(FAILED) == ""


def test_the_bar_of_two_passes_is_half_full_after_the_first():
    phases = _Phases()
    assert phases.take({"event": "pass", "name": "recording", "number": 1, "of": 2}) == (
        0.0,
        "pass 1 of 2: recording",
    )
    phases.take({"event": "phase", "name": "a", "parent": None, "steps": 2})
    assert phases.take({"event": "step", "name": "a", "step": 2}) == (
        0.5,
        "pass 1 of 2: recording: a",
    )
    share, words = phases.take({"event": "pass", "name": "building", "number": 2, "of": 2})
    assert (share, words) == (0.5, "pass 2 of 2: building")
    phases.take({"event": "phase", "name": "a", "parent": None, "steps": 2})
    assert phases.take({"event": "step", "name": "a", "step": 1})[0] == 0.75


def test_lines_name_the_passes():
    stream = io.StringIO()
    LineListener(stream).event("t", {"event": "pass", "name": "recording", "number": 1, "of": 2})
    assert stream.getvalue().endswith("t: pass 1 of 2: recording\n")
