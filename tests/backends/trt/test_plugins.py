"""A kit's kernels in builds on the double of TensorRT, with NVIDIA's own `tensorrt.plugin`."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import onnx
import pytest

from tests.backends.trt.kits import kit_in, site_of
from tests.backends.trt.plugin_models import Build, build_on, model_with
from tests.doubles.site import Site, make_site
from tests.kernels.pair_problems import pair
from tests.kernels.problems import problem
from trtplug.errors import TrtplugError, error_from_plain
from trtplug.kernels.kit import find_marks, ptx_digest
from trtplug.timing.blob import read_blob_file

if TYPE_CHECKING:
    from pathlib import Path

    from trtplug.kernels.kit import KitSite


RELEASES = ("10.9.0.34", "10.16.1.11", "11.4.0.106")
PROBLEMS: tuple[tuple[Any, str], ...] = (
    (problem((1, 16, 9, 9), 24, activation="relu"), "igemm_32x64x64_s3"),
    (
        problem((2, 12, 7, 7), 12, group=12, least=(1, 12, 5, 7), residual="after_activation"),
        "depthwise_1",
    ),
    (problem((1, 3, 12, 12), 16), "stem_128x32x32"),
    (pair((1, 16, 8, 8), 24), "pair_64x32x64"),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Folder with a kit and a model of four sites; and the sites."""
    folder = tmp_path_factory.mktemp("plugins")
    (folder / "kit").mkdir()
    sites = [site_of(given, lead) for given, lead in PROBLEMS]
    kit_in(folder / "kit", sites)
    found = [site for site, _ in sites]
    onnx.save(model_with(found), folder / "m.onnx")
    return folder, found


def plugins_of(build: Build) -> list[dict[str, Any]]:
    """Layers without the reformats around them."""
    return [layer for layer in build.inspector["Layers"] if layer["LayerType"] != "Reformat"]


def built(machine: Site, made: Any, **request: Any) -> Build:
    folder, sites = made
    return build_on(machine, folder / "m.onnx", folder / "kit", sites, **request)


@pytest.mark.parametrize("version", RELEASES)
def test_the_engine_holds_a_plugin_for_each_site_and_runs(tmp_path: Path, made, version: str):
    machine = make_site(tmp_path, version=version, quick_plugins=True)
    build = built(machine, made)
    assert build.end["event"] == "built", build.end
    assert "The engine was loaded and run once" in build.end["trial"]
    layers, held = plugins_of(build), find_marks(build.folder / "engine")
    assert [layer["Name"] for layer in layers] == ["site0", "site1", "site2", "site3"]
    for layer, site in zip(layers, made[1], strict=True):
        assert f"site={site.digest}" in layer["Metadata"]
        # Of a site's kernels the engine holds one, that of the tactic that was chosen.
        chosen = int(layer["TacticName"].rpartition("_")[2])
        assert held[site.digest] == (chosen,)
        assert chosen in {t.number for t in site.tactics}


def test_formats_that_differ_are_copied_and_those_that_agree_are_not(tmp_path: Path):
    """Two in a row: linear comes in, linear goes out, and between them nothing is moved."""
    first = site_of(problem((1, 16, 9, 9), 24), "igemm_32x64x64_s3")
    second = site_of(problem((1, 24, 9, 9), 16), "igemm_32x64x64_s3")
    kit_in(tmp_path, [first, second])
    proto = model_with([first[0], second[0]])
    proto.graph.node[1].input[0] = "y0"
    del proto.graph.input[1], proto.graph.output[0]
    onnx.save(proto, tmp_path / "m.onnx")
    machine = make_site(tmp_path / "machine", quick_plugins=True)
    build = build_on(machine, tmp_path / "m.onnx", tmp_path, [first[0]])
    assert [layer["Name"] for layer in build.inspector["Layers"]] == [
        "Reformatting CopyNode for Input Tensor 0 to site0",
        "site0",
        "site1",
        "Reformatting CopyNode for Output Tensor 0 to site1",
    ]


def test_a_second_build_takes_its_times_from_the_cache(tmp_path: Path, made):
    machine = make_site(tmp_path, quick_plugins=True)
    first = built(machine, made)
    # Of one candidate no time is taken, and so none is kept.
    timed = [s for s in made[1] if len(s.kernels) > 1]
    assert first.log.count("Chose Runner Type: PluginV3") == len(timed) > 1
    second = built(machine, made, timing_cache=str(first.folder / "timing.cache"))
    assert second.log.count("Chose Runner Type: PluginV3") == 0
    assert second.log.count("got cached result: PluginV3") == len(timed)
    assert second.inspector == first.inspector


def error_of(build: Build) -> TrtplugError:
    return error_from_plain(build.end["error"])


def cache_keys(build: Build) -> list[str]:
    """Of the double's timing cache."""
    return [e.key for e in read_blob_file(build.folder / "timing.cache").entries]


