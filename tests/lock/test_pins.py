from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.trt.tactic_logs import KEY, OTHER_KEY, candidate, table
from trtplug.errors import TacticUnavailableError, UsageError
from trtplug.lock.policy import (
    Pin,
    TacticOverrides,
    ban_problems,
    edit_problems,
    edit_values,
    parse_pin,
    pin_problems,
    plan_edits,
)

CONV = table("conv", [0.010, 0.011, 0.020], onnx_layers=("/features/Conv", "/features/Relu"))
GEMM = table("gemm", [0.5, 0.6], key=OTHER_KEY)
TABLES = (CONV, GEMM)


def plan(*, pins=(), bans=(), prefers=(), tables=TABLES, names=None):
    overrides = TacticOverrides(
        pins=tuple(map(parse_pin, pins)), bans=tuple(bans), prefers=tuple(prefers)
    )
    return plan_edits(tables, overrides, names or {})


def test_no_wish_no_edit():
    assert plan() == ()


@pytest.mark.parametrize("layer", ["conv", "/features/Conv", "/features/Relu", "conv_myl0_3"])
@pytest.mark.parametrize(
    "tactic",
    [
        CONV.candidates[1].tactic_hash,
        CONV.candidates[1].tactic_hash.upper().replace("0X", "0x000"),
        CONV.candidates[1].kernel,
        "*_conv_1",
    ],
)
def test_a_layer_is_pinned_by_any_of_its_names(layer, tactic):
    (edit,) = plan(pins=[f"{layer}={tactic}"], names={KEY: ("conv_myl0_3",)})
    assert edit.key == KEY
    assert edit.tactic_hash == CONV.candidates[1].tactic_hash
    assert edit.replaces == CONV.selected
    assert (edit.reason, edit.cost_ms) == ("pin", 0.011)


def test_a_pin_of_what_was_taken_anyway_edits_nothing():
    assert plan(pins=[f"conv={CONV.selected}"]) == ()


def test_a_glob_takes_the_fastest_of_its_kernels_unless_the_builder_took_one():
    (edit,) = plan(pins=["conv=*_conv_[12]"])
    assert edit.tactic_hash == CONV.candidates[1].tactic_hash
    assert plan(pins=["conv=*"]) == ()


def test_what_the_builder_took_is_kept_where_a_wish_allows_it_even_if_it_is_slower():
    slower = table("conv", [0.010, 0.011], chosen=1)
    assert plan(pins=["conv=*"], tables=(slower,)) == ()
    assert plan(prefers=["sm80*"], tables=(slower,)) == ()


def test_an_unknown_layer_is_named_with_those_there_are():
    with pytest.raises(TacticUnavailableError) as caught:
        plan(pins=["nope=0x1"])
    assert caught.value.layer == "nope"
    assert caught.value.legal == ("conv", "gemm")


def test_an_unknown_tactic_is_refused_with_the_legal_ones():
    with pytest.raises(TacticUnavailableError) as caught:
        plan(pins=["/features/Conv=0x123"])
    assert caught.value.layer == "conv"
    assert [line.split()[0] for line in caught.value.legal] == [
        c.tactic_hash for c in CONV.candidates
    ]
    assert "0x123" in caught.value.message
    assert "sm80_xmma_fprop_conv_2" in caught.value.message


def test_bans_take_the_fastest_that_is_left():
    (edit,) = plan(bans=["*_conv_0"])
    assert (edit.tactic_hash, edit.reason) == (CONV.candidates[1].tactic_hash, "ban")
    (edit,) = plan(bans=["*_conv_0", "*_conv_1"])
    assert edit.tactic_hash == CONV.candidates[2].tactic_hash
    assert plan(bans=["*_conv_2", "no such kernel"]) == ()


def test_a_ban_that_leaves_nothing_is_an_error():
    with pytest.raises(TacticUnavailableError, match="leaves it no tactic") as caught:
        plan(bans=["*gemm*"])
    assert caught.value.layer == "gemm"


def test_preferences_yield_where_a_layer_has_none():
    (edit,) = plan(prefers=["*_gemm_1"])
    assert (edit.op, edit.reason) == ("gemm", "prefer")
    with pytest.raises(TacticUnavailableError, match="no layer has a kernel"):
        plan(prefers=["*cutlass*"])


