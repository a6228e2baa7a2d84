"""Timing caches through the double: read, combined, edited; what does not fit is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.doubles.site import make_site
from tests.models import conv_chain, save
from trtplug.backends.trt import caches as trt_caches
from trtplug.backends.trt.caches import TrtTimingCaches

_SCRIPT = Path(__file__).with_name("caches.py")


def test_every_operation_and_every_refusal(tmp_path: Path):
    site = make_site(tmp_path)
    save(conv_chain(3), site.work / "m.onnx")
    ran = site.trtplug("build", "m.onnx", "--backend", "trt", "--target", "local")
    assert ran.status == 0, ran.err
    cache = site.work / "out/sm_90/timing.cache"
    done = subprocess.run(
        [sys.executable, str(_SCRIPT), str(cache)],
        env=site.environ,
        cwd=site.work,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "code", ["import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "print('{\"half')"]
)
def test_crash_is_a_refusal(monkeypatch: pytest.MonkeyPatch, code: str):
    run = subprocess.run

    def other(command, **options):
        return run([sys.executable, "-c", code], **options)

    monkeypatch.setattr(trt_caches.subprocess, "run", other)
    caches = TrtTimingCaches()
    assert caches.read(b"x") is None
    assert caches.combine(b"x", b"y") is None
    assert caches.update(b"x", {}) is None
