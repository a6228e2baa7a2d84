"""Where the real models lie that end-to-end tests run on; all of them come from packages."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

MODELS_PACKAGE = "rapidocr-onnxruntime==1.4.4"

REQUIRE_MODELS = bool(os.environ.get("TRTPLUG_TEST_REQUIRE_MODELS") or os.environ.get("CI"))
"""Where set-up has installed the models, a missing one is a failure and no reason to skip."""

PPOCR = {
    "det": "ch_PP-OCRv4_det_infer.onnx",
    "rec": "ch_PP-OCRv4_rec_infer.onnx",
    "cls": "ch_ppocr_mobile_v2.0_cls_infer.onnx",
}
"""The models of PP-OCRv4: detection, recognition, classification of the text's direction."""

LIGHT = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)
"""The models of the onnx package: real topologies whose weights are constant fills."""


def package_file(package: str, *parts: str, install: str) -> Path:
    """A file of an installed package, found without importing it."""
    spec = importlib.util.find_spec(package)
    for folder in spec.submodule_search_locations or () if spec else ():
        if (path := Path(folder, *parts)).is_file():
            return path
    missing = f"no {'/'.join(parts)} of package {package} here; to get it: {install}"
    if REQUIRE_MODELS:
        pytest.fail(missing, pytrace=False)
    pytest.skip(missing)


def ppocr_model(name: str) -> Path:
    """One of `PPOCR`."""
    install = f"pip install --no-deps --ignore-requires-python {MODELS_PACKAGE}"
    return package_file("rapidocr_onnxruntime", "models", PPOCR[name], install=install)


def light_model(name: str) -> Path:
    """One of `LIGHT`."""
    folder = ("backend", "test", "data", "light")
    return package_file("onnx", *folder, f"light_{name}.onnx", install="pip install onnx")
