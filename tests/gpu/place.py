"""What this machine has for the GPU flows, asked in a child process: an import may crash.

`python -m tests.gpu.place` prints it as JSON; `look` asks for it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent.parent
OLDEST, BEYOND = (10, 9), (12, 0)
_LIMIT_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A machine, or what it lacks."""

    missing: tuple[str, ...]
    """In words, with how to get each; empty where all is here."""
    gpu: str = ""
    sm: int = 0
    driver: str | None = None
    cuda: str | None = None
    tensorrt: str = ""
    cuda_package: str = ""
    nvrtc: str = ""
    python: str = ""
    double: bool = False
    """Whether this TensorRT is the double of the tests: nothing it says is about a GPU."""

    @property
    def folder(self) -> str:
        """Name of the folder of its records."""
        slug = re.sub(r"[^a-z0-9]+", "-", self.gpu.lower()).strip("-")
        return f"double-{slug}" if self.double else slug

    @property
    def release(self) -> tuple[int, ...]:
        """Major and minor of TensorRT."""
        return tuple(int(n) for n in re.findall(r"\d+", self.tensorrt)[:2])


def environ() -> dict[str, str]:
    """That of every child: modules of this checkout come first."""
    paths = [str(REPO), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def look() -> Place:
    """The machine at hand; never raises."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.gpu.place"],
            cwd=REPO,
            capture_output=True,
            text=True,
            check=False,
            env=environ(),
            timeout=_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return Place(missing=(f"an answer: looking for TensorRT took over {_LIMIT_S} s",))
    try:
        found = json.loads(done.stdout.splitlines()[-1])
        return Place(**{**found, "missing": tuple(found["missing"])})
    except (IndexError, ValueError, KeyError, TypeError):
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        words = f"a TensorRT that loads: looking for it ended with {done.returncode} ({last})"
        return Place(missing=(words,))


def _here() -> Place:
    from trtplug.backends.cuda_layer.find import HOW_TO_GET, layer_package
    from trtplug.backends.gpu import driver_version, find_gpus

    search = find_gpus()
    missing = [f"a GPU: {search.problem}"] if search.problem else []
    version, double, problem = _tensorrt()
    missing += [problem] if problem else []
    package = layer_package()
    missing += [] if package else [f"pycuda or cuda-core: {HOW_TO_GET}"]
    nvrtc, problem = _nvrtc()
    missing += [problem] if problem else []
    missing += _reference()
    gpu = search.gpus[0] if search.gpus else None
    return Place(
        missing=tuple(missing),
        gpu=gpu.name if gpu else "",
        sm=gpu.sm.number if gpu else 0,
        driver=driver_version(),
        cuda=search.driver,
        tensorrt=version,
        cuda_package=" ".join(package or ()),
        nvrtc=nvrtc,
        python=".".join(map(str, sys.version_info[:3])),
        double=double,
    )


def _tensorrt() -> tuple[str, bool, str]:
    """Version, whether it is the double, and what is wrong with it."""
    try:
        import tensorrt
    except Exception as error:  # noqa: BLE001 - a foreign package: its errors are reported
        words = f"{type(error).__name__}: {error}"
        return "", False, f"enterprise TensorRT: pip install 'trtplug[trt]' ({words})"
    version: str = tensorrt.__version__
    file = Path(tensorrt.__file__).resolve()
    double = (REPO / "tests" / "doubles") in file.parents
    release = tuple(int(n) for n in re.findall(r"\d+", version)[:2])
    wrong = "" if OLDEST <= release < BEYOND else f"TensorRT 10.9 to 11.x: here is {version}"
    return version, double, wrong


def _nvrtc() -> tuple[str, str]:
    from trtplug.errors import TrtplugError
    from trtplug.kernels import nvrtc

    try:
        return nvrtc.version(), ""
    except TrtplugError as error:
        return "", f"NVRTC: pip install 'trtplug[kernels]' ({error.message})"


def _reference() -> list[str]:
    from importlib.util import find_spec

    there = find_spec("onnxruntime") is not None
    return [] if there else ["ONNX Runtime: pip install 'trtplug[check]'"]


if __name__ == "__main__":
    print(json.dumps(asdict(_here())))  # noqa: T201
