"""The double keeps TensorRT's documented rules; each rule is an assertion in its script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from onnx import helper

from tests.doubles.site import make_site
from tests.models import conv_chain, model_of, save

HERE = Path(__file__).parent


def run(site, script: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(HERE / "scripts" / script), *arguments],
        env=site.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.mark.parametrize("version", ["10.9.0.34", "11.4.0.106"])
def test_timing_caches(tmp_path: Path, version: str):
    run(make_site(tmp_path, version=version), "cache_rules.py")


@pytest.mark.parametrize("version", ["10.9.0.34", "11.4.0.106"])
def test_builds_with_a_cache(tmp_path: Path, version: str):
    site = make_site(tmp_path, version=version)
    model = save(conv_chain(3), site.work / "m.onnx")
    log = run(site, "build_rules.py", str(model))
    # Of the builds that ended, only the cold ones timed all layers.
    assert log.count("got cached result: CaskConvolution") >= 6
    assert "Chose Runner Type: CaskConvolution" in log
    site.script(leak=["*"])
    run(site, "build_rules.py", str(model), "leaks")


@pytest.mark.parametrize("version", ["10.9.0.34", "11.4.0.106"])
def test_plugins_are_called_in_the_documented_order(tmp_path: Path, version: str):
    site = make_site(tmp_path, version=version)
    node = helper.make_node(
        "CBR",
        ["x"],
        ["y"],
        name="cbr0",
        domain="trtplug",
        plugin_namespace="trtplug",
        plugin_version="1",
        scale=2.0,
    )
    proto = model_of([node], inputs={"x": (1, 4, 8, 8)}, outputs={"y": (1, 8, 8, 8)})
    proto.opset_import.append(helper.make_opsetid("trtplug", 1))
    run(site, "plugin_rules.py", str(save(proto, site.work / "p.onnx")))


@pytest.mark.parametrize("version", ["10.9.0.34", "10.16.1.11", "11.4.0.106"])
def test_quick_plugins_are_called_in_the_order_that_the_double_says(tmp_path: Path, version: str):
    site = make_site(tmp_path, version=version, quick_plugins=True)
    node = helper.make_node(
        "Twice",
        ["x"],
        ["y"],
        name="twice0",
        domain="demo",
        plugin_namespace="demo",
        plugin_version="1",
        aot=1,
    )
    proto = model_of([node], inputs={"x": (1, 4, 8, 8)}, outputs={"y": (1, 8, 8, 8)})
    proto.opset_import.append(helper.make_opsetid("demo", 1))
    run(site, "quick_rules.py", str(save(proto, site.work / "p.onnx")))
