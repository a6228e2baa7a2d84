"""`trtplug build --plugin ...` on the double of TensorRT: from the choice to the lock.

What runs is our own code, in its own processes, and NVIDIA's own `tensorrt.plugin`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import onnx
import pytest

from tests.doubles.site import Site, make_site
from tests.kernels.kernels import SINGLES
from tests.models import conv_chain, conv_relu, save
from trtplug.bundle.manifest import read_manifest, verify_bundle
from trtplug.lock.lock import Lock, read_lock
from trtplug.plugin.evidence import SCHEMA

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli_runner import Ran


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A machine with TensorRT 11.4 and its quick plugins; a chain of three convolutions."""
    made = make_site(tmp_path, quick_plugins=True)
    save(conv_chain(3), made.work / "m.onnx")
    return made


def build(site: Site, *flags: object, model: str = "m.onnx") -> Ran:
    fp16 = ("--precision", "fp16", "--target", "local", "--backend", "trt")
    return site.trtplug("build", model, *fp16, *flags)


def report_of(site: Site, ran: Ran) -> dict[str, Any]:
    assert ran.status == 0, ran.err
    assert verify_bundle(site.work / "out").problems == ()
    return report_file(site)


def report_file(site: Site) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((site.work / "out/sm_90/report.json").read_text())
    return report


def lock_of(site: Site) -> Lock:
    return read_lock(site.work / "out/sm_90/lock.json")


def test_a_tensorrt_without_its_plugin_package_builds_without_plugins(tmp_path: Path):
    machine = make_site(tmp_path)
    save(conv_chain(3), machine.work / "m.onnx")
    refused = build(machine, "--plugin", "always")
    assert refused.status == 2
    assert "option-unsupported" in refused.err
    assert "plugins need the Python package tensorrt.plugin" in refused.err
    sites = report_of(machine, build(machine, "--plugin", "auto"))["sites"]
    assert "plugin" not in {s["outcome"] for s in sites}


def test_a_plugin_that_is_kept(site: Site):
    ran = build(site, "--plugin", "always", "--plugin-sites", "conv1")
    said = [line.partition("] ")[2] for line in ran.err.splitlines()]
    begun = said.index("trt-11.4:sm_90: compiling plugin kernels")
    assert said[begun + 1] == "trt-11.4:sm_90: building"
    report = report_of(site, ran)
    first, second, third = report["sites"]
    assert [s["outcome"] for s in (first, second, third)] == [
        "native_fused",
        "plugin",
        "native_fused",
    ]
    assert first["choice"]["reason"] == third["choice"]["reason"] == "not among --plugin-sites"
    choice = second["choice"]
    assert choice["choice"] == "plugin"
    assert choice["reason"].startswith("--plugin always; igemm_64x32x64_s3 is predicted fastest on")
    (layer,) = (x for x in report["layers"] if x["onnx_nodes"] == ["conv1", "relu1"])
    assert second["layers"] == [layer["name"]] == ["conv1"]
    assert layer["type"] == "PluginV3"
    assert layer["flops"] == second["flops"]
    assert not [w for w in report["warnings"] if "plugin layer" in w]
    assert report["flags"]["plugin"] == "always"
    assert report["flags"]["plugin_sites"] == "conv1"
    # What stands before and after is linear.
    assert choice["reformats_before"] == ["Reformatting CopyNode for Input Tensor 0 to conv1"]
    assert choice["reformats_after"] == ["Reformatting CopyNode for Output Tensor 0 to conv1"]
    page = (site.work / "out/sm_90/report.html").read_text()
    assert "<dd>3 <small>of 3</small></dd>" in page
    assert "convolution, bias, activation; 1 by a plugin; 0 near misses" in page
    # One tactic was offered, so it is known.
    assert choice["tactics"] == [choice["tactic"]] == ["igemm_64x32x64_s3"]
    native, plugin, _ = lock_of(site).sites or ()
    assert (native.choice, native.tactic, native.kit_sha256) == ("native", None, None)
    assert (plugin.choice, plugin.tactic) == ("plugin", "igemm_64x32x64_s3")
    assert (plugin.ptx_sha256, plugin.kit_sha256) == (
        choice["kernel_sha256"],
        choice["kit_sha256"],
    )
    assert plugin.nodes == ("conv1", "relu1")


