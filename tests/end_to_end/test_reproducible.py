"""Builds of one model agree in the canonical digest, wherever and how often it is built."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.cli_runner import run_here
from tests.end_to_end.builds import bundle_of, flags, model_file, shared_folder
from trtplug.engine.manifest import read_manifest

if TYPE_CHECKING:
    from pathlib import Path

    from trtplug.engine.manifest import ManifestTarget

pytestmark = pytest.mark.rtx


def target_of(bundle: Path) -> ManifestTarget:
    (target,) = read_manifest(bundle).targets
    return target


@pytest.mark.parametrize(
    ("name", "builds"),
    [("cls", 5), ("squeezenet", 5), ("det", 2), ("zfnet512", 2), ("bvlc_alexnet", 2)],
)
def test_repeated_builds_agree(tmp_path: Path, name: str, builds: int):
    out = tmp_path / "out"
    arguments = ("--target", "sm_89", "--repeat", builds, "--out", out, *flags(name))
    ran = run_here("build", model_file(name), *arguments)
    assert ran.status == 0, ran.err
    agreement = target_of(out).agreement
    assert agreement is not None
    assert agreement.builds == builds
    assert agreement.same_canonical


def test_neither_the_place_nor_its_name_shows_in_the_engine(tmp_path, tmp_path_factory):
    """Once an --out that was 7 characters longer gave an engine in another order."""
    first = target_of(bundle_of("det", shared_folder(tmp_path_factory))).engine
    folder = tmp_path / ("f" * 100)
    folder.mkdir()
    model = shutil.copy(model_file("det"), folder)
    for out in ("o", "o" * 60):
        place = folder / out
        ran = run_here(
            "build", model, "--target", "sm_89", "--force", "--out", place, *flags("det")
        )
        assert ran.status == 0, ran.err
        assert target_of(place).engine.canonical_sha256 == first.canonical_sha256
