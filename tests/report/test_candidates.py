from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.trt.tactic_logs import KEY, OTHER_KEY, table
from tests.report.test_layers import layer
from trtplug.report.candidates import (
    NO_TABLES,
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
