from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trtplug.backends.backend import Outcome
from trtplug.build.strategy import BuilderRun, BuildStrategy, builder_refused

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


def test_one_run_for_each_build_from_an_empty_cache(tmp_path: Path):
    folders = (tmp_path / "a", tmp_path / "b")
    strategy = BuildStrategy(None, None, None, folders)  # type: ignore[arg-type]
    assert strategy.expects == 2
    assert strategy.first_runs() == tuple(BuilderRun(folder=f) for f in folders)
    assert strategy.next_runs(OUTCOME) is None
    assert strategy.explain_failure(OUTCOME) is None


def test_a_builder_that_refuses_gives_no_engine():
    assert builder_refused(replace(OUTCOME, status="failed", engine_sha256=""))
    assert not builder_refused(replace(OUTCOME, status="failed"))
    assert not builder_refused(OUTCOME)
