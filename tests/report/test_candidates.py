from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.trt.tactic_logs import KEY, OTHER_KEY, table
from tests.report.test_layers import layer, tensor
from trtplug.backends.tactic_table import CacheHit, Candidate, CandidateTable
from trtplug.report.candidates import (
    NO_TABLES,
    Tactics,
    join_tables,
    report_candidates,
    report_timing_cache,
    unjoined_candidates,
)
from trtplug.timing.accounting import account
from trtplug.timing.store import CacheOutcome

CONV = table("conv1", [0.010, 0.011], onnx_layers=("conv1",))
KERNEL = CONV.chosen.kernel


@pytest.mark.parametrize(
    "found",
    [
        layer("x", "correlation", onnx=("conv1",)),
        layer("x", "correlation", onnx=("conv1", "relu1"), tactic=KERNEL),
        layer("x", "correlation", onnx=("conv1",), tactic="__myelin_CASK_STUB"),
    ],
)
def test_a_table_joins_the_layer_of_its_nodes(found):
    layers = (layer("other", "kgen", onnx=("relu0",)), found)
    assert join_tables(layers, [CONV]).by_layer == {1: CONV}


@pytest.mark.parametrize("name", ["conv1", "conv1_myl0_7"])
def test_older_logs_name_no_nodes_so_names_join(name):
    old = replace(CONV, onnx_layers=())
    assert join_tables((layer(name, "gemm"),), [old]).by_layer == {0: old}
    by_node = layer("__myl_Corr_myl0_1", "correlation", onnx=("conv1",))
    assert join_tables((by_node,), [old]).by_layer == {0: old}


@pytest.mark.parametrize(
    ("layers", "why"),
    [
        ((layer("x", "kgen", onnx=("conv2",)),), "no layer"),
        ((layer("conv1", "kgen", onnx=("conv2",)),), "no layer"),
        ((layer("x", "correlation", onnx=("conv1",), tactic="another"),), "no layer"),
        ((layer("x", "a", onnx=("conv1",)), layer("y", "b", onnx=("conv1",))), "2 layers"),
        ((), "no layer"),
    ],
)
def test_what_is_not_certain_is_kept_apart(layers, why):
    joined = join_tables(layers, [CONV])
    assert joined.by_layer == {}
    ((found, reason),) = joined.apart
    assert found == CONV
    assert reason.startswith(why)


def test_the_kernel_decides_between_two_layers_of_a_node():
    layers = (
        layer("a", "kgen", onnx=("conv1",), tactic="__myl_Sigm"),
        layer("b", "correlation", onnx=("conv1",), tactic=KERNEL),
    )
    assert join_tables(layers, [CONV]).by_layer == {1: CONV}


def test_two_tables_of_one_layer_are_both_kept_apart():
    other = replace(CONV, key=OTHER_KEY)
    joined = join_tables((layer("x", "correlation", onnx=("conv1",)),), [CONV, other])
    assert joined.by_layer == {}
    assert [why for _, why in joined.apart] == ["another table fits the same layer"] * 2


def test_the_last_table_of_a_key_counts():
    later = table("conv1", [0.5], onnx_layers=("conv1",))
    assert join_tables((layer("x", "c", onnx=("conv1",)),), [CONV, later]).by_layer == {0: later}


def test_rows_are_sorted_and_say_who_timed_them():
    untimed = replace(CONV.candidates[0], cost_ms=None, tactic_hash="0x9")
    rows = report_candidates(replace(CONV, candidates=(untimed, *reversed(CONV.candidates))))
    assert [r.time_us for r in rows] == [10.0, 11.0, None]
    assert [r.ratio for r in rows] == [1.0, pytest.approx(1.1), None]
    assert [r.chosen for r in rows] == [True, False, False]
    assert [r.timed_by for r in rows] == ["builder", "builder", None]