def test_bans_beat_preferences_and_pins_beat_preferences():
    assert plan(prefers=["*_gemm_1"], bans=["*_gemm_1"]) == ()
    (edit,) = plan(pins=["gemm=*_gemm_1"], prefers=["*_gemm_0"])
    assert edit.kernel.endswith("_1")
    with pytest.raises(TacticUnavailableError, match="pinned and banned"):
        plan(pins=["gemm=*_gemm_1"], bans=["*_gemm_1"])


def test_contradicting_pins_are_an_error():
    with pytest.raises(TacticUnavailableError, match="pinned to both"):
        plan(pins=["conv=*_1", "/features/Conv=*_2"])
    assert len(plan(pins=["conv=*_1", "/features/Conv=*_1"])) == 1


def test_an_incomplete_table_is_not_acted_on():
    unsure = dataclasses.replace(CONV, complete=False)
    with pytest.raises(TacticUnavailableError, match="incomplete"):
        plan(pins=["conv=*_1"], tables=(unsure,))
    # What is left as it was needs no certainty.
    assert plan(bans=["nothing"], tables=(unsure,)) == ()


def test_the_last_table_of_a_key_counts():
    later = table("conv", [0.01, 0.02])
    with pytest.raises(TacticUnavailableError):
        plan(pins=["conv=*_conv_2"], tables=(CONV, later))


UNTIMED = dataclasses.replace(candidate(9, 0.001, 0.001, "untimed"), cost_ms=None)


def test_untimed_candidates_come_last():
    rows = (*CONV.candidates, UNTIMED)
    (edit,) = plan(bans=["*_conv_0"], tables=(dataclasses.replace(CONV, candidates=rows),))
    assert edit.kernel.endswith("_conv_1")
    (edit,) = plan(bans=["*_conv_*"], tables=(dataclasses.replace(CONV, candidates=rows),))
    assert edit.kernel == "untimed"
    assert edit_values([edit])[KEY].time_ms == 1.0


def test_what_the_second_build_did_not_keep_is_told():
    edits = plan(pins=["conv=*_1"])
    assert edit_problems(edits, {KEY: edits[0].tactic_hash}) == ()
    (problem,) = edit_problems(edits, {KEY: CONV.selected})
    assert problem.startswith("conv: ")
    assert edit_problems(edits, {})[0].endswith("the build took none")


def test_banned_kernels_in_the_engine_are_found_whatever_the_log_said():
    kernels = {"a": "sm80_gemm", "b": "cutlass_gemm"}
    assert ban_problems(["x*"], kernels) == ()
    assert ban_problems(["x*", "cut*"], kernels) == ("b: uses cutlass_gemm, which is banned",)


@pytest.mark.parametrize("text", ["", "conv", "=0x1", "conv=", "conv= "])
def test_no_pin(text):
    with pytest.raises(UsageError, match="LAYER=TACTIC"):
        parse_pin(text)


def test_layers_may_hold_equals_signs():
    assert parse_pin("a=b=0x1") == Pin(layer="a=b", tactic="0x1")


@given(
    st.sets(st.sampled_from(["*_0", "*_1", "*_2", "*conv*", "*gemm*", "x*"])),
    st.sets(st.sampled_from(["*_0", "*_1", "*_2", "*"])),
)
def test_edits_honour_every_wish_or_there_is_an_error(bans, prefers):
    try:
        edits = plan(bans=sorted(bans), prefers=sorted(prefers))
    except TacticUnavailableError:
        return
    taken = {t.key: t.selected for t in TABLES} | {e.key: e.tactic_hash for e in edits}
    import fnmatch

    for each in TABLES:
        kernels = {c.tactic_hash: c.kernel for c in each.candidates}
        chosen = kernels[taken[each.key]]
        allowed = [k for k in kernels.values() if not any(fnmatch.fnmatch(k, b) for b in bans)]
        wanted = [k for k in allowed if any(fnmatch.fnmatch(k, p) for p in prefers)]
        assert chosen in (wanted or allowed)


# --- tables of the classic tuner: one for each combination of formats -------------------------


