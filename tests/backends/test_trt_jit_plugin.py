"""The just-in-time plugin on the real bindings: what it launches runs in the emulator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.backends.kits import emulated, kit_in, request, site_of, told_to_tensorrt
from tests.bindings.versions import VERSIONS
from tests.tactics.kernels import assert_clean
from tests.tactics.pair.problems import pair
from tests.tactics.problems import problem
from trtplug.tactics.formats import formats_of

if TYPE_CHECKING:
    from pathlib import Path

CASES: dict[str, tuple[Any, str, tuple[tuple[int, ...], ...]]] = {
    "residual": (
        problem((1, 16, 8, 8), 16, residual="before_activation", activation="relu"),
        "igemm_32x64x64_s3",
        (),
    ),
    "dynamic": (
        problem((3, 16, 12, 10), 16, strides=(2, 2), least=(1, 16, 5, 4)),
        "igemm_32x64x64_s3",
        ((1, 16, 5, 4), (3, 16, 12, 10)),
    ),
    "stem of floats": (problem((1, 3, 12, 12), 16), "stem_float_128x32x32", ()),
    "depthwise": (problem((1, 12, 9, 9), 12, group=12), "depthwise_1", ()),
    "direct of floats": (problem((1, 5, 7, 7), 6, dtype="float"), "direct_linear", ()),
    "dynamic pair": (
        pair((2, 16, 9, 8), 16, strides=(2, 2), least=(1, 16, 5, 8)),
        "pair_64x32x64",
        ((1, 16, 5, 8), (2, 16, 9, 8)),
    ),
}


@pytest.fixture(scope="module")
def sites() -> dict[str, Any]:
    return {name: site_of(given, lead) for name, (given, lead, _) in CASES.items()}


@pytest.fixture(scope="module")
def folder(sites: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("kit")
    kit_in(made, list(sites.values()))
    return made


def ask(release: str, folder: Path, sites: Any) -> list[Any]:
    requests = [request(sites[name][0], CASES[name][2]) for name in CASES]
    return told_to_tensorrt(release, folder, requests, "real_jit_plugin.py")


@pytest.fixture(scope="module")
def told(folder: Path, sites: Any) -> dict[str, Any]:
    return dict(zip(CASES, ask("11.4", folder, sites)[:-1], strict=True))


@pytest.mark.parametrize("name", CASES)
def test_launched_as_it_does_the_numbers_are_right(told, sites, name: str):
    site, _ = sites[name]
    candidates = told[name]["candidates"]
    assert sorted(c["tactic"] for c in candidates) == sorted(t.number for t in site.tactics)
    assert told[name]["identity"] == site.digest
    assert site.digest in told[name]["metadata"]
    for candidate in candidates:
        (tactic,) = (t for t in site.tactics if t.number == candidate["tactic"])
        assert candidate["formats"] == [f.layout for f in formats_of(tactic, site.problem)]
        for launch in candidate["launches"]:
            assert_clean(emulated(site, candidate, launch), (name, candidate["tactic"]))


@pytest.mark.parametrize("release", [r for r in VERSIONS if r != "11.4"])
def test_every_release_does_the_same(told, folder, sites, release: str):
    *said, last = ask(release, folder, sites)
    assert dict(zip(CASES, said, strict=True)) == told
    old = release in ("10.9", "10.13") and int(np.__version__.partition(".")[0]) >= 2
    assert last == {"readable": not old}


def test_sizes_that_no_kernel_was_made_for_are_refused(folder, sites):
    site, _ = sites["residual"]
    wide = {**request(site), "max": (2, 16, 8, 8), "at": []}
    answer, _ = told_to_tensorrt("11.4", folder, [wide], "real_jit_plugin.py")
    assert "kernels for inputs [1, 16, 8, 8]" in answer["error"]
