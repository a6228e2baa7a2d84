"""One real build a model, made once for all tests and all workers of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import filelock

from tests.cli_runner import run_here
from tests.real_models import LIGHT, PPOCR, light_model, ppocr_model

if TYPE_CHECKING:
    from pathlib import Path

SHAPES = {
    "det": "x=1x3x320x320:1x3x640x640:1x3x960x960",
    "rec": "x=1x3x48x160:1x3x48x320:1x3x48x640",
    "cls": "x=1x3x48x192",
}
MODELS = (*PPOCR, *LIGHT)


def model_file(name: str) -> Path:
    """The ONNX file of a model of `MODELS`."""
    return ppocr_model(name) if name in PPOCR else light_model(name)


def flags(name: str) -> tuple[str, ...]:
    """The flags it needs, but for the targets."""
    return ("--shape", SHAPES[name]) if name in SHAPES else ()


def bundle_of(name: str, shared: Path) -> Path:
    """Its bundle for sm_89, built by whoever comes first."""
    out = shared / name
    with filelock.FileLock(shared / f"{name}.lock"):
        if not out.exists():
            model = model_file(name)
            ran = run_here("build", model, "--target", "sm_89", "--out", out, *flags(name))
            assert ran.status == 0, ran.err
    return out
