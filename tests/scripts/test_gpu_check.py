"""scripts/gpu_check: without a GPU as it is, and all the way on the double of TensorRT."""

from __future__ import annotations

import getpass
import gzip
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.doubles.site import Site, make_site
from tests.gpu.evidence import Cleaner
from tests.gpu.place import REPO
from tests.gpu.questions import QUESTIONS
from tests.gpu.table import all_steps

if TYPE_CHECKING:
    from subprocess import CompletedProcess

SCRIPT = REPO / "scripts" / "gpu_check"
NAME = "double-nvidia-double-9000"
FLOWS = {s.name for s in all_steps() if s.kind == "flow"}


def gpu_check(site: Site | None, out: Path, *arguments: str) -> CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), "--out", str(out), *arguments],
        env=None if site is None else site.environ,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return make_site(tmp_path / "machine", quick_plugins=True)


def records(out: Path) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for line in (out / NAME / "gpu_check.jsonl").read_text().splitlines():
        record = json.loads(line)
        found.setdefault(record["kind"], []).append(record)
    return found


def statuses(out: Path) -> dict[str, str]:
    found = records(out)
    both = (*found.get("flow", ()), *found.get("probe", ()))
    return {record["name"]: record["status"] for record in both}


# --- what is missing -------------------------------------------------------------------------


def refused(done: CompletedProcess[str], out: Path) -> str:
    assert done.returncode == 4
    assert "Traceback" not in done.stderr + done.stdout
    assert not out.exists()
    return done.stderr


def test_without_a_gpu_it_says_what_is_missing_and_ends_with_4(tmp_path: Path):
    done = gpu_check(None, tmp_path / "out", "--limit-s", "0")
    if "no GPU" not in done.stderr and "libcuda" not in done.stderr:
        pytest.skip("there is a GPU here")
    said = refused(done, tmp_path / "out")
    assert "missing here: a GPU: no CUDA driver (libcuda.so.1) is installed" in said


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("gone", "missing here: enterprise TensorRT: pip install 'trtplug[trt]'"),
        ("crash", "missing here: a TensorRT that loads: looking for it ended with -11"),
        ("old", "missing here: TensorRT 10.9 to 11.x: here is 10.8.0.43"),
    ],
)
def test_without_a_tensorrt_that_serves_it_ends_with_4(
    site: Site, tmp_path: Path, how: str, words: str
):
    package = site.folder / "tensorrt"
    package.unlink()
    if how != "gone":
        package.mkdir()
        crash = "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n"
        old = "__version__ = '10.8.0.43'\n"
        (package / "__init__.py").write_text(crash if how == "crash" else old)
    assert words in refused(gpu_check(site, tmp_path / "out"), tmp_path / "out")


# --- all of it, on the double ----------------------------------------------------------------


@pytest.mark.long
def test_every_step_ends_and_every_question_has_a_line(site: Site, tmp_path: Path):
    out = tmp_path / "out"
    (out / NAME / "pin").mkdir(parents=True)
    (out / NAME / "pin" / "of-an-earlier-run").touch()
    (out / NAME / "kernels.jsonl").write_text("of scripts/device_check\n")
    # The packages named in docs/tensorrt-releases.md are enough.
    for name in ("pytest", "hypothesis", "jsonschema"):
        (site.folder / f"{name}.py").write_text("raise ImportError('not on a user's machine')\n")
    done = gpu_check(site, out)
    assert done.returncode == 0, done.stdout + done.stderr
    assert statuses(out) == dict.fromkeys((s.name for s in all_steps()), "passed")
    found = records(out)
    (machine,) = found["machine"]
    assert (machine["gpu"], machine["sm"], machine["tensorrt"]) == (
        "NVIDIA Double 9000",
        "sm_90",
        "11.4.0.106",
    )
    # Nobody can mistake a line of it for one of a GPU.
    lines = [record for kind in found.values() for record in kind]
    assert {record["seen_on"] for record in lines} == {"double of TensorRT, no GPU"}
    assert "no result is about a GPU" in done.stdout
    _answers(found["question"])
    _kept(out / NAME, machine["files"], (str(site.folder), str(site.work), str(tmp_path)))
    assert not (out / NAME / "pin" / "of-an-earlier-run").exists()
    assert (out / NAME / "kernels.jsonl").exists()


def _answers(told: list[dict[str, Any]]) -> None:
    assert [q["name"] for q in told] == [q.name for q in QUESTIONS]
    assert {q["answer"] for q in told} <= {"yes", "no", "not known"}
    assert all(q["why"] and "\n" not in q["why"] for q in told)
    by_name = {q["name"]: q for q in told}
    assert by_name["plugin-pin"]["answer"] == "yes"
    assert by_name["plugin-pin"]["why"] == "tactic 2 ran before, 1 after"
    assert by_name["cache-collision"]["answer"] == "yes"
    # It runs no kernel, so it has no numbers and no times.
    for question in QUESTIONS:
        if question.runs:
            assert by_name[question.name]["answer"] == "not known"