def test_sites_share_times_only_where_all_is_the_same(tmp_path: Path):
    """Equal shapes with other attributes, or an edited kernel, are timed on their own."""
    machine = make_site(tmp_path, quick_plugins=True)
    plain = site_of(problem((1, 16, 9, 9), 24), "igemm_32x64x64_s3")
    relu = site_of(problem((1, 16, 9, 9), 24, activation="relu"), "igemm_32x64x64_s3")
    edited = edit(*plain)
    keys = []
    for n, sites in enumerate(([plain], [plain, plain], [plain, relu], [plain, edited])):
        kit = tmp_path / f"kit{n}"
        kit.mkdir()
        kit_in(kit, sites)
        model = tmp_path / f"m{n}.onnx"
        onnx.save(model_with([site for site, _ in sites]), model)
        build = build_on(machine, model, kit, [site for site, _ in sites])
        assert build.end["event"] == "built", build.log
        keys.append(cache_keys(build))
    assert [len(k) for k in keys] == [1, 1, 2, 2]
    assert all(keys[0][0] in k for k in keys)
    assert len({key for some in keys for key in some}) == 3


def edit(site: KitSite, ptx: dict[str, str]) -> tuple[KitSite, dict[str, str]]:
    """The same site with a comment more in each kernel."""
    texts = {digest: f"{text}// edited\n" for digest, text in ptx.items()}
    kernels = tuple(replace(k, ptx_sha256=ptx_digest(texts[k.ptx_sha256])) for k in site.kernels)
    return replace(site, kernels=kernels), {ptx_digest(t): t for t in texts.values()}


def test_without_the_plugin_package_a_kit_is_refused(tmp_path: Path, made):
    build = built(make_site(tmp_path), made)
    assert build.end["event"] == "refused"
    error = error_of(build)
    assert error.code == "option-unsupported"
    assert error.message == "--plugin: backend trt 11.4.0.106 does not have it"
    assert "tensorrt.plugin" in error.hint


def test_without_its_kit_the_model_is_refused(tmp_path: Path, made):
    folder, sites = made
    machine = make_site(tmp_path, quick_plugins=True)
    build = build_on(machine, folder / "m.onnx", None, sites)
    assert build.end["event"] == "refused"
    assert "CBR" in build.end["reasons"][0]


def test_a_profile_beyond_the_kernels_sizes_is_no_engine(tmp_path: Path, made):
    folder, sites = made
    machine = make_site(tmp_path, quick_plugins=True)
    wide = [replace(s, problem=replace(s.problem, x=_wider(s.problem.x))) for s in sites[1:2]]
    onnx.save(model_with(sites[1:2]), folder / "one.onnx")
    build = build_on(machine, folder / "one.onnx", folder / "kit", wide)
    assert build.end["event"] == "failed"
    reasons = " ".join(build.end["reasons"])
    assert "trtplug: kernels for inputs [1, 12, 5, 7] to [2, 12, 7, 7] met" in reasons


def _wider(x: Any) -> Any:
    return replace(x, max=(x.max[0] + 1, *x.max[1:]))


def test_kernels_for_another_gpu_are_refused(tmp_path: Path, made):
    build = built(make_site(tmp_path, quick_plugins=True), made, sm=86)
    assert build.end["event"] == "refused"
    assert "its kernels are for sm_90, and the build is for sm_86" in error_of(build).message


def test_a_damaged_or_missing_kit_is_no_engine(tmp_path: Path, made):
    folder, sites = made
    shutil.copytree(folder / "kit", tmp_path / "kit")
    for file in (tmp_path / "kit").glob("*.ptx"):
        file.write_text("// another\n")
    machine = make_site(tmp_path / "machine", quick_plugins=True)
    build = build_on(machine, folder / "m.onnx", tmp_path / "kit", sites)
    assert build.end["event"] == "refused"
    assert "its SHA-256 is not the one in its name" in error_of(build).message
    shutil.rmtree(tmp_path / "kit")
    build = build_on(machine, folder / "m.onnx", tmp_path / "kit", sites)
    assert build.end["event"] == "refused"
    assert "no such file" in error_of(build).message


_CLASH = """
import tensorrt as trt

class Other(trt.IPluginCreatorV3One):
    def __init__(self):
        super().__init__()
        self.name, self.plugin_version, self.plugin_namespace = "CBR", "1", "trtplug"

trt.get_plugin_registry().register_creator(Other(), "trtplug")
"""


def test_a_name_clash_names_both(tmp_path: Path, made):
    machine = make_site(tmp_path, quick_plugins=True)
    (machine.folder / "sitecustomize.py").write_text(_CLASH)
    build = built(machine, made)
    assert build.end["event"] == "refused"
    error = error_of(build)
    assert error.code == "plugin-name-clash"
    assert error.ours == "trtplug::CBR version 1"
    assert error.other == "a creator of class sitecustomize.Other"