def test_a_tactic_among_several_is_known_by_the_kernel_in_the_engine(site: Site):
    save(conv_relu(shape=(8, 64, 56, 56), out_channels=64), site.work / "m.onnx")
    (told,) = report_of(site, build(site, "--plugin", "always"))["sites"]
    choice = told["choice"]
    assert choice["tactics"] == ["igemm_128x64x32_s3", "igemm_64x64x32_s4"]
    (locked,) = lock_of(site).sites or ()
    assert locked.kit_sha256 == choice["kit_sha256"]
    assert choice["tactic"] in choice["tactics"]
    assert (locked.tactic, locked.ptx_sha256) == (choice["tactic"], choice["kernel_sha256"])
    (layer,) = (x for x in report_file(site)["layers"] if x["type"] == "PluginV3")
    (tactic,) = (t for t in SINGLES if t.name == choice["tactic"])
    assert layer["kernel"] == f"CBR_{tactic.number}"


def test_auto_without_evidence_is_native_and_says_so(site: Site):
    report = report_of(site, build(site))
    assert [s["outcome"] for s in report["sites"]] == ["native_fused"] * 3
    for told in report["sites"]:
        assert told["choice"]["reason"] == "nothing measured here"
    assert "plugin" not in report["flags"]
    assert not (site.work / "out/sm_90/kernels.log").exists()


def test_never_is_native_and_says_so(site: Site):
    report = report_of(site, build(site, "--plugin", "never"))
    assert {s["choice"]["reason"] for s in report["sites"]} == {"--plugin never"}
    assert {s["outcome"] for s in report["sites"]} == {"native_fused"}


def planned(site: Site, *flags: object) -> list[dict[str, Any]]:
    """Sites and pairs of the plan, of which nothing is built."""
    ran = build(site, *flags, "--dry-run", "--format", "json")
    assert ran.status == 0, ran.err
    assert not (site.work / "out").exists()
    (target,) = json.loads(ran.out)["targets"]
    found: list[dict[str, Any]] = target["sites"]
    return found


def measurement(planned_site: dict[str, Any], **changed: object) -> str:
    line = {
        "schema": SCHEMA,
        "problem_sha256": planned_site["problem_sha256"],
        "gpu": "NVIDIA Double 9000",
        "driver": "580.95.05",
        "backend_version": "11.4.0.106",
        "plugin_us": [10.0, 10.5],
        "reformat_us": [],
        "native_us": [20.0, 21.0],
    }
    return json.dumps({**line, **changed}) + "\n"


def test_auto_goes_by_the_evidence(site: Site):
    sites = planned(site)
    assert [s["choice"] for s in sites] == ["native"] * 3
    # All three are one problem: a measurement of one is one of each.
    assert len({s["problem_sha256"] for s in sites}) == 1
    evidence = site.work / "e.jsonl"
    evidence.write_text(measurement(sites[0]))
    assert [s["choice"] for s in planned(site, "--evidence", "e.jsonl")] == ["plugin"] * 3
    report = report_of(site, build(site, "--evidence", "e.jsonl"))
    assert [s["outcome"] for s in report["sites"]] == ["plugin"] * 3
    assert report["sites"][0]["choice"]["reason"].startswith(
        "measured on NVIDIA Double 9000 (driver 580.95.05, TensorRT 11.4.0.106): plugin 10.25 us, "
        "native 20.50 us, medians of 2 and 2 samples"
    )
    # Other evidence is another build; where the plugin loses all is native.
    evidence.write_text(measurement(sites[0], reformat_us=[30.0]))
    report = report_of(site, build(site, "--evidence", "e.jsonl"))
    assert [s["outcome"] for s in report["sites"]] == ["native_fused"] * 3


def test_evidence_that_is_none_is_one_clear_error(site: Site):
    (site.work / "e.jsonl").write_text('{"schema": "trtplug.lock/1"}\n')
    ran = build(site, "--evidence", "e.jsonl")
    assert ran.status == 2
    assert "error[document]: e.jsonl:1 is not a usable trtplug.site-measurement/1" in ran.err
    assert not (site.work / "out").exists()


