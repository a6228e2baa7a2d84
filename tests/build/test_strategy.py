from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trtplug.backends.backend import Outcome
from trtplug.build.strategy import Course, Pass, builder_refused

if TYPE_CHECKING:
    from pathlib import Path

OUTCOME = Outcome(
    target="t",
    folder="f",
    status="built",
    reasons=(),
    how="",
    warnings=(),
    seconds=1.0,
    peak_bytes=1,
    builder_version="1",
    library="",
    engine_sha256="ab",
    aslr_off=True,
)


def test_one_pass_for_each_build_from_an_empty_cache(tmp_path: Path):
    course = Course(None, [tmp_path / "a", tmp_path / "b"])  # type: ignore[arg-type]
    assert course.expects == 2
    assert course.opening() == tuple(
        Pass(target=None, folder=tmp_path / n)  # type: ignore[arg-type]
        for n in "ab"
    )
    assert course.following(None, OUTCOME) is None  # type: ignore[arg-type]
    assert course.why_failed(OUTCOME) is None


def test_a_builder_that_refuses_gives_no_engine():
    assert builder_refused(replace(OUTCOME, status="failed", engine_sha256=""))
    assert not builder_refused(replace(OUTCOME, status="failed"))
    assert not builder_refused(OUTCOME)
