"""Builds of one model agree in the canonical digest, wherever and how often it is built."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.cli_runner import run_here
from tests.end_to_end.builds import flags, model_file
from trtplug.bundle.manifest import read_manifest

if TYPE_CHECKING:
    from pathlib import Path

    from trtplug.bundle.manifest import ManifestTarget

pytestmark = pytest.mark.rtx


TRIES = 3
"""Other work on the same processor can preempt a build between two of its threads, and then its
allocations come in another order. So a round may be disturbed; each of three hardly is."""


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
    agreed = []
    while not any(agreed) and len(agreed) < TRIES:
        ran = run_here("build", model_file(name), *arguments)
        assert ran.status == 0, ran.err
        agreement = target_of(out).agreement
        assert agreement is not None
        assert agreement.builds == builds
        agreed.append(agreement.same_canonical)
    assert any(agreed)


def test_neither_the_place_nor_its_name_shows_in_the_engine(tmp_path: Path):
    """Once an --out that was 7 characters longer gave an engine in another order."""
    folder = tmp_path / ("f" * 100)
    folder.mkdir()
    copy = shutil.copy(model_file("det"), folder)

    def digests(model: object, out: Path) -> set[str]:
        found = set()
        for _ in range(TRIES):
            ran = run_here(
                "build", model, "--target", "sm_89", "--force", "--out", out, *flags("det")
            )
            assert ran.status == 0, ran.err
            found.add(target_of(out).engine.canonical_sha256)
        return found

    here = digests(model_file("det"), tmp_path / "o")
    assert here & digests(copy, folder / ("o" * 60))
