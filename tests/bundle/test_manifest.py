"""The manifest: written and read back, and refused in words where it is damaged."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.bundle.samples import publish
from trtplug.bundle.manifest import read_manifest
from trtplug.errors import BAD_INPUT, DocumentError

if TYPE_CHECKING:
    from pathlib import Path


def test_manifest_reads_back_and_lists_each_file_once(tmp_path: Path):
    manifest = publish(tmp_path / "out")
    assert read_manifest(tmp_path / "out") == manifest
    paths = [f.path for f in manifest.every_file()]
    assert len(paths) == len(set(paths)) == 3


@pytest.mark.parametrize("seed", range(4))
def test_damaged_manifest_reads_or_is_a_document_error(tmp_path: Path, seed: int):
    publish(tmp_path / "out")
    file = tmp_path / "out/manifest.json"
    good = file.read_bytes()
    dice = random.Random(seed)
    refused = 0
    for _ in range(100):
        place = dice.randrange(len(good))
        piece = dice.choice([b"", b"{", b"]", b"\xff", b"null", b"9" * 20, b'"', b"\\"])
        file.write_bytes(good[:place] + piece + good[place + dice.randrange(3) :])
        try:
            read_manifest(tmp_path / "out")
        except DocumentError as error:
            refused += 1
            status = error.exit_status
    assert refused > 50
    assert status == BAD_INPUT
