from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.backends.trt.tactic_logs import CLASSIC, prefixed
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


def test_a_verbose_log_of_anyone_is_read(here):
    """trtexec's order of stamps; a parser that registered what the layer is fused of."""
    registered = "Registering layer: stem for ONNX node: Conv_0\nRegistering layer: stem_act for "
    log = prefixed(f"{registered}ONNX node: Relu_1\n{CLASSIC}".splitlines(), "[V] [TRT] ")
    (here / "trtexec.log").write_text(log)
    document = json.loads(run_here("tactics", "trtexec.log", "--format", "json").out)
    assert document["schema"] == "trtplug.tactic-log/1"
    tables = document["tables"]
    assert document["rows"] == sum(len(t["rows"]) for t in tables) == 12
    first = tables[0]
    assert first["layer"] == "stem + stem_act"
    assert first["formats"] == "Half(3072,1024,32,1) -> Half(16384,1024,32,1)"
    assert first["runner"] == "CaskConvolution"
    assert first["onnx_nodes"] == ["Conv_0", "Relu_1"]
    assert first["chosen"] == "0x00000000000000a2"
    assert first["rows"][1]["time_us"] == pytest.approx(11.5)
    assert first["rows"][1]["kernel"] == "sm75_made_up_fprop_nchw_tilesize64x64x8"
    assert [hit["runner"] for hit in document["hits"]] == ["CaskConvolution"]
    assert [t["runner"] for t in tables][3:5] == ["Reformat", "Myelin"]
    assert {t["runner"] for t in tables if t["layer"] == "head"} == {"compiler"}
    assert document["warnings"] == []


def test_a_log_as_text_with_filters(here):
    (here / "a.log").write_text(CLASSIC)
    text = run_here("tactics", "a.log", "--layer", "stem*").out
    assert "stem + stem_act  Half(3072,1024,32,1) -> Half(16384,1024,32,1)  CaskConvol" in text
    assert "from the cache" in text
    assert "head" not in text
    assert run_here("tactics", "a.log", "--format", "markdown").out.count("### ") >= 5


def test_a_log_redirected_by_powershell_is_read(here):
    (here / "a.log").write_bytes(CLASSIC.encode("utf-16"))
    assert json.loads(run_here("tactics", "a.log", "--format", "json").out)["rows"] == 12


def test_a_text_without_tactics_is_refused(here):
    (here / "a.log").write_text("[11/30/2026-11:03:15] [TRT] [V] nothing\n")
    ran = run_here("tactics", "a.log")
    assert ran.status == 2
    assert "a.log holds no tactics" in ran.err


def test_a_table_that_gives_no_row_is_a_warning(here):
    (here / "a.log").write_text(CLASSIC.replace("Time: 0.0125", "Tim: 0.0125"))
    document = json.loads(run_here("tactics", "a.log", "--format", "json").out)
    assert document["warnings"] == ["line 4: a timed tactic that cannot be read"]
