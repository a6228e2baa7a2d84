"""The digest without parsing equals the model's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.model.test_external import with_external
from tests.models import add, conv_relu, save
from trtplug.errors import ExternalDataError, ModelInvalidError
from trtplug.model.files import digest_model
from trtplug.model.load import load_model

if TYPE_CHECKING:
    from pathlib import Path


def test_equal_to_that_of_the_loaded_model(tmp_path: Path):
    plain = save(conv_relu(), tmp_path / "plain.onnx")
    named = save(conv_relu(conv_name="location"), tmp_path / "named.onnx")
    external = with_external(tmp_path / "external")
    for path in (plain, named, external):
        assert digest_model(path).sha256 == load_model(path).sha256
    assert len({digest_model(p).sha256 for p in (plain, named, external)}) == 3


def test_any_change_of_model_or_data_changes_it(tmp_path: Path):
    path = with_external(tmp_path)
    before = digest_model(path).sha256
    data = bytearray((tmp_path / "w.bin").read_bytes())
    data[-1] ^= 1
    (tmp_path / "w.bin").write_bytes(data)
    changed = digest_model(path).sha256
    save(add(), path)
    assert len({before, changed, digest_model(path).sha256}) == 3


def test_external_data_is_checked_here_too(tmp_path: Path):
    with pytest.raises(ExternalDataError):
        digest_model(with_external(tmp_path, None))
    (tmp_path / "text").write_text("the location of nothing")
    with pytest.raises(ModelInvalidError):
        digest_model(tmp_path / "text")