def _kept(folder: Path, files: list[str], paths: tuple[str, ...]) -> None:
    there = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    assert there == {*files, "gpu_check.jsonl", "kernels.jsonl"}
    assert {
        "build-cold/out/sm_90/build.log",
        "build-cold/out/sm_90/report.json",
        "build-cold/out/sm_90/lock.json",
        "build-cold/out/sm_90/timing.cache.json",
        "plugin-tactics/build.log",
        "pin/step.log",
    } <= {f.removesuffix(".gz") for f in there}
    assert not [f for f in there if f.endswith((".engine", ".cache", ".onnx"))]
    for file in there:
        data = (folder / file).read_bytes()
        text = (gzip.decompress(data) if file.endswith(".gz") else data).decode()
        shown = [p for p in (*paths, str(REPO), str(Path.home())) if p in text]
        assert shown == [], file


# --- what goes wrong -------------------------------------------------------------------------


def test_a_crash_is_one_failed_record_and_the_rest_goes_on(site: Site, tmp_path: Path):
    site.script(crash="execute")
    out = tmp_path / "out"
    done = gpu_check(site, out, "--only", "a*")
    assert "Traceback" not in done.stdout + done.stderr
    assert statuses(out) == {
        "aot-cubin": "crashed",
        "aot-shared-memory": "crashed",
        "aot-refit": "crashed",
        "aot-cluster": "crashed",
        "aot-arch-specific": "crashed",
        "argument-order": "crashed",
    }
    assert done.returncode == 0  # no flow was among them
    by_name = {q["name"]: q for q in records(out)["question"]}
    said = by_name["aot-shared-memory"]
    assert said["answer"] == "no"
    assert "signal SIGSEGV" in said["why"]
    assert by_name["plugin-table"]["answer"] == "not known"
    assert by_name["plugin-table"]["why"] == "plugin-tactics was not run: left out"
    (cubin,) = (r for r in records(out)["probe"] if r["name"] == "aot-cubin")
    assert cubin["facts"] == {"ptx_built": "yes"}


def test_a_flow_that_fails_is_status_1_and_what_needs_it_is_not_run(site: Site, tmp_path: Path):
    site.script(fail="build")
    out = tmp_path / "out"
    done = gpu_check(site, out, "--only", "lock-*")
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    by_name = {r["name"]: r for r in records(out)["flow"]}
    assert by_name["build-cold"]["status"] == "failed"
    assert "status 3, not 0" in by_name["build-cold"]["why"]
    assert "the double was told to fail" in by_name["build-cold"]["why"]
    for name in ("lock-replay", "lock-tampered"):
        assert by_name[name]["status"] == "not run"
        assert by_name[name]["why"] == "it needs what did not pass: build-cold"


def test_a_step_that_hangs_is_stopped_and_nothing_begins_after_the_limit(
    site: Site, tmp_path: Path
):
    site.script(sleep_s=600)
    out = tmp_path / "out"
    done = gpu_check(site, out, "--only", "aot-*", "--limit-s", "4")
    assert "Traceback" not in done.stdout + done.stderr
    found = {r["name"]: r for r in records(out)["probe"]}
    assert found["aot-cubin"]["status"] == "timed out"
    assert "what was left of all the time" in found["aot-cubin"]["why"]
    rest = {r["status"] for n, r in found.items() if n != "aot-cubin"}
    assert rest == {"not run"}
    assert found["aot-refit"]["why"] == "out of time"
    by_name = {q["name"]: q for q in records(out)["question"]}
    assert by_name["aot-cubin"]["answer"] == "not known"


def test_out_of_time_from_the_start_is_status_1(site: Site, tmp_path: Path):
    done = gpu_check(site, tmp_path / "out", "--limit-s", "-1")
    assert done.returncode == 1
    assert set(statuses(tmp_path / "out").values()) == {"not run"}
    assert len(records(tmp_path / "out")["question"]) == len(QUESTIONS)


def test_no_such_step(site: Site, tmp_path: Path):
    done = gpu_check(site, tmp_path / "out", "--only", "nothing")
    assert done.returncode == 2
    assert "there is no such step" in done.stderr


# --- what is sent back -----------------------------------------------------------------------


def test_what_says_whose_machine_it_was_is_taken_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(socket, "gethostname", lambda: "build-07")
    monkeypatch.setattr(getpass, "getuser", lambda: "ann")
    clean = Cleaner(tmp_path / "work")
    text = (
        f"{tmp_path}/work/build/out {REPO}/trtplug/x.py {sys.prefix}/lib /home/ann/models/m.onnx\n"
        f"ann@build-07 annotated GPU-01234567-89ab-cdef-0123-456789abcdef\n"
        '{"uuid": "646f75626c652d6770752d3030303031", "name": "/conv1/Conv"}'
    )
    said = clean(text)
    assert said.splitlines()[0] == "WORK/build/out REPO/trtplug/x.py PYTHON/lib PATH/m.onnx"
    assert said.splitlines()[1] == "USER@HOST annotated GPU-UUID"
    assert '"uuid": "UUID"' in said
    assert "/conv1/Conv" in said


def test_steps_are_all_in_the_order_and_flows_among_them():
    from tests.gpu.flows import FLOWS as flows
    from tests.gpu.probes import PROBES as probes

    assert set(flows) == FLOWS
    assert {s.name for s in all_steps()} == {*flows, *probes}
    assert all(s.what for s in all_steps())
    begun: set[str] = set()
    for step in all_steps():
        assert set(step.needs) <= begun, step.name
        begun.add(step.name)
    asked = {q.step for q in QUESTIONS} - {None}
    assert asked <= begun