def test_apart_tables_have_labels_and_empty_ones_are_not_told():
    joined = join_tables((), [CONV, replace(CONV, key=OTHER_KEY, candidates=())])
    (found,) = unjoined_candidates(joined, {"conv1": "Conv.1"}, {})
    assert (found.onnx_nodes, found.cache_key) == (("Conv.1",), KEY)
    assert unjoined_candidates(NO_TABLES, {}, {}) == ()


@given(
    st.lists(
        st.tuples(
            st.sets(st.sampled_from("abc"), max_size=2),
            st.sampled_from(["", KERNEL, "k", "x_STUB"]),
        ),
        max_size=5,
    ),
    st.lists(st.tuples(st.sets(st.sampled_from("abc"), max_size=2), st.integers(0, 2)), max_size=4),
)
def test_every_table_is_joined_once_or_kept_apart(layers, tables):
    made = [layer("l", "t", onnx=sorted(nodes), tactic=k) for nodes, k in layers]
    given_ = [
        replace(CONV, key=f"0x{key}", onnx_layers=tuple(sorted(nodes))) for nodes, key in tables
    ]
    joined = join_tables(made, given_)
    keys = [t.key for t in joined.by_layer.values()] + [t.key for t, _ in joined.apart]
    assert sorted(keys) == sorted({t.key for t in given_})
    for position, found in joined.by_layer.items():
        assert set(found.onnx_layers) <= set(made[position].onnx_layers)
        assert made[position].tactic in ("", KERNEL, "x_STUB")


def test_the_outcome_of_a_cache_becomes_counts():
    outcome = CacheOutcome(
        word="partial",
        reason="",
        quarantined=None,
        accounting=account({"a": "0x1", "b": "0x1"}, {"a": "0x2", "c": "0x1"}, ["a", "c"]),
        sha256="ab",
    )
    found = report_timing_cache(outcome)
    assert (found.keys_before, found.keys_after, found.hits) == (2, 2, 1)
    assert (found.misses, found.lost, found.changed) == (1, 1, 1)
    assert report_timing_cache(None) is None


# --- tables of the classic tuner --------------------------------------------------------------


def classic(op: str, formats: str, number: str = "0xa1", kernel: str = "cask", **fields):
    """One row, taken."""
    row = Candidate(
        tactic_id=None,
        cost_ms=0.01,
        ratio=None,
        correlation=None,
        kernel=kernel,
        tactic_hash=number,
        parameter="",
        runner=fields.pop("runner", "CaskConvolution"),
    )
    given = {"onnx_layers": (), "written": None, "complete": True, "selected_ms": 0.01} | fields
    return CandidateTable(
        op=op, key=given.pop("key", ""), candidates=(row,), selected=number, tuner="classic",
        formats=formats, **given,
    )  # fmt: skip


def classic_layer(name: str, inputs, outputs, kind="CaskConvolution", value="0xa1", tactic="cask"):
    made = layer(name, kind, inputs, outputs, tactic=tactic)
    return replace(made, tactic_value=value)


def half(name: str, layout: str = "unknown"):
    return tensor(name, (1, 8, 4, 4), layout, "Half")


EIGHT = "Channel major format where channel % 8 == 0"
LINEAR_8 = "Half(128,16,4,1) -> Half(16,1:8,4,1)"
EIGHT_8 = "Half(16,1:8,4,1) -> Half(16,1:8,4,1)"


@pytest.mark.parametrize(("words", "formats"), [("Row major linear", LINEAR_8), (EIGHT, EIGHT_8)])
def test_of_several_combinations_the_engine_s_own_is_joined(words, formats):
    stem = classic_layer("stem", [half("x", words)], [half("t", EIGHT)])
    tables = [classic("stem", f) for f in (LINEAR_8, EIGHT_8, "Float(128,16,4,1) -> Half(1,1)")]
    joined = join_tables((stem,), tables)
    assert joined.by_layer[0].formats == formats
    assert joined.apart == ()


