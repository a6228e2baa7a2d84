"""Our quick plugins in the real `tensorrt.plugin`, and what they report run in the emulator."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.backends.trt.kits import emulated, kit_in, request, site_of, told_to_tensorrt
from tests.bindings.packages import installed
from tests.bindings.versions import VERSIONS, run_with_bindings
from tests.kernels.kernels import assert_clean
from tests.kernels.pair_problems import pair
from tests.kernels.problems import problem
from trtplug.kernels.kit import mark_ptx, ptx_digest

if TYPE_CHECKING:
    from pathlib import Path

    from trtplug.kernels.kit import KitSite

RELU = {"activation": "relu"}
CASES: dict[str, tuple[Any, str, tuple[tuple[int, ...], ...]]] = {
    "gemm": (problem((1, 16, 9, 9), 24, **RELU), "igemm_32x64x64_s3", ()),
    "residual": (
        problem((1, 16, 8, 8), 16, residual="before_activation", **RELU),
        "igemm_32x64x64_s3",
        (),
    ),
    "bfloat16": (problem((1, 16, 7, 7), 24, dtype="bfloat16"), "igemm_32x64x64_s3", ()),
    "dynamic": (
        problem((3, 16, 12, 10), 16, strides=(2, 2), least=(1, 16, 5, 4), **RELU),
        "igemm_32x64x64_s3",
        ((1, 16, 5, 4), (3, 16, 12, 10), (2, 16, 7, 9)),
    ),
    "stem": (problem((1, 3, 16, 16), 16, strides=(2, 2), **RELU), "stem_128x32x32", ()),
    "depthwise": (problem((1, 12, 9, 9), 12, group=12, **RELU), "depthwise_1", ()),
    "dynamic batch, depthwise": (
        problem((4, 12, 7, 7), 12, group=12, least=(1, 12, 7, 7)),
        "depthwise_2",
        ((1, 12, 7, 7), (4, 12, 7, 7)),
    ),
    "direct": (problem((1, 6, 7, 7), 9, group=3, **RELU), "direct_hwc8", ()),
    "direct of floats": (
        problem((1, 5, 7, 7), 6, dtype="float", residual="after_activation"),
        "direct_linear",
        (),
    ),
    "pair": (pair((1, 16, 8, 8), 24, residual="after_activation"), "pair_64x32x64", ()),
    "dynamic pair": (
        pair((2, 16, 9, 8), 16, strides=(2, 2), least=(1, 16, 5, 8)),
        "pair_64x32x64",
        ((1, 16, 5, 8), (2, 16, 9, 8)),
    ),
}


@pytest.fixture(scope="module")
def sites() -> dict[str, tuple[KitSite, dict[str, str]]]:
    """A site for each case, with compiled kernels."""
    return {name: site_of(given, lead) for name, (given, lead, _) in CASES.items()}


@pytest.fixture(scope="module")
def folder(sites: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kit of all of them."""
    made: Path = tmp_path_factory.mktemp("kit")
    kit_in(made, list(sites.values()))
    return made


def ask(release: str, folder: Path, sites: Any) -> dict[str, Any]:
    requests = [request(sites[name][0], CASES[name][2]) for name in CASES]
    return dict(zip(CASES, told_to_tensorrt(release, folder, requests), strict=True))


@pytest.fixture(scope="module")
def received(folder: Path, sites: Any) -> dict[str, Any]:
    """What release 11.4 receives for each case."""
    return ask("11.4", folder, sites)


@pytest.mark.parametrize("name", CASES)
def test_launched_as_reported_the_numbers_are_right(received, sites, name: str):
    site, _ = sites[name]
    candidates = received[name]["candidates"]
    assert sorted(c["tactic"] for c in candidates) == sorted(t.number for t in site.tactics)
    for candidate in candidates:
        for launch in candidate["launches"]:
            assert_clean(emulated(site, candidate, launch), (name, candidate["tactic"]))


