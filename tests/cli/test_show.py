"""Results on stdout: plans and bundles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.build.samples import plan_of
from tests.cli_runner import run_here
from trtplug.cli.show import plan_text
from trtplug.plan import PlannedTarget

if TYPE_CHECKING:
    from pathlib import Path

TARGET = {"target": "rtx-1.7:sm_89", "sm": "sm_89", "gpus": ("l4",), "key": "k"}


def test_plan_says_for_each_target_what_will_be_done():
    text = plan_text(
        plan_of(
            PlannedTarget(**TARGET, supported=True, in_store=False),
            PlannedTarget(**TARGET, supported=True, in_store=True),
            PlannedTarget(**{**TARGET, "gpus": ()}, supported=False, in_store=False),
        )
    )
    assert text.splitlines()[-3:] == [
        "rtx-1.7:sm_89  build  (serves l4)",
        "rtx-1.7:sm_89  take from the store  (serves l4)",
        "rtx-1.7:sm_89  cannot be built by this backend  (serves no profile)",
    ]


def test_summary_names_files_that_are_there_and_failures(here: Path, model: Path, double):
    ran = run_here("build", model, "--target", "sm_89", "--target", "sm_90")
    for word in ("engine", "report"):
        (line,) = [x for x in ran.out.splitlines() if x.startswith(f"  {word}  ")]
        assert (here / line.split()[1]).is_file()
    assert ran.out.endswith("rtx-1.7:sm_90  FAILED  target-unsupported\n")


def test_report_fits_a_terminal_of_100_columns(here: Path, model: Path, double):
    ran = run_here("build", model, "--target", "sm_89")
    table = ran.out.partition("rtx-1.7:sm_89  serves")[0]
    assert max(map(len, table.splitlines())) <= 100
