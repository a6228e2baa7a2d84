"""2,000 damaged copies of small ONNX files: a message and a status, never a traceback or a hang.

Here 2,000 go through reading, planning, repair, analysis and reports, with a builder that builds
any model; 150 go through the real builder and the command line. `scripts/fuzz_build`
sends any number through the real builder.
"""

from __future__ import annotations

import functools
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli_runner import run_here
from tests.hostile.mutants import DYNAMIC, SHAPES, mutant, seeds
from tests.hostile.quick import QuickChildren
from trtplug.backends.rtx import backend as rtx_backend
from trtplug.build import plan as build_plan
from trtplug.build import run as build_run
from trtplug.build.command import BuildCommand
from trtplug.build.run import run_build
from trtplug.errors import BAD_INPUT, BUILD_FAILED, DONE, FAULT, TrtplugError
from trtplug.settings import read_settings
from trtplug.tensor import parse_shape_range

if TYPE_CHECKING:
    from trtplug.backends.request import Event
    from trtplug.build.command import Result
    from trtplug.plan import Plan

SOURCES = tuple(s.SerializeToString(deterministic=True) for s in seeds())
BATCHES = 10
A_BATCH = 200


class Silence:
    def __init__(self) -> None:
        self.failed = False

    def planned(self, plan: Plan) -> None:
        pass

    def event(self, target: str, event: Event) -> None:
        pass

    def ended(self, result: Result) -> None:
        self.failed |= result.error is not None
        assert result.error is None or result.error.exit_status in (BAD_INPUT, BUILD_FAILED)


ALIKE = (
    (build_plan, "load_profiles"),
    (build_plan, "profiles_digest"),
    (rtx_backend, "installed_version"),
)
"""Functions whose answer no mutant changes; together they take more than half of a plan's time."""


@pytest.fixture
def asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ALIKE:
        monkeypatch.setattr(module, name, functools.cache(getattr(module, name)))


def status_of(model: Path, shapes: tuple[str, ...]) -> int:
    command = BuildCommand(
        model=model,
        targets=("sm_89",),
        profiles=(tuple(parse_shape_range(s) for s in shapes[1:]),),
        out=Path("out"),
    )
    listener = Silence()
    try:
        run_build(command, read_settings(), listener)
    except TrtplugError as error:
        return error.exit_status if error.message else FAULT
    shutil.rmtree("out")
    return BUILD_FAILED if listener.failed else DONE


@pytest.mark.usefixtures("asked_once")
@pytest.mark.parametrize("batch", range(BATCHES))
def test_mutants_through_everything_but_the_builder(tmp_path: Path, monkeypatch, batch: int):
    monkeypatch.setattr(build_run, "Children", QuickChildren)
    monkeypatch.chdir(tmp_path)
    seen: Counter[int] = Counter()
    for number in range(batch * A_BATCH, (batch + 1) * A_BATCH):
        data, shapes = mutant(number, SOURCES)
        Path("m.onnx").write_bytes(data)
        sys.stdout.write(f"mutant {number}\n")  # pytest shows it with the traceback
        seen[status_of(Path("m.onnx"), shapes)] += 1
        assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx"]
    assert set(seen) <= {DONE, BAD_INPUT, BUILD_FAILED}
    # Were all refused at once, or none at all, this would test little.
    assert seen[DONE] > A_BATCH // 5
    assert seen[BAD_INPUT] > A_BATCH // 5


@pytest.mark.rtx
@pytest.mark.usefixtures("asked_once")
@pytest.mark.parametrize("batch", range(5))
def test_mutants_through_the_real_builder(tmp_path: Path, monkeypatch, batch: int):
    monkeypatch.chdir(tmp_path)
    for number in range(10_000 + batch * 30, 10_000 + (batch + 1) * 30):
        data, shapes = mutant(number, SOURCES)
        Path("m.onnx").write_bytes(data)
        ran = run_here("build", "m.onnx", "--target", "sm_89", "--timeout", "60", *shapes)
        assert ran.status in (DONE, BAD_INPUT, BUILD_FAILED), f"mutant {number}: {ran.err}"
        assert "Traceback" not in ran.err, f"mutant {number}: {ran.err}"
        assert "build-timeout" not in ran.err, f"mutant {number}: {ran.err}"


def test_a_number_names_a_mutant_for_good():
    assert [mutant(n, SOURCES) for n in range(50)] == [mutant(n, SOURCES) for n in range(50)]
    assert len({mutant(n, SOURCES)[0] for n in range(200)}) > 190


@pytest.mark.rtx
@pytest.mark.parametrize("number", range(len(SOURCES)))
def test_seeds_build(tmp_path: Path, monkeypatch, number: int):
    monkeypatch.chdir(tmp_path)
    Path("m.onnx").write_bytes(SOURCES[number])
    shapes = SHAPES if number == DYNAMIC else ()
    ran = run_here("build", "m.onnx", "--target", "sm_89", *shapes)
    assert ran.status == DONE, ran.err
