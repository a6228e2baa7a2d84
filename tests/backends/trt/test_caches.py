"""Timing caches through the double: read, combined, edited; what does not fit is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli_runner import children_of
from tests.doubles.site import make_site
from tests.models import conv_chain, save
from trtplug.backends import launch
from trtplug.backends.cache_api import CacheValue
from trtplug.backends.trt import caches as trt_caches
from trtplug.backends.trt.caches import TrtTimingCaches
from trtplug.errors import BackendMissingError

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


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch):
    """Has the child run other code."""

    def use(code: str) -> None:
        monkeypatch.setattr(launch, "python_command", lambda _: (sys.executable, "-c", code))

    return use


def each_operation_refuses() -> bool:
    caches = TrtTimingCaches()
    answers = (caches.read(b"x"), caches.combine(b"x", b"y"), caches.update(b"x", {}))
    return answers == (None, None, None)


LOADED = "import os, signal, sys, time; print('true', flush=True);"


def test_each_cache_is_read_once_a_refused_one_too(monkeypatch: pytest.MonkeyPatch):
    asked: list[bytes] = []

    def answer(operation: str, blobs: tuple[bytes, ...]) -> object:
        asked.extend(blobs)
        return None if blobs == (b"junk",) else {"0x1": ["0x2", 0.5]}

    monkeypatch.setattr(trt_caches, "_ask", answer)
    caches = TrtTimingCaches()
    for _ in range(3):
        assert caches.read(b"one") == {"0x1": CacheValue(tactic_hash="0x2", time_ms=0.5)}
        assert caches.read(b"junk") is None
    assert asked == [b"one", b"junk"]


@pytest.mark.parametrize("code", ["os.kill(os.getpid(), signal.SIGSEGV)", "print('{\"half')"])
def test_crash_is_a_refusal(runs, code: str):
    runs(LOADED + code)
    assert each_operation_refuses()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import no_such_module", "could not be loaded: exit status 1"),
        ("import os; os.kill(os.getpid(), 11)", "could not be loaded: signal SIGSEGV"),
        ("import time; time.sleep(600)", "could not read a timing cache: no end within 0.5 s"),
        (LOADED + "time.sleep(600)", "no end within 0.5 s"),
        (LOADED + "os.kill(os.getpid(), signal.SIGSTOP)", "no end within 0.5 s"),
    ],
)
def test_a_builder_that_does_not_answer_says_nothing_of_the_cache(
    runs, monkeypatch, code: str, words: str
):
    runs(code)
    if "no end" in words:
        monkeypatch.setattr(trt_caches, "_LIMIT_S", 0.5)
    with pytest.raises(BackendMissingError, match=words) as caught:
        TrtTimingCaches().read(b"x")
    assert caught.value.exit_status == 4
    assert children_of(os.getpid()) == []