def classic(name: str, key: str, costs, formats: str, **fields):
    """A table of a layer of which there are several."""
    made = table(name, costs, key=key, written=None, **fields)
    rows = tuple(
        dataclasses.replace(c, tactic_id=None, ratio=None, runner="CaskConvolution")
        for c in made.candidates
    )
    return dataclasses.replace(made, candidates=rows, tuner="classic", formats=formats)


FIRST = classic("stem", KEY, [0.01, 0.02], "Float(4,1) -> Float(4,1)")
SECOND = dataclasses.replace(
    classic("stem", OTHER_KEY, [0.03, 0.04, 0.05], "Float(1,4) -> Float(1,4)"),
)


def test_the_combination_that_has_the_tactic_is_pinned():
    only_second = SECOND.candidates[2]
    (edit,) = plan(pins=[f"stem={only_second.tactic_hash}"], tables=(FIRST, SECOND))
    assert (edit.key, edit.tactic_hash) == (OTHER_KEY, only_second.tactic_hash)


def test_a_tactic_that_several_combinations_have_is_pinned_in_each():
    both = FIRST.candidates[1].tactic_hash
    edits = plan(pins=[f"stem={both}"], tables=(FIRST, SECOND))
    assert [edit.key for edit in edits] == [KEY, OTHER_KEY]


@pytest.mark.parametrize("tactic", ["0xdeadbeef", FIRST.candidates[0].tactic_hash])
def test_a_layer_whose_tables_came_out_empty_cannot_be_pinned(tactic):
    """It once ended with status 0, and the pin was ignored."""
    empty = dataclasses.replace(FIRST, candidates=(), selected=None, complete=False)
    with pytest.raises(TacticUnavailableError, match="the log lists none of its tactics"):
        plan(pins=[f"stem={tactic}"], tables=(empty,))


@pytest.mark.parametrize(
    "wish", [{"pins": ["stem=*_stem_1"]}, {"prefers": ["*_stem_1"]}, {"bans": ["*_stem_0"]}]
)
def test_a_table_without_a_key_cannot_be_edited(wish):
    keyless = dataclasses.replace(FIRST, key="")
    with pytest.raises(TacticUnavailableError, match="names no key of the timing cache"):
        plan(tables=(keyless,), **wish)
    # What the builder took anyway needs no key.
    assert plan(pins=["stem=*_stem_0"], tables=(keyless,)) == ()


def test_no_table_at_all_is_an_error_for_a_pin_and_a_preference():
    for wish in ({"pins": ["stem=0x1"]}, {"prefers": ["*"]}):
        with pytest.raises(TacticUnavailableError):
            plan(tables=(), **wish)


def test_a_plugin_s_tactic_is_pinned_by_its_number_and_no_glob_meets_it():
    rows = tuple(
        dataclasses.replace(c, kernel="", tactic_hash=f"0x{n}", runner="PluginV3")
        for n, c in enumerate(FIRST.candidates, start=1)
    )
    plugin = dataclasses.replace(FIRST, op="cbr", candidates=rows, selected="0x1")
    (edit,) = plan(pins=["cbr=0x0000000000000002"], tables=(plugin,))
    assert edit.tactic_hash == "0x2"
    assert plan(bans=["*"], tables=(plugin,)) == ()
    with pytest.raises(TacticUnavailableError, match=r"0x1  10.000 us  PluginV3"):
        plan(pins=["cbr=0x3"], tables=(plugin,))


def test_a_layer_of_the_second_profile_has_a_name_of_its_own():
    second = dataclasses.replace(SECOND, op="stem [profile 1]")
    (edit,) = plan(pins=["stem [profile 1]=*_stem_2"], tables=(FIRST, second))
    assert edit.key == OTHER_KEY


def test_the_finished_engine_is_held_to_its_pins():
    tables, pins = (FIRST, SECOND), (parse_pin(f"stem={SECOND.candidates[2].tactic_hash}"),)
    kernel = FIRST.candidates[0].kernel
    held = {"stem": (kernel, FIRST.candidates[0].tactic_hash), "other": (None, "0x9")}
    problems = pin_problems(tables, pins, {}, held)
    assert list(problems) == ["stem"]
    assert "with other formats" in problems["stem"]
    held["stem"] = (None, SECOND.candidates[2].tactic_hash)
    assert pin_problems(tables, pins, {}, held) == {}
