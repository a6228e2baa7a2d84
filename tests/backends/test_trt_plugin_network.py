"""The network API gives the network that the parser gives."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from tests.backends.kits import kit_in, site_of
from tests.backends.plugin_models import model_with
from tests.doubles.site import make_site
from tests.tactics.pair.problems import pair
from tests.tactics.problems import problem

SCRIPT = Path(__file__).with_name("scripts") / "both_networks.py"
PROBLEMS = (
    (problem((1, 16, 9, 9), 24, activation="relu"), "igemm_32x64x64_s3"),
    (problem((1, 12, 7, 7), 12, group=12, residual="after_activation"), "depthwise_1"),
    (problem((1, 3, 12, 12), 16), "stem_float_128x32x32"),
    (pair((1, 16, 8, 8), 24), "pair_64x32x64"),
)


@pytest.mark.parametrize("version", ["10.9.0.34", "11.4.0.106"])
@pytest.mark.parametrize("form", ["ahead-of-time", "just-in-time"])
def test_parser_and_network_api_give_the_same(tmp_path: Path, version: str, form: str):
    if (version, form) == ("10.9.0.34", "just-in-time"):
        version = "10.16.1.11"  # 10.9 cannot read what such an engine holds
    machine = make_site(tmp_path, version=version, quick_plugins=form == "ahead-of-time")
    sites = [site_of(given, lead) for given, lead in PROBLEMS]
    kit_in(machine.work, sites)
    onnx.save(model_with([site for site, _ in sites]), machine.work / "m.onnx")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(machine.work), str(machine.work / "m.onnx")],
        env=machine.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said == {"form": form, "engines": True, "caches": True}
