"""A `tensorrt` that never answers: each command ends within its limit, and takes nothing away."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli_runner import Ran
from trtplug.lock.policy import TIMING_CACHES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.doubles.site import Site
    from tests.end_to_end.recordings import Recordings

PROMPT_S = 60.0
"""Far above the limits below on a busy machine, far below those that ship."""

SHORT = """
import sys
from trtplug.backends import run_child
from trtplug.backends.trt import caches
from trtplug.cli.main import main
run_child._LOAD_S = caches._LIMIT_S = 2.0
sys.exit(main(sys.argv[1:]))
"""

SLEEP = "import time\ntime.sleep(3600)\n"
STOP = "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\n"


@pytest.fixture(params=[SLEEP, STOP], ids=["sleeps", "stopped"])
def site(request, recordings: Recordings, tmp_path: Path, own_store: Path) -> Site:
    """A machine that has built `m.onnx`, whose TensorRT has hung since."""
    made = recordings.copy(tmp_path, own_store)
    assert made.trtplug("cache", "export", entry(own_store).name, "a.cache").status == 0
    assert made.trtplug("cache", "export", entry(own_store).name, "b.cache").status == 0
    (made.folder / "tensorrt").unlink()
    (made.folder / "tensorrt.py").write_text(request.param)
    return made


def entry(store: Path) -> Path:
    (found,) = (store / TIMING_CACHES / "entries").iterdir()
    return found


def trtplug(site: Site, *arguments: str) -> Ran:
    done = subprocess.run(
        [sys.executable, "-P" if sys.version_info >= (3, 11) else "-B", "-c", SHORT, *arguments],
        cwd=site.work,
        env=site.environ,
        capture_output=True,
        text=True,
        timeout=PROMPT_S,
    )
    return Ran(status=done.returncode, out=done.stdout, err=done.stderr)


@pytest.mark.parametrize(
    "arguments",
    [
        ("cache", "verify", "--load"),
        ("cache", "merge", "a.cache", "b.cache", "--out", "c.cache"),
        ("build", "m.onnx", "--backend", "trt", "--target", "local", "--force"),
    ],
    ids=lambda arguments: "-".join(arguments[:2]),
)
def test_each_command_ends_and_takes_nothing_away(site: Site, own_store: Path, arguments):
    before = {f.name: f.read_bytes() for f in entry(own_store).iterdir()}
    ran = trtplug(site, *arguments)
    assert ran.status == 4, ran.err
    assert "TensorRT could not read a timing cache: no end within 2 s" in ran.err
    assert {f.name: f.read_bytes() for f in entry(own_store).iterdir()} == before
    assert not (own_store / TIMING_CACHES / "set-aside").exists()
    # The lock is free: this would wait for it.
    assert trtplug(site, "cache", "prune").status == 0


def test_a_build_without_a_cache_fails(site: Site):
    ran = trtplug(
        site, "build", "m.onnx", "--backend", "trt", "--target", "local", "--no-timing-cache",
        "--force",
    )  # fmt: skip
    assert ran.status == 3, ran.err
    assert "the builder's library did not load within 2 s" in ran.err