@pytest.mark.parametrize(
    "other",
    [{"value": "0xb2"}, {"tactic": "another"}, {"name": "stem [profile 1]"}],
)
def test_another_tactic_kernel_or_profile_is_not_its_layer_s(other):
    given = {"name": "stem"} | other
    stem = classic_layer(inputs=[half("x")], outputs=[half("t")], **given)
    joined = join_tables((stem,), [classic("stem", EIGHT_8)])
    assert joined.by_layer == {}


def test_types_alone_leave_it_open_and_neighbours_settle_it():
    """As 10.16 lists an engine without a context: `Half`, and no strides."""
    pool = classic_layer("pool", [half("t")], [half("u")], "CaskPooling", "0xc1", "pool")
    copy_name = "Reformatted Input Tensor 0 to next"
    copy = classic_layer("copy", [half("u")], [half(copy_name)], "Reformat", "0x0", "")
    after = classic_layer("next", [half(copy_name)], [half("y")], value="0xd1", tactic="conv")
    tables = [
        classic("pool", EIGHT_8, "0xc1", "pool", runner="CaskPooling"),
        classic("next", "Half(128,16,4,1) -> Half(128,16,4,1)", "0xd1", "conv"),
        classic("Optimizer Reformat(u -> <out>)", EIGHT_8, "0x0", "", runner="Reformat"),
        classic(
            "Optimizer Reformat(u -> <out>)", "Half(16,1:8,4,1) -> Half(128,16,4,1)", "0x0", "",
            runner="Reformat",
        ),
    ]  # fmt: skip
    joined = join_tables((pool, copy, after), tables)
    assert joined.by_layer[1].formats == "Half(16,1:8,4,1) -> Half(128,16,4,1)"
    assert set(joined.by_layer) == {0, 1, 2}
    assert joined.apart == ()
    alone = join_tables((copy,), tables)
    assert alone.by_layer == {}


def test_a_combination_that_no_tactic_takes_does_not_stand_in_the_way():
    stem = classic_layer("stem", [half("x")], [half("t")])
    empty = replace(classic("stem", LINEAR_8), candidates=(), selected=None)
    joined = join_tables((stem,), [classic("stem", EIGHT_8), empty])
    assert joined.by_layer[0].formats == EIGHT_8


def test_what_stands_for_a_whole_operation_of_the_compiler_is_no_layer_s():
    whole = classic("{ForeignNode[fc]}", EIGHT_8, "0x0", "", runner="Myelin")
    joined = join_tables((layer("fc_myl0_0", "gemm", onnx=("fc",)),), [whole])
    assert (joined.by_layer, joined.apart) == ({}, ())


def test_a_hit_has_the_kernel_of_its_layer_and_is_from_the_cache():
    hit = CacheHit(
        layer="stem", formats=EIGHT_8, runner="CaskConvolution", tactic_hash="0xa1", cost_ms=0.004
    )
    stem = classic_layer("stem", [half("x")], [half("t")])
    (found,) = join_tables((stem,), [hit.table()]).by_layer.values()
    (row,) = report_candidates(found, "cask")
    assert (row.kernel, row.timed_by, row.chosen) == ("cask", "cache", True)
    assert row.time_us == pytest.approx(4)


def test_hits_are_counted_once_a_key_and_not_where_this_build_timed_them():
    def hit(name: str, formats: str = EIGHT_8):
        made = CacheHit(layer=name, formats=formats, runner="R", tactic_hash="0x1", cost_ms=1.0)
        return made.table()

    logged = (
        classic("timed", EIGHT_8),
        hit("timed [profile 1]"),
        hit("a"),
        hit("a [profile 1]"),
        hit("a", LINEAR_8),
    )
    assert Tactics().with_log(logged, None).hits == 2
    assert Tactics().with_log(logged[:2], None).hits is None


def test_rows_without_a_name_are_called_by_runner_and_number():
    (row,) = report_candidates(classic("cbr", EIGHT_8, "0x11", "", runner="PluginV3"))
    assert row.kernel == "PluginV3 17"
