"""A server with trtplug loaded that forks for each command line, so that starting costs nothing.

What a command does is what it does when started anew: it gets arguments, folder, environment and
output of its own, reads the same files, and starts the same children. Only the loading of modules
is shared. Libraries are the one thing that an environment set so late does not reach: those of
drivers are loaded by their paths, and found again by their sonames.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.cli_runner import Ran
from tests.shared import compile_once

_LOADED = (
    "onnx",
    "pydantic.dataclasses",
    "rich.console",
    "trtplug.backends.trt.backend",
    "trtplug.backends.gpu",
    "trtplug.backends.gpu_lock",
    "trtplug.cli.build",
    "trtplug.cli.main",
    "trtplug.bundle.bundle",
    "trtplug.bundle.manifest",
    "trtplug.lock.lock",
    "trtplug.model.source",
    "trtplug.plugin.offer",
    "trtplug.build.run",
    "trtplug.build.finish",
    "trtplug.report.html",
    "trtplug.report.text",
    "trtplug.rewrite.find",
)  # fmt: skip
_DRIVERS = ("libcuda.so.1", "libnvidia-ml.so.1")


def run_forked(*arguments: str, cwd: Path, env: dict[str, str]) -> Ran:
    """One command line, to its end."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        files = (f"/proc/{os.getpid()}/fd/{f.fileno()}" for f in (out, err))
        request = [list(arguments), str(cwd), env, *files]
        server = _server()
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        status = int(server.stdout.readline())
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    return Ran(status=status, out=texts[0], err=texts[1])


@functools.cache
def _server() -> subprocess.Popen[str]:
    """One for each process that runs tests; it ends when its input does."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.fork_server"],
        cwd=Path(__file__).resolve().parent.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _serve() -> None:
    for name in _LOADED:
        importlib.import_module(name)
    compile_once()
    for line in sys.stdin:
        arguments, cwd, env, out, err = json.loads(line)
        child = os.fork()
        if not child:
            _become(arguments, cwd, env, out, err)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _become(arguments: list[str], cwd: str, env: dict[str, str], out: str, err: str) -> None:
    """Runs the command line in this process, and ends it."""
    # The request's files are opened before the environment and the folder are the command's.
    for file, number in ((os.devnull, 0), (out, 1), (err, 2)):
        handle = os.open(file, os.O_RDONLY if number == 0 else os.O_WRONLY)
        os.dup2(handle, number)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    places = [p for p in env.get("PYTHONPATH", "").split(os.pathsep) if p]
    sys.path[:] = [cwd, *places, *sys.path[1:]]
    importlib.invalidate_caches()
    for place in env.get("LD_LIBRARY_PATH", "").split(os.pathsep):
        for name in _DRIVERS:
            if place and (Path(place) / name).exists():
                ctypes.CDLL(str(Path(place) / name))
    sys.modules.pop("sitecustomize", None)
    if importlib.util.find_spec("sitecustomize"):
        importlib.import_module("sitecustomize")
    sys.argv[:] = ["trtplug", *arguments]
    from trtplug.cli.main import run

    try:
        run()
    finally:
        os._exit(70)


if __name__ == "__main__":
    _serve()
