"""kill -9 of the parent or of a child at 50 random moments, and Ctrl-C: nothing half, no orphan."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from typing import TYPE_CHECKING

import pytest
from onnx import helper

from tests.cli_runner import children_of, run_apart, start
from tests.hostile.after import check_no_orphan, check_nothing_is_half, make_old, scratch_in
from tests.models import conv_chain, model_of, save
from trtplug.bundle.manifest import verify_bundle

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

pytestmark = pytest.mark.rtx

TARGETS = ("--target", "sm_86", "--target", "sm_89")
LONGEST_S = 1.6
"""About what one build of this model takes here; the last kills come after its end."""

LONG = 800
"""Convolutions that a build is still at when a busy machine has let this process look at it."""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return save(conv_chain(2), tmp_path / "m.onnx")


@pytest.mark.parametrize("batch", range(5))
def test_ten_random_kills(tmp_path: Path, model: Path, own_store: Path, batch: int):
    dice = random.Random(batch)
    for number in range(10):
        # --force: each build does all of the work, and publishes over the last one's bundle.
        build = start("build", "m.onnx", *TARGETS, "--force", cwd=tmp_path)
        moment = time.monotonic() + dice.uniform(0.05, LONGEST_S)
        victim_is_child = dice.random() < 0.4
        while time.monotonic() < moment and build.poll() is None:
            time.sleep(0.005)
        children = children_of(build.pid) if victim_is_child else []
        with contextlib.suppress(ProcessLookupError):
            os.kill(dice.choice(children) if children else build.pid, signal.SIGKILL)
        _, err = build.communicate(timeout=60)
        check_no_orphan(build.pid)
        check_nothing_is_half(tmp_path, own_store)
        assert "Traceback" not in err, f"batch {batch}, kill {number}: {err}"
        expected = (0, 3) if children else (0, -signal.SIGKILL)
        assert build.returncode in expected, f"batch {batch}, kill {number}: {err}"
    make_old(*scratch_in(tmp_path, own_store))
    ran = run_apart("build", "m.onnx", *TARGETS, "--force", cwd=tmp_path)
    assert ran.status == 0, ran.err
    assert verify_bundle(tmp_path / "out").problems == ()
    assert scratch_in(tmp_path, own_store) == []
    assert run_apart("build", "m.onnx", *TARGETS, cwd=tmp_path).err.count("from the store") == 2


def building(build: subprocess.Popen[str]) -> list[int]:
    """Waits until builders are at work; returns their process numbers."""
    assert build.stderr is not None
    for line in build.stderr:
        if "building" in line:
            return children_of(build.pid)
    raise AssertionError("the build ended before it began")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupt_leaves_nothing(tmp_path: Path, own_store: Path, number: signal.Signals):
    save(conv_chain(LONG), tmp_path / "m.onnx")
    build = start("build", "m.onnx", *TARGETS, cwd=tmp_path)
    assert building(build)
    build.send_signal(number)
    out, err = build.communicate(timeout=20)
    assert build.returncode == 130
    assert (out, err.splitlines()[-1]) == ("", "interrupted; nothing was left half-written")
    assert "Traceback" not in err
    check_no_orphan(build.pid)
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]
    assert list(own_store.iterdir()) == []


def test_interrupt_keeps_the_bundle_that_was_there(tmp_path: Path, model: Path, own_store: Path):
    assert run_apart("build", "m.onnx", "--target", "sm_89", cwd=tmp_path).status == 0
    before = (tmp_path / "out/manifest.json").read_bytes()
    save(conv_chain(LONG), tmp_path / "m.onnx")
    build = start("build", "m.onnx", *TARGETS, cwd=tmp_path)
    building(build)
    build.send_signal(signal.SIGINT)
    build.communicate(timeout=20)
    assert (tmp_path / "out/manifest.json").read_bytes() == before
    assert verify_bundle(tmp_path / "out").problems == ()


def test_killed_child_is_told_and_the_other_target_goes_on(tmp_path: Path, own_store: Path):
    save(conv_chain(400), tmp_path / "m.onnx")  # long enough for one of them to be met
    build = start("build", "m.onnx", *TARGETS, "--jobs", "2", cwd=tmp_path)
    os.kill(building(build)[0], signal.SIGKILL)
    _, err = build.communicate(timeout=60)
    assert build.returncode == 3
    assert err.count("error[build-memory]") == 1
    assert "was killed from outside" in err
    assert verify_bundle(tmp_path / "out").problems == ()
    assert len(list(own_store.glob("??/*"))) == 1


def test_crash_of_the_real_builder_is_told_with_its_last_lines(tmp_path: Path):
    # A node that the parser takes for a plugin of its own, and dies of.
    node = helper.make_node(
        "MyelinWeightsTransformPlugin", ["x"], ["y"], name="boom", plugin_version="1",
        plugin_namespace="",
    )  # fmt: skip
    save(model_of([node], inputs={"x": (1, 3)}, outputs={"y": (1, 3)}), tmp_path / "m.onnx")
    ran = run_apart("build", "m.onnx", *TARGETS, cwd=tmp_path)
    assert ran.status == 3
    assert ran.err.count("error[builder-crashed]") == 2
    assert "signal SIGSEGV" in ran.err
    assert "Parsing node: boom [MyelinWeightsTransformPlugin]" in ran.err
    assert verify_bundle(tmp_path / "out").problems == ()
    assert (tmp_path / "out/sm_89/build.log").is_file()


def test_limits_on_the_real_builder(tmp_path: Path):
    save(conv_chain(400), tmp_path / "m.onnx")
    for flags, code in (
        (("--timeout", "0.1"), "build-timeout"),
        (("--memory-limit", "150MiB"), "build-memory"),
    ):
        ran = run_apart("build", "m.onnx", "--target", "sm_89", *flags, cwd=tmp_path)
        assert ran.status == 3, ran.err
        assert f"error[{code}]" in ran.err
        assert verify_bundle(tmp_path / "out").problems == ()
