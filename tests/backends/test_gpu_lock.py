"""One build at a time on one GPU."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from trtplug.backends.gpu import Gpu
from trtplug.backends.gpu_lock import holding_gpu, lock_file
from trtplug.errors import MACHINE_LACKS, GpuBusyError
from trtplug.target import Sm

if TYPE_CHECKING:
    from collections.abc import Iterator

GPU = Gpu(name="NVIDIA H200", sm=Sm(90), uuid="00112233445566778899aabbccddeeff")


def test_second_one_is_refused_and_the_holder_is_named(tmp_path: Path):
    with holding_gpu(GPU, wait=False, folder=tmp_path):
        with (
            pytest.raises(GpuBusyError) as caught,
            holding_gpu(GPU, wait=False, folder=tmp_path),
        ):
            pytest.fail("held twice")
        assert f"process {os.getpid()}" in caught.value.message
        assert caught.value.exit_status == MACHINE_LACKS
    with holding_gpu(GPU, wait=False, folder=tmp_path):
        pass


def test_another_gpu_is_free(tmp_path: Path):
    other = Gpu(name="NVIDIA H200", sm=Sm(90), uuid="ff")
    with holding_gpu(GPU, wait=False, folder=tmp_path):
        with holding_gpu(other, wait=False, folder=tmp_path):
            pass
        with holding_gpu(Gpu(name="a/b c", sm=Sm(90)), wait=False, folder=tmp_path):
            pass
    assert all(p.parent == tmp_path for p in tmp_path.rglob("*"))


def hold(folder: Path, held: object, seconds: float) -> None:
    with holding_gpu(GPU, wait=True, folder=folder):
        held.set()  # type: ignore[attr-defined]
        time.sleep(seconds)


def test_waiting_ends_when_the_holder_is_killed(tmp_path: Path):
    context = multiprocessing.get_context("spawn")
    held = context.Event()
    holder = context.Process(target=hold, args=(tmp_path, held, 600.0))
    holder.start()
    assert held.wait(60)
    said: list[str] = []

    def on_wait(words: str) -> None:
        said.append(words)
        assert holder.pid is not None
        os.kill(holder.pid, signal.SIGKILL)

    with holding_gpu(GPU, wait=True, on_wait=on_wait, folder=tmp_path):
        assert said == [f"waiting for another build on NVIDIA H200 (process {holder.pid})"]
    holder.join()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may read; pytest's own are private."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_file_of_another_user_can_be_locked_and_need_not_be_written(open_folder: Path):
    lock_file(GPU, open_folder).write_text("process 1")
    lock_file(GPU, open_folder).chmod(0o444)
    # Root may write any file, so the child gives that up first, where it is root.
    code = (
        "import os, sys; sys.path[:0] = sys.argv[2:]\n"
        "from pathlib import Path\n"
        "from tests.backends.test_gpu_lock import GPU, holding_gpu\n"
        "os.getuid() or os.setuid(65534)\n"
        "with holding_gpu(GPU, wait=False, folder=Path(sys.argv[1])): print('held')\n"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code, str(open_folder), str(root)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "held\n", done.stderr


def test_link_is_not_followed(tmp_path: Path):
    (tmp_path / "victim").write_text("keep")
    lock_file(GPU, tmp_path).symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic"), holding_gpu(GPU, wait=False, folder=tmp_path):
        pytest.fail("followed")
    assert (tmp_path / "victim").read_text() == "keep"
