"""`trtplug kernels` from the command line, on real models."""

import json

import pytest

from trtplug import errors
from trtplug.cli.main import main, main_inner
from trtplug.kernels.catalog import CATALOG

SMALL = ("--shape", "x=1x3x32x32", "--precision", "fp16", "--target", "sm_89")


def run(capsys, *arguments):
    status = main_inner(["kernels", *map(str, arguments)])
    return status, capsys.readouterr()


def test_list_names_every_tactic_in_each_format(capsys):
    for form in ("text", "markdown", "json"):
        status, said = run(capsys, "list", "--format", form)
        assert status == errors.DONE
        assert all(t.name in said.out for t in CATALOG.tactics)
    record = json.loads(said.out)["tactics"][0]
    assert {"tactic", "number", "dtypes", "sms", "layout", "shared_bytes"} <= record.keys()


def test_compile_gives_the_promised_fields(capsys, det):
    status, said = run(
        capsys, "compile", det, *SMALL, "--tactic", "depthwise_2", "--format", "json"
    )
    assert status == errors.DONE
    document = json.loads(said.out)
    assert document["schema"] == "trtplug.kernels/1"
    kernel = document["kernels"][0]
    assert {
        "tactic", "sm", "registers", "shared_bytes", "spill_bytes", "blocks_per_sm", "mma_share",
        "predicted_us", "bound_by", "status",
    } <= kernel.keys()  # fmt: skip
    assert {k["status"] for k in document["kernels"]} == {"ok"}
    assert kernel["sm"] == "sm_89"
    assert {e["reason"] for e in document["excluded"]} > {"dtype", "not_depthwise"}
    # Every kernel of the model's depthwise sites is there, by a problem that names them.
    assert all(document["problems"][k["problem"]]["sites"] for k in document["kernels"])


def test_check_passes_on_a_site_and_says_what_was_run(capsys, det):
    site = ("--site", "p2o.Conv.1", "--tactic", "depthwise_2")
    status, said = run(capsys, "check", det, *SMALL, *site, "--format", "json")
    assert status == errors.DONE
    (check,) = json.loads(said.out)["checks"]
    assert check["status"] == "passed"
    assert check["blocks"] == check["grid_blocks"]
    assert check["relative_error"] < 1e-3
    assert check["shared_ratio"] == 1.0


PAIR = ("--site", "p2o.Conv.13+p2o.Conv.14", "--tactic", "pair_32x64x64")


def test_a_pair_is_compiled_and_checked(capsys, det):
    status, said = run(capsys, "compile", det, *SMALL, *PAIR, "--format", "json")
    assert status == errors.DONE
    document = json.loads(said.out)
    (kernel,) = document["kernels"]
    (problem,) = document["problems"]
    assert (kernel["tactic"], kernel["status"], kernel["spill_bytes"]) == ("pair_32x64x64", "ok", 0)
    assert problem["attributes"]["depthwise"]["kernel_shape"] == [5, 5]
    assert problem["attributes"]["pointwise"]["activation"] == "hard_swish"
    assert kernel["predicted_us"] > 2
    status, said = run(capsys, "check", det, *SMALL, *PAIR, "--format", "json")
    assert status == errors.DONE
    (check,) = json.loads(said.out)["checks"]
    assert (check["status"], check["shared_ratio"]) == ("passed", 1.0)
    assert check["sites"][0] == "p2o.Conv.13+p2o.Conv.14"


def test_the_text_of_a_pair_names_both_convolutions(capsys, det):
    status, said = run(capsys, "compile", det, *SMALL, *PAIR)
    assert status == errors.DONE
    assert "p2o.Conv.13+p2o.Conv.14" in said.out
    assert "5x5 stride 1x1, group 192, hard_swish, then 1x1, hard_swish, " in " ".join(
        said.out.split()
    )


def test_a_source_that_is_refused_is_a_status_and_the_others_go_on(capsys, det, monkeypatch):
    from trtplug.kernels.depthwise import Depthwise
    from trtplug.kernels.source import assemble

    real = Depthwise.generate

    def broken(tactic, *given):
        good = real(tactic, *given)
        return assemble("k", "no CUDA") if tactic.name == "depthwise_1" else good

    monkeypatch.setattr(Depthwise, "generate", broken)
    site = ("--site", "p2o.Conv.1", "--tactic", "depthwise_1", "--tactic", "depthwise_2")
    status, said = run(capsys, "compile", det, *SMALL, *site, "--format", "json")
    assert status == errors.BUILD_FAILED
    found = {k["tactic"]: k for k in json.loads(said.out)["kernels"]}
    assert found["depthwise_2"]["status"] == "ok"
    assert found["depthwise_1"]["status"] == "refused"
    assert "error" in found["depthwise_1"]["log"]
    status, said = run(capsys, "check", det, *SMALL, *site)
    assert status == errors.GATE_FAILED
    assert "refused" in said.out


def test_a_site_that_no_tactic_takes_is_no_failure_and_says_so(capsys, det):
    """BF16 begins with sm_80: on sm_75 every tactic is excluded, with its reason."""
    asked = ("--shape", "x=1x3x32x32", "--precision", "bf16", "--target", "sm_75")
    status, said = run(capsys, "compile", det, *asked, "--site", "p2o.Conv.1", "--format", "json")
    assert status == errors.DONE
    document = json.loads(said.out)
    assert document["kernels"] == []
    assert len(document["excluded"]) == sum(p["tactics"] for p in document["problems"])
    assert {e["reason"] for e in document["excluded"]} == {"sm_dtype", "dtype"}
    status, said = run(capsys, "compile", det, *asked, "--site", "p2o.Conv.1")
    assert status == errors.DONE
    assert "no tactic on sm_75" in said.out


