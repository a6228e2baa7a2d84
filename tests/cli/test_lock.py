from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest

from tests.cli_runner import run_here
from tests.lock.locks import RTX, TRT, layer
from tests.timing.test_identity import machine
from trtplug.backends import find
from trtplug.document import to_json

HOSTILE = "<script>`x`|\x1b[31m\n[a](b)"


@pytest.fixture
def bundle(here, double, model):
    ran = run_here("build", model, "--target", "sm_89", "--target", "sm_86", "--out", "out")
    assert ran.status == 0
    return here / "out"


@pytest.fixture
def locks(here):
    """Writes locks as files."""

    def write(name, lock):
        (here / name).write_text(to_json(lock))
        return here / name

    return write


def test_every_bundle_has_locks_that_verify(bundle):
    ran = run_here("lock", "verify", bundle)
    assert ran.status == 0
    assert ran.out.count("as locked") == 2
    document = json.loads(run_here("lock", "verify", bundle, "--format", "json").out)
    assert [x["intact"] for x in document["locks"]] == [True, True]
    # An RTX lock is bound to its builder's version, and to no machine.
    assert run_here("lock", "verify", bundle, "--here").status == 0


def test_verify_gates_on_what_changed(bundle):
    engine = next((bundle / "sm_89").glob("*.engine"))
    engine.write_bytes(engine.read_bytes() + b"x")
    ran = run_here("lock", "verify", bundle)
    assert ran.status == 1
    assert "SHA-256 does not match the lock" in ran.out
    assert ran.out.count("as locked") == 1


def test_here_gates_on_the_machine(bundle, monkeypatch):
    file = bundle / "sm_89" / "lock.json"
    file.write_text(
        json.dumps(json.loads(file.read_text()) | {"gpu": json.loads(to_json(TRT))["gpu"]})
    )
    monkeypatch.setattr(find, "read_machine", lambda: machine(driver="1"))
    assert run_here("lock", "verify", bundle).status == 0
    ran = run_here("lock", "verify", bundle, "--here")
    assert ran.status == 1
    assert "unqualified: driver: 1, not 580.95.05" in ran.out
    monkeypatch.setattr(find, "read_machine", machine)
    assert run_here("lock", "verify", bundle, "--here").status == 0


def test_show_has_inputs_layers_and_sites(locks, bundle):
    out = run_here("lock", "show", locks("t.json", TRT)).out
    for words in ("NVIDIA H200", "conv0+relu0_myl0_1", "0x1", "0xa", "conv0 relu0", "native"):
        assert words in out
    assert json.loads(run_here("lock", "show", locks("t.json", TRT), "--format", "json").out)
    assert run_here("lock", "show", bundle, "--target", "sm_86").status == 0
    ran = run_here("lock", "show", bundle)
    assert ran.status == 2
    assert "--target takes one of: sm_89, sm_86" in ran.err


def test_diff_of_equal_builds_is_clean(here, double, model, bundle):
    run_here("build", model, "--target", "sm_89", "--out", "again", "--force")
    ran = run_here("lock", "diff", bundle, "again", "--target", "sm_89")
    assert (ran.status, ran.out) == (0, "the same inputs and choices\n")


def test_diff_names_layers_and_nodes(locks):
    changed = replace(TRT, layers=(*TRT.layers[:2], replace(TRT.layers[2], kernel="new", name="z")))
    ran = run_here("lock", "diff", locks("a", TRT), locks("b", changed))
    assert ran.status == 1
    assert "conv1_myl0_2" in ran.out
    assert ran.out.endswith("inputs or choices differ\n")
    form = run_here("lock", "diff", locks("a", TRT), locks("b", changed), "--format", "json")
    document = json.loads(form.out)
    assert document["differs"] is True
    assert document["nodes"][0]["node"] == "conv1"
    markdown = run_here(
        "lock", "diff", locks("a", TRT), locks("b", changed), "--format", "markdown"
    )
    assert "### ONNX nodes" in markdown.out


@pytest.mark.parametrize("form", ["text", "markdown", "json"])
def test_hostile_names_steer_nothing(locks, form):
    odd = replace(RTX, layers=(layer(HOSTILE, [HOSTILE], HOSTILE),), sites=())
    plain = replace(RTX, layers=())
    for arguments in (("show", locks("a", odd)), ("diff", locks("a", odd), locks("b", plain))):
        out = run_here("lock", *arguments, "--format", form).out
        assert "\x1b" not in out
        if form == "markdown":
            assert "<script>" not in out


def test_nothing_in_a_lock_mentions_or_links_in_markdown(locks):
    odd = replace(RTX, target="@me #1 https://x.y [a](b)")
    out = run_here("lock", "show", locks("a", odd), "--format", "markdown").out
    shown = next(line for line in out.splitlines() if "me #1" in line)
    assert "<code>@me #1" in shown
    assert "https://" not in shown
    assert "[a](b)" not in shown


@pytest.mark.parametrize(
    "arguments",
    [
        ("verify", "absent"),
        ("verify", "."),
        ("show", "absent"),
        ("show", "."),
        ("diff", "absent", "absent"),
    ],
)
def test_wrong_use_is_one_error(here, arguments):
    ran = run_here("lock", *arguments)
    assert ran.status == 2
    assert ran.err.startswith("error[")


def test_a_damaged_lock_is_refused(bundle):
    (bundle / "sm_89" / "lock.json").write_text('{"schema": "trtplug.lock/2"}')
    ran = run_here("lock", "verify", bundle)
    assert ran.status == 2
    assert "error[document]" in ran.err
    shutil.rmtree(bundle / "sm_86")
    assert run_here("lock", "verify", bundle).status == 2
