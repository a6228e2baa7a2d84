"""Every step of scripts/gpu_check as a test; skipped, with the reason, where no GPU is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gpu.place import Place, look
from tests.gpu.steps import Outcome, run_step
from tests.gpu.table import all_steps

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.gpu

STEPS = {step.name: step for step in all_steps()}


@pytest.fixture(scope="module")
def place() -> Place:
    """The machine at hand."""
    found = look()
    if found.missing:
        pytest.skip(f"missing here: {'; '.join(found.missing)}")
    return found


class Steps:
    """Runs each step once, after those whose folders it reads."""

    def __init__(self, work: Path) -> None:
        self._work, self._outcomes = work, dict[str, Outcome]()

    def run(self, name: str) -> Outcome:
        for need in STEPS[name].needs:
            self.run(need)
        if name not in self._outcomes:
            self._outcomes[name] = run_step(STEPS[name], self._work)
        return self._outcomes[name]


@pytest.fixture(scope="module")
def steps(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Steps:
    return Steps(tmp_path_factory.mktemp("gpu"))


@pytest.mark.parametrize("name", list(STEPS))
def test_step(steps: Steps, name: str):
    outcome = steps.run(name)
    assert (outcome.status, outcome.why) == ("passed", "")