def test_an_sm_that_nobody_compiles_for_is_refused_in_words(capsys, det):
    asked = ("--shape", "x=1x3x32x32", "--target", "sm_70")
    assert main(["kernels", "compile", str(det), *asked]) == errors.BAD_INPUT
    said = capsys.readouterr().err
    assert "unknown target 'sm_70'" in said
    assert "hint" in said


def test_an_sm_that_this_nvrtc_does_not_know_is_a_status(capsys, det, monkeypatch):
    from trtplug.kernels import nvrtc

    monkeypatch.setattr(nvrtc, "supported_sms", lambda: frozenset((80,)))
    asked = (*SMALL, "--target", "sm_80", "--site", "p2o.Conv.1", "--tactic", "depthwise_2")
    status, said = run(capsys, "compile", det, *asked, "--format", "json")
    assert status == errors.BUILD_FAILED
    found = {k["sm"]: k for k in json.loads(said.out)["kernels"]}
    assert (found["sm_80"]["status"], found["sm_89"]["status"]) == ("ok", "unsupported-sm")
    assert "compiles for sm_80" in found["sm_89"]["log"]


def test_a_site_runs_with_what_it_has_in_the_model(capsys, det):
    site = ("--site", "p2o.Conv.1", "--tactic", "depthwise_2", "--activations", "model")
    status, said = run(capsys, "check", det, *SMALL, *site, "--format", "json")
    assert status == errors.DONE
    document = json.loads(said.out)
    assert document["activations"] == "model"
    (check,) = document["checks"]
    assert check["sites"] == ["p2o.Conv.1"]
    assert 0 < check["model_error"] < check["model_tolerance"]
    status, said = run(capsys, "check", det, *SMALL, *site)
    assert status == errors.DONE
    assert "1 of 1 kernels passed" in said.out
    assert "relative to ONNX Runtime" in said.out


def test_a_pair_runs_with_what_it_has_in_the_model(capsys, det):
    own = ("--activations", "model", "--format", "json")
    status, said = run(capsys, "check", det, *SMALL, *PAIR, *own)
    assert status == errors.DONE
    (check,) = json.loads(said.out)["checks"]
    assert check["sites"] == [PAIR[1]]
    assert check["status"] == "passed"
    assert 0 < check["model_error"] < check["model_tolerance"]


def test_every_table_fits_a_terminal_of_100_columns(capsys, det):
    site = ("--site", "p2o.Conv.1", "--tactic", "depthwise_2")
    both = ("--site", "p2o.Conv.2", "--tactic", "pointwise_128x128x32_s2", "--blocks", "2")
    for arguments in (
        ("list",),
        ("compile", det, *SMALL, *site, *both[:4]),
        ("check", det, *SMALL, *site, *both, "--activations", "model"),
        ("compile", det, *SMALL, *PAIR),
        ("check", det, *SMALL, *PAIR, "--activations", "model"),
    ):
        _, said = run(capsys, *arguments)
        assert max(map(len, said.out.splitlines())) <= 100


def test_a_float_model_is_told_of_the_other_precisions(capsys, light_squeezenet):
    asked = ("--target", "sm_89", "--tactic", "igemm_64x64x32_s4")
    _, said = run(capsys, "compile", light_squeezenet, *asked)
    assert "--precision fp16" in said.out
    _, said = run(
        capsys, "compile", light_squeezenet, *asked, "--precision", "fp16", "--site", "n0"
    )
    assert "--precision fp16" not in said.out


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--target", "sm_89", "--precision", "int4"), "precision"),
        (("--target", "sm_89", "--tactic", "none"), "unknown tactic"),
        (("--target", "sm_89", "--site", "none"), "no site"),
        (("--target", "sm_89", "--shared-memory", "64KiB"), "more than 48KiB"),
        (("--target", "sm_89", "--shared-memory", "47kb/s"), "is not a size"),
        (("--target", "sm_89", "--shared-kib", "47"), "use --shared-memory SIZE"),
        (("--target", "gtx1"), "unknown target"),
        ((), "no target"),
    ],
)
def test_wrong_use_is_refused_in_words(capsys, light_squeezenet, arguments, word):
    assert main(["kernels", "compile", str(light_squeezenet), *arguments]) == errors.BAD_INPUT
    assert word in capsys.readouterr().err


def test_text_and_markdown_hold_the_same_kernels(capsys, det):
    site = (*SMALL, "--site", "p2o.Conv.1", "--tactic", "depthwise_2")
    for form in ("text", "markdown"):
        status, said = run(capsys, "compile", det, *site, "--format", form)
        assert status == errors.DONE
        assert "depthwise_2" in said.out
        assert "predicted, not measured" in said.out


def test_without_nvrtc_it_says_how_to_get_it(capsys, det, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    status = main(["kernels", "compile", str(det), *SMALL, "--tactic", "depthwise_2"])
    assert status == errors.MACHINE_LACKS
    assert "trtplug[kernels]" in capsys.readouterr().err