@pytest.mark.parametrize("name", CASES)
def test_formats_and_types_are_those_of_the_tactics(received, sites, name: str):
    site, ptx = sites[name]
    short = {"float": "FLOAT", "float16": "HALF", "bfloat16": "BF16"}
    for candidate in received[name]["candidates"]:
        (tactic,) = (t for t in site.tactics if t.number == candidate["tactic"])
        wanted = tactic.formats(site.problem)
        assert candidate["formats"] == [f.layout for f in wanted]
        assert candidate["types"] == [short[f.dtype] for f in wanted]
        (digest,) = (k.ptx_sha256 for k in site.kernels if k.tactic == tactic.name)
        assert candidate["ptx"] == mark_ptx(ptx[digest], site.digest, tactic.number)


def test_sizes_that_vary_are_the_only_arguments(received):
    for name, (given, _, at) in CASES.items():
        for candidate in received[name]["candidates"]:
            for launch, sizes in zip(candidate["launches"], at or (given.x.opt,), strict=True):
                assert launch["arguments"] == list(given.arguments(sizes))


@pytest.mark.parametrize("release", [r for r in VERSIONS if r != "11.4"])
def test_every_release_receives_the_same(received, folder, sites, release: str):
    assert ask(release, folder, sites) == received


def test_the_identity_is_the_digest_where_the_stock_one_is_empty(received, sites):
    for name, (site, _) in sites.items():
        assert received[name]["stock"] == ""
        assert received[name]["identity"] == site.digest
        for candidate in received[name]["candidates"]:
            assert candidate["identity"] == site.digest, "a clone keeps it"
            assert site.digest in candidate["metadata"]


def test_sites_of_equal_shape_and_edited_kernels_have_identities_of_their_own(tmp_path: Path):
    def told_of(*made: Any) -> list[str]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        kit_in(folder, made)
        answers = told_to_tensorrt("11.4", folder, [request(site) for site, _ in made])
        return [a["identity"] for a in answers]

    plain = site_of(problem((1, 6, 7, 7), 8, group=2), "direct_hwc8")
    other = site_of(problem((1, 6, 7, 7), 8, group=2, activation="relu"), "direct_hwc8")
    first, second = told_of(plain, other)
    assert first != second
    site, ptx = plain
    edited = {d: f"{text}// edited\n" for d, text in ptx.items()}
    again = site_with(site, edited)
    (third,) = told_of(again)
    assert third not in (first, second)


def site_with(site: KitSite, texts: dict[str, str]) -> tuple[KitSite, dict[str, str]]:
    """The same site with other texts of its kernels, by the digests of the old ones."""
    kernels = tuple(replace(k, ptx_sha256=ptx_digest(texts[k.ptx_sha256])) for k in site.kernels)
    return replace(site, kernels=kernels), {ptx_digest(t): t for t in texts.values()}


@pytest.mark.parametrize(
    "change",
    [
        {"min": (1, 16, 9, 9), "opt": (1, 16, 9, 9), "max": (2, 16, 9, 9)},
        {"min": (1, 16, 8, 9), "opt": (1, 16, 9, 9), "max": (1, 16, 9, 9)},
        {"min": (1, 24, 9, 9), "opt": (1, 24, 9, 9), "max": (1, 24, 9, 9)},
    ],
)
def test_sizes_that_no_kernel_was_made_for_are_refused(folder, sites, change):
    site, _ = sites["gemm"]
    (answer,) = told_to_tensorrt("11.4", folder, [{**request(site), **change}])
    assert "kernels for inputs [1, 16, 9, 9]" in answer["error"]


def test_a_site_that_the_kit_lacks_is_refused(folder, sites):
    site, _ = sites["gemm"]
    (answer,) = told_to_tensorrt("11.4", folder, [{**request(site), "site": "00" * 32}])
    assert "no site with the key 0, 0" in answer["error"]


_FIELDS = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np, tensorrt_bindings as trt
kinds = trt.PluginFieldType
text = trt.PluginField("s", b"ab", kinds.CHAR).data.tobytes() == b"ab"
number = trt.PluginField("n", np.array([7], np.int32), kinds.INT32).data[0] == 7
print(int(np.__version__.split(".")[0]), int(text), int(number))
"""


@pytest.mark.parametrize("release", VERSIONS)
def test_why_a_site_is_a_pair_of_numbers(release: str):
    bindings = installed(VERSIONS[release])
    numpy, text, number = run_with_bindings(bindings, ["-c", _FIELDS, str(bindings)]).split()
    assert number == "1"
    misread = release in ("10.9", "10.13") and int(numpy) >= 2
    assert text == ("0" if misread else "1")
