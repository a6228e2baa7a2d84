"""The whole offer: files where they belong, progress events, and nothing made where nothing is."""

from __future__ import annotations

import pytest

from tests.models import conv_chain, save
from tests.plugin.samples import offer_of, sites_of, source_of
from trtplug.errors import UsageError
from trtplug.kernels.kit import read_kit
from trtplug.plugin.offer import COMPILING


@pytest.fixture
def source(tmp_path):
    return source_of(save(conv_chain(2), tmp_path / "m.onnx"))


def test_kit_and_model_name_the_same_sites(source, tmp_path):
    events = []
    offer = offer_of(source, tmp_path, events)
    kit = read_kit(offer.kit)
    assert kit.sm == 90
    assert {p.ready.site.digest for p in offer.placed} == set(kit.sites)
    assert offer.unit_of.keys() == {"conv0", "conv1"}
    assert [p.node for p in offer.placed] == ["conv0", "conv1"]
    assert [e["event"] for e in events] == ["phase", "step", "step", "end"]
    assert {e["name"] for e in events} == {COMPILING}
    # A tenth of the bar, all in all.
    assert events[2]["step"] / events[0]["steps"] == 0.1


def test_without_any_choice_nothing_is_made(source, tmp_path):
    events = []
    offer = offer_of(source, tmp_path, events, mode="auto")
    assert (offer.placed, offer.model, offer.kit, events) == ((), None, None, [])
    assert {s.reason for s in offer.sites} == {"nothing measured here"}
    assert not (tmp_path / "offer").exists()


def test_choices_alone_write_nothing(source, tmp_path):
    before = set(tmp_path.iterdir())
    assert [s.choice for s in sites_of(source)] == ["plugin", "plugin"]
    assert set(tmp_path.iterdir()) == before
    with pytest.raises(UsageError, match="matches nothing"):
        sites_of(source, sites=("nope",))
