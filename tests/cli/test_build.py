"""`trtplug build` on the command line: bundles, the store, the config, each refusal."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest

import trtplug
from tests.cli_runner import Ran, run_apart, run_here
from tests.model.test_external import BYTES, with_external
from tests.models import conv_relu, save
from trtplug.backends import gpu, run_child
from trtplug.bundle.manifest import read_manifest, verify_bundle
from trtplug.settings import resource_folder

if TYPE_CHECKING:
    from pathlib import Path

    from tests.backends.double import DoubleBackend


def build(*arguments: object) -> Ran:
    return run_here("build", *arguments)


def error(ran: Ran, status: int, code: str) -> str:
    """The one error a command ends with, hint included."""
    assert ran.status == status, ran.err
    assert ran.err.count("error[") == 1, ran.err
    assert f"error[{code}]: " in ran.err
    assert "Traceback" not in ran.err
    assert ran.out == ""
    return ran.err[ran.err.index("error[") :]


def stored(ran: Ran, out: Path) -> list[bool]:
    assert ran.status == 0, ran.err
    return [t.from_store for t in read_manifest(out).targets]


# --- what it makes ---------------------------------------------------------------------------


@pytest.mark.rtx
def test_bundle_has_engine_reports_lock_log_and_manifest(here: Path, model: Path):
    ran = build(model, "--target", "rtx4090", "--target", "l4", "--target", "sm_86", "--out", "o")
    assert ran.status == 0, ran.err
    assert verify_bundle(here / "o").problems == ()
    manifest = read_manifest(here / "o")
    assert [t.sm for t in manifest.targets] == ["sm_89", "sm_86"]
    assert manifest.targets[0].gpus[:2] == ("rtx4090", "l4")
    for target in manifest.targets:
        assert {p.name for p in (here / "o" / target.sm).iterdir()} == {
            f"build.rtx-1.7-{target.sm}.engine",
            "report.json",
            "report.html",
            "lock.json",
            "build.log",
        }
        assert target.engine.file == f"{target.sm}/build.rtx-1.7-{target.sm}.engine"
        assert target.aslr_off
    assert "conv0" in ran.out
    assert "rtx-1.7:sm_89  serves rtx4090, l4" in ran.out
    assert sorted(p.name for p in here.iterdir()) == ["build.onnx", "o"]


@pytest.mark.rtx
def test_second_identical_build_is_a_store_hit_with_the_same_bytes(here: Path, model: Path):
    assert stored(build(model, "--target", "sm_89", "--out", "a"), here / "a") == [False]
    begun = build(model, "--target", "sm_89", "--out", "b")
    assert stored(begun, here / "b") == [True]
    for file in read_manifest(here / "a").every_file():
        assert (here / "a" / file.path).read_bytes() == (here / "b" / file.path).read_bytes()


@pytest.mark.parametrize("format", ["json", "markdown", "text"])
def test_results_on_stdout_and_all_else_on_stderr(here: Path, model: Path, double, format: str):
    ran = build(model, "--target", "sm_89", "--format", format)
    assert ran.status == 0
    if format == "json":
        assert json.loads(ran.out) == json.loads((here / "out/manifest.json").read_text())
    elif format == "markdown":
        assert ran.out.startswith("## `build.onnx`")
    assert "built in" in ran.err
    assert "built in" not in ran.out


# --- the store -------------------------------------------------------------------------------


@pytest.fixture
def built(here: Path, model: Path, double: DoubleBackend) -> Path:
    """A model whose engine for sm_89 is in the store."""
    assert stored(build(model, "--target", "sm_89", "--out", "first"), here / "first") == [False]
    return model


def test_hit_starts_no_builder(here: Path, built: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object):
        raise AssertionError("a builder was started")

    monkeypatch.setattr(run_child.Children, "_start", refuse)
    assert stored(build(built, "--target", "sm_89"), here / "out") == [True]
    # Another GPU of this SM asked for by name is another report: it bounds the times.
    assert build(built, "--target", "sm_89", "--target", "sm_89").status == 0


def test_hit_and_build_in_one_command(here: Path, built: Path):
    ran = build(built, "--target", "sm_86", "--target", "sm_89")
    assert stored(ran, here / "out") == [False, True]


def _other_bytes(model: Path, double: DoubleBackend, monkeypatch: pytest.MonkeyPatch):
    data = bytearray(model.read_bytes())
    data[data.index(b"tests")] ^= 1  # the producer's name: it changes nothing but the bytes
    model.write_bytes(data)


def _other_builder(model: Path, double: DoubleBackend, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(type(double), "version", lambda self: "1.7.1.117")


def _other_tool(model: Path, double: DoubleBackend, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(trtplug, "__version__", "9.9.9")


def _other_profiles(model: Path, double: DoubleBackend, monkeypatch: pytest.MonkeyPatch):
    own = model.parent / "profiles"
    own.mkdir()
    text = (resource_folder("profiles") / "l4.toml").read_text()
    (own / "mine.toml").write_text(text.replace('gpu = "NVIDIA L4"', 'gpu = "My L4"'))
    monkeypatch.setenv("TRTPLUG_PROFILES", str(own))


def _other_store(model: Path, double: DoubleBackend, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TRTPLUG_STORE", str(model.parent / "another"))


@pytest.mark.parametrize(
    "change", [_other_bytes, _other_builder, _other_tool, _other_profiles, _other_store]
)
def test_change_around_it_is_a_miss(here: Path, built: Path, double, monkeypatch, change):
    change(built, double, monkeypatch)
    assert stored(build(built, "--target", "sm_89"), here / "out") == [False]


@pytest.mark.parametrize(
    "flags",
    [
        ("--target", "sm_86"),
        ("--target", "sm_89", "--shape", "x=1x3x16x16"),
        ("--target", "sm_89", "--no-tf32"),
        ("--target", "sm_89", "--optimization-level", "0"),
        ("--target", "sm_89", "--workspace", "1GiB"),
        ("--target", "sm_89", "--weight-streaming"),
        ("--target", "sm_89", "--force"),
        ("--target", "sm_89", "--repeat", "2"),
    ],
)
def test_change_of_a_flag_is_a_miss_the_first_time(here: Path, built: Path, flags):
    assert stored(build(built, *flags), here / "out") == [False]
    if not {"--force", "--repeat"} & set(flags):
        assert stored(build(built, *flags), here / "out") == [True]


def test_flag_that_says_the_default_is_a_hit(here: Path, built: Path):
    flags = ("--tf32", "--precision", "keep", "--jobs", "1", "--timeout", "60")
    assert stored(build(built, "--target", "sm_89", *flags), here / "out") == [True]


def test_other_name_of_the_same_model_is_a_miss_since_files_are_named_after_it(here, built):
    shutil.copy(built, here / "build.v2.onnx")
    assert stored(build("build.v2.onnx", "--target", "sm_89"), here / "out") == [False]
    assert (here / "out/sm_89/build.v2.rtx-1.7-sm_89.engine").is_file()


def test_store_that_cannot_be_written_costs_time_and_no_more(
    here: Path, model, double, monkeypatch
):
    (here / "file").write_text("")
    for place in ("file", "file/below", "/proc/nothing"):
        monkeypatch.setenv("TRTPLUG_STORE", place)
        assert stored(build(model, "--target", "sm_89"), here / "out") == [False]


@pytest.mark.parametrize("name", ["engine", "target.json", "entry.json"])
def test_damaged_store_entry_is_built_again_and_mended(here, built, own_store: Path, name: str):
    for file in own_store.rglob(f"*{name}"):
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
    assert stored(build(built, "--target", "sm_89"), here / "out") == [False]
    assert stored(build(built, "--target", "sm_89"), here / "out") == [True]
    assert verify_bundle(here / "out").problems == ()


# --- repeat ----------------------------------------------------------------------------------


def test_repeat_says_how_far_the_builds_agree_and_no_more(here: Path, model: Path, double):
    ran = build(model, "--target", "sm_89", "--target", "sm_86", "--repeat", "3")
    assert ran.status == 0
    for target in read_manifest(here / "out").targets:
        assert target.agreement is not None
        assert target.agreement.builds == 3
        assert target.agreement.same_bytes
    assert "3 builds have the same bytes" in ran.err
    assert verify_bundle(here / "out").problems == ()


# --- the config, the dry run -----------------------------------------------------------------


def test_config_gives_options_and_the_command_line_wins(here: Path, model: Path, double):
    (here / "sub").mkdir()
    shutil.copy(model, here / "sub")
    (here / "sub/trtplug.toml").write_text(
        '[build]\nmodel = "build.onnx"\ntarget = ["sm_86", "sm_89"]\nout = "bundle"\n'
        'tf32 = false\nworkspace = "1GiB"\ntimeout = 60\n'
    )
    assert build("--config", "sub/trtplug.toml").status == 0
    targets = read_manifest(here / "sub/bundle").targets
    assert [t.sm for t in targets] == ["sm_86", "sm_89"]
    assert targets[0].flags["tf32"] == "off"
    assert targets[0].flags["workspace_bytes"] == str(1 << 30)
    ran = build("--config", "sub/trtplug.toml", "--target", "sm_120", "--tf32", "--out", "o")
    assert ran.status == 0
    (target,) = read_manifest(here / "o").targets
    assert (target.sm, target.flags["tf32"]) == ("sm_120", "on")
    assert target.flags["workspace_bytes"] == str(1 << 30)


@pytest.mark.parametrize("flags", [("--dry-run",), ("--backend", "null")])
def test_dry_run_prints_the_plan_and_does_nothing(here: Path, model: Path, own_store, flags):
    ran = build(model, "--target", "rtx4090", *flags)
    assert ran.status == 0
    assert "sm_89  build  (serves rtx4090" in ran.out
    assert list(own_store.iterdir()) == []
    assert [p.name for p in here.iterdir()] == ["build.onnx"]


def test_dry_run_knows_what_the_store_has_and_what_cannot_be_built(here: Path, built: Path):
    ran = build(built, "--target", "sm_89", "--target", "h100-sxm", "--dry-run")
    assert "sm_89  take from the store" in ran.out
    assert "sm_90  cannot be built by this backend" in ran.out
    raw = json.loads(build(built, "--target", "sm_89", "--dry-run", "--format", "json").out)
    assert raw["schema"] == "trtplug.plan/1"
    assert raw["targets"][0]["in_store"] is True


def test_dry_run_refuses_what_the_build_would_refuse(here: Path):
    dynamic = save(conv_relu(shape=("N", 3, "H", "W")), here / "m.onnx")
    assert "give: --shape" in error(build(dynamic, "--target", "sm_89", "--dry-run"), 2, "shape")


# --- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no model was given"),
        (("build.onnx",), "no target was given"),
        (("build.onnx", "--nope"), "--nope"),
        (("build.onnx", "extra"), "extra"),
        (("build.onnx", "--target"), "requires an argument"),
        (("build.onnx", "--target", "sm_89", "--jobs", "0"), "'--jobs'"),
        (("build.onnx", "--target", "sm_89", "--repeat", "x"), "'--repeat'"),
        (("build.onnx", "--target", "sm_89", "--timeout", "nan"), "'--timeout'"),
        (("build.onnx", "--target", "sm_89", "--timeout", "-1"), "'--timeout'"),
        (("build.onnx", "--target", "sm_89", "--optimization-level", "6"), "'--optimization"),
        (("build.onnx", "--target", "sm_89", "--format", "yaml"), "'--format'"),
        (("build.onnx", "--target", "sm_89", "--workspace", "much"), "is not a size"),
        (("build.onnx", "--target", "sm_89", "--workspace", "9" * 400), "not between"),
        (("build.onnx", "--target", "sm_89", "--memory-limit", "0"), "not between"),
        (("build.onnx", "--target", "sm_89", "--backend", "tvm"), "'tvm' is not one of"),
        (("build.onnx", "--target", "sm_89", "--precision", "fp3"), "'fp3'"),
        (("build.onnx", "--target", "sm_89", "--shape", "x=1x3x4.5x4"), "is no shape"),
        (("build.onnx", "--target", "sm_89", "--shape", "x=1x" + "9" * 5000), "larger than"),
        (("b\0.onnx", "--target", "sm_89"), "null byte"),
    ],
)
def test_wrong_use_is_one_usage_error(here: Path, model: Path, arguments, words: str):
    said = error(build(*arguments), 2, "usage")
    assert words in said
    assert "hint: " in said or "not between" in said or "larger than" in said
    assert [p.name for p in here.iterdir()] == ["build.onnx"]


def _text(path: Path):
    path.write_text("hello world, this is no model\n")


def _empty(path: Path):
    path.write_bytes(b"")


def _truncated(path: Path):
    path.write_bytes(conv_relu().SerializeToString()[:500])


def _folder(path: Path):
    path.mkdir()


def _fifo(path: Path):
    os.mkfifo(path)


def _dangling(path: Path):
    path.symlink_to("nowhere")


def _missing(path: Path):
    pass


@pytest.mark.parametrize(
    ("make", "code", "words"),
    [
        (_text, "model-invalid", "not an ONNX protobuf"),
        (_empty, "model-invalid", "the file is empty"),
        (_truncated, "model-invalid", "truncated"),
        (_folder, "file-unreadable", "it is a folder"),
        (_fifo, "file-unreadable", "not a regular file"),
        (_dangling, "file-unreadable", "no such file"),
        (_missing, "file-unreadable", "no such file"),
    ],
)
def test_what_is_no_model_is_refused_and_nothing_is_left(here: Path, make, code: str, words: str):
    make(here / "m.onnx")
    before = sorted(p.name for p in here.iterdir())
    said = error(build("m.onnx", "--target", "sm_89"), 2, code)
    assert "m.onnx" in said
    assert words in said
    assert sorted(p.name for p in here.iterdir()) == before


@pytest.mark.parametrize("problem", ["missing", "short", "outside", "absolute", "link"])
def test_external_data_that_is_not_as_it_should_be_is_refused_by_name(here: Path, problem: str):
    (here / "secret").write_bytes(bytes(BYTES))
    location = {"outside": "../secret", "absolute": str(here / "secret")}.get(problem, "w.bin")
    data = {"missing": None, "link": None, "short": b"short"}.get(problem, bytes(BYTES))
    with_external(here / "model", data, location=location)
    if problem == "link":
        (here / "model/w.bin").symlink_to(here / "secret")
    said = error(build("model/m.onnx", "--target", "sm_89"), 2, "external-data")
    assert "'w0'" in said
    assert repr(location) in said
    assert sorted(p.name for p in here.iterdir()) == ["model", "secret"]


@pytest.mark.rtx
def test_model_behind_a_link_is_built_with_the_data_beside_the_link(here: Path):
    real = with_external(here / "real")
    (here / "other").mkdir()
    (here / "other/m.onnx").symlink_to(real)
    shutil.move(here / "real/w.bin", here / "other/w.bin")
    assert build("other/m.onnx", "--target", "sm_89").status == 0


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ((), "input 'x' [N, 3, H, W] has dynamic axes and no shape was given"),
        (("y=1x3x8x8",), "there is no input 'y'"),
        (("X=1x3x8x8",), "did you mean 'x'?"),
        (("x=1x3x8",), "has 4 axes; the shape given has 3"),
        (("x=9x3x8x8:1x3x8x8:9x3x8x8",), "min 9, opt 1, max 9 do not rise"),
        (("x=1x4x8x8",), "fixed at 3"),
    ],
)
def test_shapes_that_do_not_fit_are_refused_with_flags_that_do(here: Path, shapes, words: str):
    dynamic = save(conv_relu(shape=("N", 3, "H", "W")), here / "m.onnx")
    flags = [f for s in shapes for f in ("--shape", s)]
    said = error(build(dynamic, "--target", "sm_89", *flags), 2, "shape")
    assert words in said
    assert "give: --shape x=1x3x320x320:1x3x640x640:1x3x960x960" in said
    assert [p.name for p in here.iterdir()] == ["m.onnx"]


def test_unknown_target_names_the_nearest(here: Path, model: Path):
    said = error(build(model, "--target", "rtx490"), 2, "unknown-target")
    assert "did you mean rtx4090" in said
    assert "`trtplug targets` lists every name" in said


def test_target_local_without_a_gpu_says_what_to_name_instead(here: Path, model: Path, monkeypatch):
    none = gpu.GpuSearch(gpus=(), driver=None, problem="no CUDA driver")
    monkeypatch.setattr(gpu, "find_gpus", lambda: none)
    assert "--target rtx4090" in error(build(model, "--target", "local"), 4, "gpu-missing")


@pytest.mark.parametrize("name", ["sm_90", "h100-sxm"])
def test_target_of_another_backend_says_who_could_and_the_others_succeed(here, built, name: str):
    ran = build(built, "--target", name, "--target", "sm_89", "--target", "sm_86")
    assert ran.status == 3
    assert "backend rtx cannot build for rtx-1.7:sm_90" in ran.err
    assert "build it with TensorRT (enterprise) on a machine with an sm_90 GPU" in ran.err
    manifest = read_manifest(here / "out")
    assert [t.sm for t in manifest.targets] == ["sm_89", "sm_86"]
    assert [f.code for f in manifest.failures] == ["target-unsupported"]
    assert verify_bundle(here / "out").problems == ()


# --- builds that fail ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "code", "words"),
    [
        ("refuse", "parse-failed", "node 'n' (T): no"),
        ("fail", "build-failed", "a reason"),
        ("crash", "builder-crashed", "[V] line 99"),
        ("exits", "builder-crashed", "exit status 1"),
        ("half", "builder-crashed", "exit status 0"),
        ("killed", "build-memory", "killed from outside"),
    ],
)
def test_failed_build_is_told_its_log_kept_and_what_the_store_has_goes_on(
    here: Path, model: Path, double, own_store: Path, action: str, code: str, words: str
):
    bad = model.rename(here / f"{action}.onnx")
    ran = build(bad, "--target", "sm_89", "--target", "sm_90")
    assert ran.status == 3
    assert f"error[{code}]: " in ran.err
    assert words in ran.err
    assert "Traceback" not in ran.err
    manifest = read_manifest(here / "out")
    assert [f.code for f in manifest.failures] == [code, "target-unsupported"]
    assert words in manifest.failures[0].message
    assert verify_bundle(here / "out").problems == ()
    assert list(own_store.iterdir()) == []


def test_crash_of_one_build_does_not_undo_another(here: Path, model: Path, double):
    # With the real builder a crash is the model's: there all targets crash.
    bad = model.rename(here / "crash_86.onnx")
    ran = build(bad, "--target", "sm_86", "--target", "sm_89", "--jobs", "1")
    assert ran.status == 3
    manifest = read_manifest(here / "out")
    assert [t.sm for t in manifest.targets] == ["sm_89"]
    assert [(f.code, f.log) for f in manifest.failures] == [("builder-crashed", "sm_86/build.log")]
    assert verify_bundle(here / "out").problems == ()


def test_time_and_memory_limits(here: Path, model: Path, double):
    ran = build(model.rename(here / "hang.onnx"), "--target", "sm_89", "--timeout", "0.3")
    assert ran.status == 3
    assert "passed its time limit of 0.3 s and was stopped" in ran.err
    assert "hint: raise --timeout" in ran.err
    eater = (here / "hang.onnx").rename(here / "eat.onnx")
    ran = build(eater, "--target", "sm_89", "--memory-limit", "100MiB", "--out", "o")
    assert ran.status == 3
    assert "passed its memory limit of 100 MiB" in ran.err
    assert "--jobs 1" in ran.err


def test_disk_that_the_child_finds_full_is_one_output_error_and_no_bundle(here, model, double):
    ran = build(model.rename(here / "unwritable.onnx"), "--target", "sm_89", "--target", "sm_86")
    said = error(ran, 4, "output")
    assert "cannot write out: No space left on device" in said
    assert [p.name for p in here.iterdir()] == ["unwritable.onnx"]


# --- output ----------------------------------------------------------------------------------


def test_what_is_not_ours_is_not_replaced(here: Path, model: Path, double):
    (here / "out").mkdir()
    (here / "out/thesis.txt").write_text("mine")
    error(build(model, "--target", "sm_89"), 2, "output-in-the-way")
    assert (here / "out/thesis.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("out", "status"),
    [("build.onnx/o", 4), ("build.onnx", 2), ("o" * 300, 4), ("/proc/o", 4), ("/dev/null/o", 4)],
)
def test_out_that_cannot_be_written_is_one_error(here: Path, model, double, out: str, status: int):
    ran = build(model, "--target", "sm_89", "--out", out)
    assert ran.status == status
    assert ran.err.count("error[output") == 1
    assert [p.name for p in here.iterdir()] == ["build.onnx"]


@pytest.mark.parametrize("name", ["<script> $(x).onnx", "a b'c\"d.onnx", "x\ny.onnx", "é" * 120])
def test_any_name_of_the_model_gives_safe_names_in_the_bundle(here, model, double, name: str):
    odd = model.rename(here / f"build.{name}")
    ran = build(odd, "--target", "sm_89")
    assert ran.status == 0, ran.err
    (engine,) = (here / "out/sm_89").glob("*.engine")
    assert not set(engine.name) & set("<>$() '\"\n/")
    html = (here / "out/sm_89/report.html").read_text()
    assert "<script> $(x)" not in html
    assert read_manifest(here / "out").model.file == odd.name


def test_path_that_is_no_text_is_refused_in_words(here: Path, model: Path, double):
    odd = model.rename(here / os.fsdecode(b"\xff.onnx"))
    assert "not UTF-8" in error(build(odd, "--target", "sm_89"), 2, "file-unreadable")
    ran = run_apart("build", odd, "--target", "sm_89", cwd=here)
    assert "not UTF-8" in error(ran, 2, "file-unreadable")


def test_pipes_that_close_and_disks_that_are_full_end_in_words(here: Path, model: Path):
    flags = ("build", model, "--target", "sm_89", "--dry-run")
    with open("/dev/full", "w") as full:  # noqa: PTH123
        ran = run_apart(*flags, cwd=here, stdout=full)
    assert (ran.status, "cannot write its output: No space left" in ran.err) == (4, True)
    read, write = os.pipe()
    os.close(read)
    ran = run_apart(*flags, cwd=here, stdout=write)
    assert (ran.status, ran.err) == (0, "")
    ran = run_apart("build", "nowhere.onnx", cwd=here, stderr=write)
    assert ran.status == 2
    os.close(write)
