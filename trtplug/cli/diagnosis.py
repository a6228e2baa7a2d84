"""What `trtplug doctor` looks at; every probe that fails becomes a value."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import trtplug
from trtplug.backends.child import aslr_can_be_turned_off
from trtplug.backends.find import BACKENDS
from trtplug.backends.gpu import find_gpus
from trtplug.distribution import installed_version

if TYPE_CHECKING:
    from pathlib import Path

    from trtplug.settings import Settings

SCHEMA = "trtplug.doctor/1"

_PACKAGES = (
    ("onnx", "reading models", "pip install onnx"),
    ("numpy", "reading models", "pip install numpy"),
    ("tensorrt-rtx-cu13", "backend rtx: engines without a GPU", "pip install tensorrt-rtx-cu13"),
    (
        "onnxruntime",
        "checking a rewritten model against the original",
        "pip install 'trtplug[check]'",
    ),
    (
        "tensorrt",
        "enterprise TensorRT; this version of trtplug does not use it yet",
        "pip install tensorrt, on a machine with an NVIDIA GPU",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A Python package and what it is for."""

    name: str
    version: str | None
    needed_for: str
    how_to_get: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendState:
    """What a backend can do here."""

    name: str
    version: str | None
    sms: tuple[str, ...]
    needs_gpu: bool
    how_to_get: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What this machine can do."""

    schema: str
    trtplug: str
    python: str
    platform: str
    processors: int
    packages: tuple[Package, ...]
    gpus: tuple[str, ...]
    driver: str | None
    """CUDA version of the driver."""
    gpu_problem: str
    backends: tuple[BackendState, ...]
    store: str
    store_writable: bool
    reproducible: bool
    """Whether builds can run without address-space randomisation here."""


def diagnose(settings: Settings) -> Diagnosis:
    """Looks at everything; never raises."""
    search = find_gpus()
    return Diagnosis(
        schema=SCHEMA,
        trtplug=trtplug.__version__,
        python=platform.python_version(),
        platform=f"{sys.platform} {platform.machine()}",
        processors=len(os.sched_getaffinity(0)),
        packages=tuple(
            Package(name=name, version=installed_version(name), needed_for=what, how_to_get=how)
            for name, what, how in _PACKAGES
        ),
        gpus=tuple(f"{g.name} ({g.sm})" for g in search.gpus),
        driver=search.driver,
        gpu_problem=search.problem,
        backends=tuple(
            BackendState(
                name=backend.name,
                version=backend.version(),
                sms=tuple(map(str, backend.capabilities().sms)),
                needs_gpu=backend.capabilities().needs_gpu,
                how_to_get=backend.how_to_get(),
            )
            for backend in BACKENDS
            if backend.name != "null"
        ),
        store=str(settings.store),
        store_writable=_writable(settings.store),
        reproducible=aslr_can_be_turned_off(),
    )


def diagnosis_rows(diagnosis: Diagnosis) -> list[tuple[str, str]]:
    """A diagnosis for people."""
    rows = [
        ("trtplug", diagnosis.trtplug),
        (
            "Python",
            f"{diagnosis.python} on {diagnosis.platform}, {diagnosis.processors} processors",
        ),
    ]
    for package in diagnosis.packages:
        state = package.version or f"not installed: {package.how_to_get}"
        rows.append(("package", f"{package.name} {state}  ({package.needed_for})"))
    rows += [("GPU", gpu) for gpu in diagnosis.gpus] or [("GPU", f"none: {diagnosis.gpu_problem}")]
    rows.append(("CUDA driver", diagnosis.driver or "none"))
    for backend in diagnosis.backends:
        rows.append(("backend", _backend_words(backend)))
    writable = "" if diagnosis.store_writable else "  (cannot be written: every build is made anew)"
    aslr = "can be turned off" if diagnosis.reproducible else "cannot be turned off"
    rows += [
        ("store", diagnosis.store + writable),
        ("address-space randomisation", f"{aslr} for builds, which reproducible engines need"),
    ]
    return rows


def _backend_words(backend: BackendState) -> str:
    if backend.version is None:
        return f"{backend.name}: not installed: {backend.how_to_get}"
    gpu = "on the GPU at hand" if backend.needs_gpu else "without a GPU"
    return f"{backend.name} {backend.version}: builds for {', '.join(backend.sms)} {gpu}"


def _writable(folder: Path) -> bool:
    """Whether a folder, or the nearest one above it that exists, can be written."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return os.access(folder, os.W_OK)
