from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.cli_runner import run_here
from tests.report.samples import chain_report, small_report
from trtplug.document import to_json
from trtplug.report.data import ReportCandidateTable


@pytest.fixture
def report(here):
    """A report with one layer that has candidates, and one table of no layer."""
    small = small_report()
    apart = ReportCandidateTable(
        op="matMul1",
        cache_key="0x0",
        onnx_nodes=("MatMul_7",),
        candidates=tuple(
            replace(c, chosen=False, timed_by="prediction" if c.time_us else None)
            for c in small.layers[2].candidates
        ),
        margin=None,
        near_tie=None,
        selected_by="builder",
        why="no layer",
    )
    (here / "r.json").write_text(to_json(replace(small, unjoined_candidates=(apart,))))
    return here / "r.json"


def test_candidates_with_margin_and_who_timed_them(report):
    ran = run_here("tactics", report)
    assert ran.status == 0
    assert "margin 3.1% near tie" in ran.out
    assert "matMul1 (layer unknown) [MatMul_7]  margin -" in ran.out
    lines = ran.out.splitlines()
    chosen = next(line for line in lines if line.startswith("chosen"))
    assert "timed by the builder" in chosen
    assert any("predicted" in line for line in lines)
    assert any("not timed" in line for line in lines)
    assert ran.out.endswith("not measured in the engine.\n")


def test_forms(report):
    document = json.loads(run_here("tactics", report, "--format", "json").out)
    assert document["schema"] == "trtplug.candidates/1"
    assert [t["layer"] for t in document["tables"]] == ["__myl_CorrMulAdd_myl0_2", None]
    assert document["tables"][0]["candidates"][0]["chosen"] is True
    markdown = run_here("tactics", report, "--format", "markdown").out
    assert "<script>" not in markdown
    assert markdown.count("### ") == 2


def test_filters(report):
    def layers(*options):
        found = json.loads(run_here("tactics", report, "--format", "json", *options).out)
        return [t["layer"] or t["op"] for t in found["tables"]]

    assert layers("--layer", "matMul1") == ["matMul1"]
    assert layers("--layer", "MatMul_*") == ["matMul1"]
    assert layers("--layer", "`x`") == ["__myl_CorrMulAdd_myl0_2"]
    assert layers("--near-ties") == ["__myl_CorrMulAdd_myl0_2"]
    assert layers("--layer", "none") == []
    assert run_here("tactics", report, "--layer", "none").out == "no layer matches\n"


def test_a_bundle_without_candidates_says_why(here, double, model):
    assert run_here("build", model, "--target", "sm_89", "--out", "out").status == 0
    ran = run_here("tactics", "out")
    assert ran.status == 0
    assert ran.out.startswith("no tactics are recorded: TensorRT-RTX chooses kernels")
    assert "--no-timing-cache" in ran.out
    (here / "chain.json").write_text(to_json(chain_report(2)))
    assert run_here("tactics", "chain.json").out == ran.out


@pytest.mark.parametrize("file", ["absent", ".", "model"])
def test_wrong_use_is_one_error(here, model, file):
    ran = run_here("tactics", model if file == "model" else file)
    assert ran.status == 2
    assert ran.err.startswith("error[")
