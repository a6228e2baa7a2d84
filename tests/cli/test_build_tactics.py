"""What a builder with tactics and a timing cache leaves becomes report, lock and manifest."""

from __future__ import annotations

import json
import random

import pytest

from tests.backends.trt.tactic_logs import KEY, OTHER_KEY, prefixed, print_table, table
from tests.cli_runner import run_here
from tests.models import conv_relu, save
from tests.timing.cache_stand_in import StandIn, identity
from trtplug.backends.cache_api import CacheValue
from trtplug.timing.files import CacheEntry, make_sidecar
from trtplug.timing.transfer import write_cache

LAYERS = """\
Layers:
Name: Conv@0_myl0_0, LayerType: correlation, Inputs: [ { Name: x, Dimensions: [1,3,8,8], \
Datatype: Float, Format: linear }], Constants: [], Outputs: [ { Name: y, Dimensions: [1,4,8,8], \
Datatype: Float, Format: linear }], TacticName: KERNEL, StreamId: 0, Metadata: METADATA
"""


@pytest.fixture
def made(here, double):
    """A build whose child leaves tables, layers and a timing cache; returns the bundle."""
    model = save(conv_relu(), here / "tactics.onnx")
    nodes = [n["label"] for n in _nodes(model)]
    tried = table("conv", [0.010, 0.0102, 0.02], onnx_layers=tuple(nodes))
    lost = table("gone", [0.5, 0.6], key=OTHER_KEY, onnx_layers=("absent",))
    lines = [*print_table(tried), *print_table(lost)]
    (here / "tables.log").write_text(prefixed(lines, "[11/30/2026-11:03:15] [TRT] [V] "))
    metadata = "".join(f"[ONNX Layer: {n}]" for n in nodes)
    text = LAYERS.replace("METADATA", metadata).replace("KERNEL", tried.chosen.kernel)
    (here / "layers.txt").write_text(text)
    values = {
        KEY: CacheValue(tactic_hash=tried.selected, time_ms=0.01),
        OTHER_KEY: CacheValue(tactic_hash=lost.selected, time_ms=0.5),
    }
    blob = StandIn().make(values)
    sidecar = make_sidecar(identity(), blob, values, ())
    write_cache(here / "timing.cache", CacheEntry(sidecar=sidecar, blob=blob))
    ran = run_here("build", model, "--target", "sm_89", "--out", "out", "--format", "json")
    assert ran.status == 0, ran.err
    return here / "out", tried, sidecar


def _nodes(model):
    import onnx

    return [{"label": n.name or n.output[0]} for n in onnx.load(model).graph.node]


def test_the_report_has_candidates_margin_and_key(made):
    bundle, tried, _ = made
    report = json.loads((bundle / "sm_89" / "report.json").read_text())
    (layer,) = report["layers"]
    assert [c["time_us"] for c in layer["candidates"]] == pytest.approx([10.0, 10.2, 20.0])
    assert layer["margin"] == pytest.approx(0.02)
    assert layer["near_tie"] is True
    assert layer["cache_key"] == KEY
    assert layer["candidates"][0]["tactic_hash"] == tried.selected
    assert [t["op"] for t in report["unjoined_candidates"]] == ["gone"]


def test_the_lock_has_every_key_of_the_cache_and_the_layers_tactic(made):
    bundle, tried, sidecar = made
    lock = json.loads((bundle / "sm_89" / "lock.json").read_text())
    assert {t["key"]: t["tactic_hash"] for t in lock["tactics"]} == sidecar.winners
    assert lock["layers"][0]["tactic_hash"] == tried.selected
    assert lock["gpu"]["name"] == "NVIDIA H200"
    assert lock["timing_cache"] == {
        "file": "sm_89/timing.cache",
        "sha256": sidecar.sha256,
        "keys": 2,
    }


def test_the_bundle_holds_the_pair(made):
    bundle, _, _ = made
    manifest = json.loads((bundle / "manifest.json").read_text())
    names = {f["path"] for f in manifest["targets"][0]["files"]}
    assert {"sm_89/timing.cache", "sm_89/timing.cache.json"} <= names
    assert run_here("verify-bundle", bundle).status == 0
    # The cache is of another builder than the engine, which no real build leaves.
    told = run_here("lock", "verify", bundle)
    assert told.status == 1
    assert "sm_89/timing.cache: builder: 11.4.0.106, not 1.7" in told.out
    assert "margin 2.0% near tie" in run_here("tactics", bundle).out
    sidecar = run_here("inspect", bundle / "sm_89" / "timing.cache.json").out
    assert sidecar.startswith("sidecar of  timing.cache\nGPU         NVIDIA H200 (sm_90)\n")
    assert "0 hits" not in run_here("inspect", bundle / "sm_89" / "report.json").out


def test_the_store_gives_the_pair_back(made, here):
    bundle, _, _ = made
    run_here("build", "tactics.onnx", "--target", "sm_89", "--out", "again")
    for name in ("timing.cache", "timing.cache.json", "lock.json"):
        again = (here / "again" / "sm_89" / name).read_bytes()
        assert again == (bundle / "sm_89" / name).read_bytes()
    assert run_here("lock", "diff", bundle, "again").status == 0


def test_a_cache_that_does_not_fit_its_sidecar_fails_the_target(made, here):
    (here / "timing.cache").write_bytes(b"junk")
    ran = run_here("build", "tactics.onnx", "--target", "sm_89", "--out", "bad", "--force")
    assert ran.status == 3
    assert "error[cache-unusable]" in ran.err


@pytest.mark.parametrize("name", ["lock.json", "report.json", "timing.cache", "timing.cache.json"])
def test_random_damage_is_an_answer_or_one_error_and_never_a_fault(made, name):
    bundle, _, _ = made
    file = bundle / "sm_89" / name
    whole = file.read_bytes()
    rng = random.Random(name)
    for _ in range(4):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            position = rng.randrange(len(data))
            data[position : position + rng.randint(0, 2)] = rng.randbytes(rng.randint(0, 2))
        file.write_bytes(data)
        for arguments in (
            ("lock", "verify", bundle),
            ("lock", "show", bundle / "sm_89" / "lock.json"),
            ("tactics", bundle),
            ("cache", "import", bundle / "sm_89" / "timing.cache", "--any-machine"),
        ):
            ran = run_here(*arguments)
            assert ran.status in (0, 1, 2), (arguments, ran)
            assert ran.status != 2 or ran.err.startswith("error[")
