"""`trtplug build --backend trt` on the double of TensorRT: nothing here has met a GPU.

What runs is our own code, in its own processes, over bindings that behave as documented.
"""

from __future__ import annotations

import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli_runner import Ran, children_of
from tests.doubles.shared_library import write_library
from tests.doubles.site import Site, make_site
from tests.models import conv_chain, conv_relu, save
from trtplug.bundle.manifest import ManifestTarget, read_manifest, verify_bundle

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RELEASES = ("10.9.0.34", "10.16.1.11", "11.0.0.114", "11.4.0.106")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A machine with TensorRT 11.4, and a chain of three convolutions in its folder."""
    made = make_site(tmp_path)
    save(conv_chain(3), made.work / "m.onnx")
    return made


def build(site: Site, *flags: object, backend: str = "trt", model: str = "m.onnx") -> Ran:
    return site.trtplug("build", model, "--backend", backend, "--target", "local", *flags)


def target_of(site: Site, ran: Ran, out: str = "out") -> ManifestTarget:
    assert ran.status == 0, ran.err
    (target,) = read_manifest(site.work / out).targets
    return target


def report_of(site: Site, out: str = "out") -> dict[str, Any]:
    (file,) = (site.work / out).glob("sm_*/report.json")
    report: dict[str, Any] = json.loads(file.read_text())
    return report


def refused(ran: Ran, status: int, code: str) -> str:
    assert ran.status == status, ran.err
    assert f"error[{code}]: " in ran.err
    assert "Traceback" not in ran.err
    return ran.err[ran.err.index(f"error[{code}]") :]


# --- what it makes ---------------------------------------------------------------------------


@pytest.mark.parametrize("version", RELEASES)
def test_bundle_and_report_on_each_release(tmp_path: Path, version: str):
    site = make_site(tmp_path, version=version)
    save(conv_chain(3), site.work / "m.onnx")
    target = target_of(site, build(site))
    release = ".".join(version.split(".")[:2])
    assert target.target == f"trt-{release}:sm_90"
    assert target.backend_version == version
    assert verify_bundle(site.work / "out").problems == ()
    assert {f.path.rpartition("/")[2] for f in target.files} == {
        f"m.trt-{release}-sm_90.engine",
        "report.json",
        "report.html",
        "lock.json",
        "build.log",
        "inspector.json",
        "timing.cache",
        "timing.cache.json",
    }
    report = report_of(site)
    layers = report["layers"]
    assert [layer["onnx_nodes"] for layer in layers] == [[f"conv{i}", f"relu{i}"] for i in range(3)]
    for layer in layers:
        assert layer["kernel"].startswith("sm90_xmma_fprop_conv_tilesize")
        assert layer["kernel_status"] == "chosen"
        assert layer["inputs"][0]["dtype"] == "Float"
        # Six tiles were tried; the fastest was taken, and the log says by how much.
        assert len(layer["candidates"]) == 6
        (chosen,) = (c for c in layer["candidates"] if c["chosen"])
        assert chosen["kernel"] == layer["kernel"]
        assert layer["margin"] > 0
    assert report["assumptions"][0].startswith("The engine was loaded and run once on random input")
    assert report["environment"]["gpu"].startswith("NVIDIA Double 9000, driver ")
    assert [s["outcome"] for s in report["sites"]] == ["native_fused"] * 3
    log = (site.work / "out/sm_90/build.log").read_text()
    assert log.count("Chose Runner Type: CaskConvolution") == 3


def test_precision_is_the_models_own(site: Site):
    target = target_of(site, build(site, "--precision", "fp16"))
    assert target.precision == "fp16"
    dtypes = report_of(site)["totals"]["layers_by_dtype"]
    assert set(dtypes) >= {"Half"}


def test_auto_takes_the_gpu_at_hand_and_rtx_for_the_rest(site: Site):
    def planned(*targets: str) -> str:
        flags = [word for target in targets for word in ("--target", target)]
        ran = site.trtplug("build", "m.onnx", *flags, "--dry-run", "--format", "json")
        assert ran.status == 0, ran.err
        backend: str = json.loads(ran.out)["backend"]
        return backend

    assert planned("local") == "trt"
    assert planned("sm_90") == "trt"
    assert planned("sm_89") == "rtx"


def test_what_the_gpu_at_hand_is_not_is_a_failure_that_says_so(site: Site):
    ran = site.trtplug("build", "m.onnx", "--backend", "trt", "--target", "rtx4090")
    assert "builds for sm_90" in refused(ran, 3, "target-unsupported")


# --- the store -------------------------------------------------------------------------------


def test_second_build_is_a_store_hit_and_another_gpu_of_that_sm_is_none(site: Site, tmp_path: Path):
    assert not target_of(site, build(site)).from_store
    assert target_of(site, build(site)).from_store
    other = make_site(tmp_path / "other", name="NVIDIA Double 9001")
    save(conv_chain(3), other.work / "m.onnx")
    assert not target_of(other, build(other)).from_store


# --- options ---------------------------------------------------------------------------------

EVERY_OPTION = (
    *("--avg-timing", "4", "--max-tactics", "3", "--tiling", "fast", "--l2-limit", "1MiB"),
    *("--aux-streams", "2", "--tactic-shared-memory", "48KiB", "--workspace", "1GiB", "--no-tf32"),
    *("--sparsity", "--version-compatible", "--exclude-lean-runtime", "--refit", "all"),
    *("--hardware-compatibility", "ampere_plus", "--tactic-source", "-JIT_CONVOLUTIONS"),
    *("--preview", "+ALIASED_PLUGIN_IO_10_03", "--parser-flag", "-NATIVE_INSTANCENORM"),
    *("--builder-flag", "STRICT_NANS", "--optimization-level", "4"),
)


@pytest.mark.parametrize("version", RELEASES)
def test_every_option_reaches_the_builder_and_the_report(tmp_path: Path, version: str):
    site = make_site(tmp_path, version=version)
    save(conv_chain(2), site.work / "m.onnx")
    write_library(site.work / "libplug.so", {"initLibNvInferPlugins": b"\xc3"})
    # The double refuses what its release lacks, and attributes that no release has.
    ran = build(site, *EVERY_OPTION, "--plugin-library", "libplug.so")
    flags = target_of(site, ran).flags
    assert flags["max_tactics"] == "3"
    assert flags["tactic_sources"] == "-JIT_CONVOLUTIONS"
    assert flags["plugin_libraries"].startswith("libplug.so ")
    # Three candidates a layer are what --max-tactics left.
    log = (site.work / "out/sm_90/build.log").read_text()
    assert log.count("_stage3 Tactic: 0x") == 2 * 3


def test_options_in_the_config(site: Site):
    write_library(site.work / "libplug.so", {"initLibNvInferPlugins": b"\xc3"})
    (site.work / "trtplug.toml").write_text(
        "[build]\nbackend = 'trt'\ntarget = ['local']\nmodel = 'm.onnx'\nmax_tactics = 2\n"
        "tactic_source = ['-JIT_CONVOLUTIONS']\nplugin_library = ['libplug.so']\n"
        "tactic_shared_memory = '48KiB'\nsparsity = true\nbuild_route = '-double_tile=2'\n"
    )
    flags = target_of(site, site.trtplug("build", "--config", "trtplug.toml")).flags
    assert flags["max_tactics"] == "2"
    assert flags["tactic_shared_memory_bytes"] == str(48 << 10)
    assert flags["build_route"] == "-double_tile=2"


@pytest.mark.parametrize(
    ("version", "flags", "words"),
    [
        ("11.0.0.114", ("--build-route", "-double_tile=2"), "it came with TensorRT 11.1"),
        ("10.9.0.34", ("--parser-flag", "ENABLE_PLUGIN_OVERRIDE"), "it came with TensorRT 10.15"),
        ("11.4.0.106", ("--builder-flag", "FP16"), "--precision fp16"),
        ("11.4.0.106", ("--tactic-source", "+CUBLAS"), "TensorRT 11.0 removed it"),
        ("11.4.0.106", ("--tactic-source", "CUDA"), "choose one of: edge_mask_convolutions, jit"),
    ],
)
def test_what_the_release_lacks_is_refused_before_anything_is_built(
    tmp_path: Path, version: str, flags: tuple[str, ...], words: str
):
    site = make_site(tmp_path, version=version)
    save(conv_relu(), site.work / "m.onnx")
    assert words in refused(build(site, *flags), 2, "option-unsupported")
    assert not (site.work / "out").exists()


def test_what_the_bindings_lack_is_refused_for_any_version(site: Site):
    # As if the package said 11.4 and the library beside it were older.
    site.script(release="11.0")
    err = refused(build(site, "--build-route", "-double_tile=2"), 3, "build-failed")
    assert "--build-route: the installed TensorRT has no IBuilderConfig.build_route" in err


def test_route_that_the_builder_refuses_names_those_that_there_are(site: Site):
    err = refused(build(site, "--build-route", "-nope=1"), 3, "build-failed")
    assert "--build-route '-nope=1': TensorRT rejected it" in err
    assert "-double_fusion, -double_tile" in err


def test_plugin_library_that_is_none(site: Site):
    (site.work / "libplug.so").write_text("no library")
    err = refused(build(site, "--plugin-library", "libplug.so"), 3, "parse-failed")
    assert "libplug.so: TensorRT could not load it" in err
    refused(build(site, "--plugin-library", "nowhere.so"), 2, "file-unreadable")


def test_several_profiles(site: Site):
    save(conv_relu(shape=("n", 3, "h", "w")), site.work / "d.onnx")
    shapes = ("--shape", "x=1x3x16x16:1x3x32x32:4x3x64x64", "--profile", "x=8x3x64x64")
    target = target_of(site, build(site, *shapes, model="d.onnx"))
    assert target.flags["profile_2"] == "x=8x3x64x64"
    info = json.loads((site.work / "out/sm_90/inspector.json").read_text())
    (x,) = (t for t in info["I/O Tensors"] if t["Name"] == "x")
    assert [p["OptShape"] for p in x["ProfileInfo"]] == [[1, 3, 32, 32], [8, 3, 64, 64]]
    err = refused(build(site, *shapes[:2], "--profile", "y=1x3", model="d.onnx"), 2, "shape")
    assert "there is no input 'y'" in err


def test_stripped_engine_is_loaded_and_not_run(site: Site):
    site.script(crash="execute")
    target_of(site, build(site, "--strip"))
    assert "not run: it has no weights" in report_of(site)["assumptions"][0]


# --- what goes wrong -------------------------------------------------------------------------


def test_parser_refusal_names_node_and_type(site: Site):
    proto = conv_relu(conv_name="odd one")
    proto.graph.node[0].op_type = "Frobnicate"
    save(proto, site.work / "odd.onnx")
    ran = site.trtplug("build", "odd.onnx", "--backend", "trt", "--target", "local")
    assert "Frobnicate" in ran.err
    assert ran.status in (2, 3)


def test_builder_that_fails_keeps_its_own_words(site: Site):
    site.script(fail="build")
    assert "the double was told to fail" in refused(build(site), 3, "build-failed")


@pytest.mark.parametrize("where", ["build", "parse"])
def test_builder_that_crashes_is_a_failed_target(site: Site, where: str):
    site.script(crash=where)
    assert "signal SIGSEGV" in refused(build(site), 3, "builder-crashed")


@pytest.mark.parametrize("where", ["deserialize", "execute"])
def test_engine_that_crashes_when_it_is_run_is_a_failed_build(site: Site, where: str):
    site.script(crash=where)
    err = refused(build(site), 3, "build-failed")
    assert "the finished engine crashed when it was loaded and run once (signal SIGSEGV)" in err
    assert "timing cache entries" in err
    manifest = read_manifest(site.work / "out")
    assert manifest.targets == ()
    assert {p.name for p in (site.work / "out/sm_90").iterdir()} == {"build.log"}
    site.script()
    assert not target_of(site, build(site)).from_store


@pytest.mark.parametrize(
    ("where", "words"),
    [("deserialize", "cannot load the engine that it built"), ("execute", "a run of the engine")],
)
def test_engine_that_fails_when_it_is_run_is_a_failed_build(site: Site, where: str, words: str):
    site.script(fail=where)
    assert words in refused(build(site), 3, "build-failed")


def test_without_the_trial_run_nothing_is_said_about_runs(site: Site):
    site.script(crash="execute")
    target_of(site, build(site, "--no-trial-run"))
    report = report_of(site)
    assert "not loaded or run" in report["assumptions"][0]
    assert report["layers"] == []
    assert any("no layer listing" in w for w in report["warnings"])


def test_without_a_cuda_package_it_says_how_to_get_one(tmp_path: Path):
    site = make_site(tmp_path, cuda_package=None)
    save(conv_relu(), site.work / "m.onnx")
    # In any environment of the tests.
    (site.folder / "sitecustomize.py").write_text(
        "import trtplug.settings as d\n"
        "ask, gone = d.installed_version, ('pycuda', 'cuda-core')\n"
        "d.installed_version = lambda *names: None if names[0] in gone else ask(*names)\n"
    )
    assert "pip install pycuda" in refused(build(site), 4, "backend-missing")
    assert "neither pycuda nor cuda-core" in site.trtplug("doctor").out


# --- one GPU ---------------------------------------------------------------------------------


def wait_for(seen: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not seen():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def test_two_builds_race_for_one_gpu(site: Site):
    site.script(sleep_s=600)
    first = site.start("build", "m.onnx", "--backend", "trt", "--target", "local", "--out", "a")
    lock = site.folder / "tmp"
    wait_for(lambda: any(p.read_text() for p in lock.glob("trtplug-gpu-*.lock")))
    err = refused(build(site, "--no-wait", "--out", "b"), 4, "gpu-busy")
    assert f"another build is running on NVIDIA Double 9000 (process {first.pid})" in err
    assert not (site.work / "b").exists()

    # Another one waits; it goes on once the first is gone, however it went.
    wait_for(lambda: children_of(first.pid))
    third = site.start("build", "m.onnx", "--backend", "trt", "--target", "local", "--out", "c")
    assert third.stderr is not None
    said = ""
    while "waiting for another build" not in said:
        line = third.stderr.readline()
        assert line, said
        said += line
    site.script()
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    _, rest = third.communicate(timeout=120)
    assert third.returncode == 0, rest
    assert verify_bundle(site.work / "c").problems == ()
    wait_for(lambda: not children_of(first.pid))


def test_doctor_says_what_is_here(site: Site):
    said = json.loads(site.trtplug("doctor", "--format", "json").out)
    trt = next(b for b in said["backends"] if b["name"] == "trt")
    assert (trt["version"], trt["sms"], trt["problem"]) == ("11.4.0.106", ["sm_90"], "")
    assert said["cuda_layer"] == "pycuda 2026.1"
