"""`trtplug doctor`: what trtplug can do on this machine, and what to install for the rest."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

import trtplug
from trtplug.backends.cuda_layer.find import HOW_TO_GET, layer_package
from trtplug.cli.options import Format, echo, epilog, format_option
from trtplug.errors import DONE
from trtplug.settings import installed_version

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
        "backend trt: engines for the local GPU, plugins, timing caches",
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
    """What a backend can do on this machine."""

    name: str
    version: str | None
    sms: tuple[str, ...]
    needs_gpu: bool
    problem: str
    """Why it cannot build here; empty if it can."""
    how_to_get: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What trtplug can do on this machine."""

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
    cuda_layer: str | None
    """Package through which trtplug calls CUDA, and its version."""
    backends: tuple[BackendState, ...]
    store: str
    store_writable: bool
    reproducible: bool
    """Whether builds can run without address-space randomisation here."""


def diagnose(settings: Settings) -> Diagnosis:
    """Checks everything; never raises."""
    from trtplug.backends.find import BACKENDS
    from trtplug.backends.gpu import find_gpus
    from trtplug.backends.launch import aslr_can_be_turned_off

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
        cuda_layer=" ".join(layer) if (layer := layer_package()) else None,
        backends=tuple(
            BackendState(
                name=backend.name,
                version=backend.version(),
                sms=tuple(map(str, backend.capabilities().sms)),
                needs_gpu=backend.capabilities().needs_gpu,
                problem=backend.problem(),
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
    rows.append(("CUDA layer", _layer_words(diagnosis.cuda_layer)))
    for backend in diagnosis.backends:
        rows.append(("backend", _backend_words(backend)))
    writable = (
        "" if diagnosis.store_writable else "  (not writable: nothing is reused between builds)"
    )
    aslr = "can be turned off" if diagnosis.reproducible else "cannot be turned off"
    rows += [
        ("store", diagnosis.store + writable),
        ("address-space randomisation", f"{aslr} for builds, which reproducible engines need"),
    ]
    return rows


def _backend_words(backend: BackendState) -> str:
    if backend.version is None:
        return f"{backend.name}: not installed: {backend.how_to_get}"
    if backend.problem:
        words = f"cannot build here: {backend.problem}: {backend.how_to_get}"
        return f"{backend.name} {backend.version}: {words}"
    gpu = "on the local GPU" if backend.needs_gpu else "without a GPU"
    return f"{backend.name} {backend.version}: builds for {', '.join(backend.sms)} {gpu}"


def _layer_words(layer: str | None) -> str:
    if layer is None:
        return f"none: {HOW_TO_GET}"
    if layer.startswith("pycuda"):
        return layer
    return f"{layer}  (pycuda is preferred if it is installed: pip install pycuda)"


def _writable(folder: Path) -> bool:
    """Whether a folder, or the nearest one above it that exists, can be written."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return os.access(folder, os.W_OK)


@click.command(epilog=epilog("trtplug doctor", statuses=(0,)))
@format_option
def doctor(format: Format) -> int:
    """Show what works on this machine and what to install."""
    from trtplug.document import to_json
    from trtplug.report.tables import render_rows
    from trtplug.settings import read_settings

    diagnosis = diagnose(read_settings())
    rows = diagnosis_rows(diagnosis)
    echo(to_json(diagnosis) if format is Format.JSON else render_rows(rows, format))
    return DONE