def test_a_dropped_plugin_fails_always_and_warns_auto(site: Site):
    site.script(drop_plugins=["conv1"])
    ran = build(site, "--plugin", "always")
    assert ran.status == 3
    assert "error[plugin-dropped]: the engine has no plugin layer for 'conv1'" in ran.err
    assert read_manifest(site.work / "out").targets == ()
    (site.work / "e.jsonl").write_text(measurement(planned_in(site)))
    report = report_of(site, build(site, "--evidence", "e.jsonl", "--force"))
    assert any("no plugin layer for 'conv1'" in w for w in report["warnings"])
    assert [s["outcome"] for s in report["sites"]] == ["plugin", "unknown", "plugin"]
    (_, lost, _) = lock_of(site).sites or ()
    assert (lost.choice, lost.kit_sha256) == ("native", None)


def planned_in(site: Site) -> dict[str, Any]:
    ran = build(site, "--dry-run", "--format", "json")
    found: dict[str, Any] = json.loads(ran.out)["targets"][0]["sites"][0]
    return found


def test_without_a_trial_run_it_is_said_that_nothing_was_looked_at(site: Site):
    report = report_of(site, build(site, "--plugin", "always", "--no-trial-run"))
    assert any("Whether the engine holds the plugins is not known" in w for w in report["warnings"])


def test_globs_that_match_nothing(site: Site):
    for flags in (("--plugin", "always"), ()):
        ran = build(site, *flags, "--plugin-sites", "conv9")
        assert ran.status == 2, ran.err
        assert "error[usage]: --plugin-sites 'conv9' matches nothing" in ran.err
        assert "did you mean 'conv2'" in ran.err
        assert not (site.work / "out").exists()
    ran = build(site, "--plugin", "never", "--plugin-sites", "conv1")
    assert "error[usage]: --plugin never leaves no site to choose" in ran.err


def test_rtx_has_no_plugins(site: Site):
    flags = ("--backend", "rtx", "--target", "sm_89", "--dry-run")
    ran = site.trtplug("build", "m.onnx", *flags, "--plugin", "always")
    assert ran.status == 2
    assert "error[option-unsupported]: --plugin always: backend rtx" in ran.err
    assert "--backend trt" in ran.err
    ran = site.trtplug("build", "m.onnx", *flags, "--format", "json", "--plugin-pairs")
    assert json.loads(ran.out)["targets"][0]["sites"] is None


def test_a_kernel_that_does_not_compile_leaves_its_log_and_a_native_site(site: Site):
    (site.folder / "sitecustomize.py").write_text(
        "import trtplug.kernels.nvrtc as n\n"
        "def refuse(source, sm, *defines):\n"
        "    return n.Compiled(ptx=None, cubin=None, log='error: told to refuse')\n"
        "n.compile_source = refuse\n"
    )
    report = report_of(site, build(site, "--plugin", "always"))
    assert {s["choice"]["choice"] for s in report["sites"]} == {"native"}
    assert report["sites"][0]["choice"]["reason"].startswith("no kernel compiled of igemm_")
    assert [w.partition(":")[0] for w in report["warnings"] if "plugin" in w.lower()] == [
        "--plugin always",
        "Some kernels of the plugin did not compile",
    ]
    log = site.work / "out/sm_90/kernels.log"
    assert "error: told to refuse" in log.read_text()
    # It is a file of the bundle, and comes back from the store.
    (target,) = read_manifest(site.work / "out").targets
    assert "sm_90/kernels.log" in {f.path for f in target.files}
    again = build(site, "--plugin", "always")
    assert "from the store" in again.err
    assert "error: told to refuse" in log.read_text()
    # A build that fails keeps it too.
    site.script(fail="build")
    assert build(site, "--plugin", "always", "--force").status == 3
    assert {p.name for p in log.parent.iterdir()} == {"build.log", "kernels.log"}
    assert verify_bundle(site.work / "out").problems == ()
    (failure,) = read_manifest(site.work / "out").failures
    assert failure.log == "sm_90/build.log"


def test_the_plan_in_words(site: Site):
    ran = build(site, "--plugin", "always", "--plugin-sites", "conv0", "--dry-run")
    lines = [line for line in ran.out.splitlines() if line.startswith("  ")]
    assert lines[0].startswith("  plugin  conv0 igemm_64x32x64_s3  (--plugin always; igemm_")
    assert lines[1:] == [f"  native  conv{n}  (not among --plugin-sites)" for n in (1, 2)]


