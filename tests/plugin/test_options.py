"""What is asked of the plugin, as flags of a build."""

from pathlib import Path

import pytest

from trtplug.plugin.options import PLUGIN_MODES, PluginOptions


def test_defaults_are_no_flags():
    assert PluginOptions().as_flags(None) == {}


def test_what_was_asked_for_is_in_the_flags():
    given = PluginOptions(
        mode="always", sites=("a*", "b"), tactics=("igemm*",), pairs=False, evidence=Path("e")
    )
    assert given.as_flags("ab" * 32) == {
        "plugin": "always",
        "plugin_sites": "a*, b",
        "plugin_tactics": "igemm*",
        "plugin_pairs": "off",
        "evidence": "ab" * 8,
    }


@pytest.mark.parametrize("evidence", [None, Path("e")])
def test_only_always_and_evidence_can_choose_a_plugin(evidence):
    can = {mode: PluginOptions(mode=mode, evidence=evidence).may_choose for mode in PLUGIN_MODES}
    assert can == {"auto": evidence is not None, "always": True, "never": False}
