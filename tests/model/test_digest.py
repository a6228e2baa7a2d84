"""The digest without parsing equals the model's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.model.test_external import with_external
from tests.models import add, conv_relu, save
from trtplug.errors import ExternalDataError, ModelInvalidError
from trtplug.model.digest import model_sha256
from trtplug.model.load import load_model

if TYPE_CHECKING:
    from pathlib import Path


def test_equal_to_that_of_the_loaded_model(tmp_path: Path):
    plain = save(conv_relu(), tmp_path / "plain.onnx")
    named = save(conv_relu(conv_name="location"), tmp_path / "named.onnx")
    external = with_external(tmp_path / "external")
    for path in (plain, named, external):
        assert model_sha256(path) == load_model(path).sha256
    assert len({model_sha256(p) for p in (plain, named, external)}) == 3


def test_any_change_of_model_or_data_changes_it(tmp_path: Path):
    path = with_external(tmp_path)
    before = model_sha256(path)
    data = bytearray((tmp_path / "w.bin").read_bytes())
    data[-1] ^= 1
    (tmp_path / "w.bin").write_bytes(data)
    changed = model_sha256(path)
    save(add(), path)
    assert len({before, changed, model_sha256(path)}) == 3


def test_external_data_is_checked_here_too(tmp_path: Path):
    with pytest.raises(ExternalDataError):
        model_sha256(with_external(tmp_path, None))
    (tmp_path / "text").write_text("the location of nothing")
    with pytest.raises(ModelInvalidError):
        model_sha256(tmp_path / "text")