def test_plugins_from_the_config_and_again_from_the_store(site: Site):
    (site.work / "trtplug.toml").write_text(
        "[build]\nbackend = 'trt'\ntarget = ['local']\nmodel = 'm.onnx'\nprecision = 'fp16'\n"
        "plugin = 'always'\nplugin_sites = ['conv[01]']\nplugin_tactics = ['direct*']\n"
        "plugin_pairs = false\n"
    )
    ran = site.trtplug("build", "--config", "trtplug.toml")
    report = report_of(site, ran)
    assert [s["outcome"] for s in report["sites"]] == ["plugin", "plugin", "native_fused"]
    assert report["sites"][0]["choice"]["tactic"] == "direct_hwc8"
    again = site.trtplug("build", "--config", "trtplug.toml")
    assert "from the store" in again.err
    other = site.trtplug("build", "--config", "trtplug.toml", "--plugin-tactics", "igemm*")
    assert "built in" in other.err


def test_a_real_model_with_pairs(site: Site, det: Path):
    # The double knows the sizes of inner tensors only where the input's are in the model.
    model = onnx.load(det)
    for dim, size in zip(
        model.graph.input[0].type.tensor_type.shape.dim, (1, 3, 64, 64), strict=True
    ):
        dim.dim_value = size
    save(model, site.work / "det.onnx")
    globs = ("--plugin-sites", "p2o.Conv.1+*", "--plugin-sites", "p2o.Conv.61")
    report = report_of(site, build(site, "--plugin", "always", *globs, model="det.onnx"))
    ours = {s["conv"]: s for s in report["sites"] if s["outcome"] == "plugin"}
    assert ours.keys() == {"p2o.Conv.1", "p2o.Conv.2", "p2o.Conv.61"}
    assert ours["p2o.Conv.1"]["choice"]["pair"] == "p2o.Conv.1+p2o.Conv.2"
    assert ours["p2o.Conv.1"]["layers"] == ours["p2o.Conv.2"]["layers"]
    # Every other convolution is in the engine as it was.
    assert all(s["outcome"] != "unknown" for s in report["sites"])
    assert len(report["sites"]) == 62


def test_a_real_model_with_residuals(site: Site, light_resnet50: Path):
    listing = json.loads(site.trtplug("sites", light_resnet50, "--format", "json").out)["sites"]
    wanted = [s["conv"] for s in listing if s["residual"] != "none"][:2]
    globs = [word for conv in wanted for word in ("--plugin-sites", conv)]
    report = report_of(site, build(site, "--plugin", "always", *globs, model=str(light_resnet50)))
    ours = {s["conv"]: s for s in report["sites"] if s["outcome"] == "plugin"}
    assert sorted(ours) == sorted(wanted)
    layers = {x["name"]: x for x in report["layers"]}
    for told in ours.values():
        (name,) = told["layers"]
        # Its input and the residual are read; weights and bias are constants.
        assert len(layers[name]["inputs"]) == 2
        assert len(layers[name]["constants"]) == 2


def test_sizes_over_all_profiles(site: Site):
    save(conv_relu(shape=("n", 3, "h", "w")), site.work / "d.onnx")
    shapes = ("--shape", "x=1x3x16x16:1x3x32x32:4x3x64x64", "--profile", "x=8x3x64x64")
    report = report_of(site, build(site, *shapes, "--plugin", "always", model="d.onnx"))
    assert [s["outcome"] for s in report["sites"]] == ["plugin"]


def test_a_lock_with_plugins_is_replayed_and_other_kernels_are_refused(site: Site):
    save(conv_relu(shape=(8, 64, 56, 56), out_channels=64), site.work / "m.onnx")
    report_of(site, build(site, "--plugin", "always"))
    before = lock_of(site).sites
    # Other timings now: a build that timed anything might choose otherwise.
    site.script(drift=1)
    again = ("--plugin", "always", "--locked", "out", "--out", "again")
    ran = build(site, *again)
    assert ran.status == 0, ran.err
    assert read_lock(site.work / "again/sm_90/lock.json").sites == before
    # As if the kernels of this trtplug were others than those of the lock.
    file = site.work / "out/sm_90/lock.json"
    told = json.loads(file.read_text())
    told["sites"][0]["kit_sha256"] = "0" * 64
    file.write_text(json.dumps(told))
    ran = build(site, *again)
    assert ran.status == 3
    assert "error[lock-mismatch]" in ran.err
    assert "offer 0000000000000000" in ran.err
    # Without the plugin it is another build, which is said before anything is built.
    ran = build(site, "--locked", "out", "--out", "other")
    assert "flag plugin: none, not always" in ran.err
