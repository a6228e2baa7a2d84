from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.sample_detector import realistic_report
from tests.report.samples import LINEAR, NHWC, chain_report, layer, small_report, tensor
from trtplug.report.rows import (
    FIRST_RUN,
    NO_KERNEL,
    NOT_REPORTED,
    by_bound,
    dtype_word,
    format_word,
    has_times,
    kernel_words,
    layer_rows,
    left_out_words,
    node_words,
    tensors_words,
    total_bounds,
    type_rows,
)


def test_rows_stand_in_the_engines_order_with_every_figure_formatted() -> None:
    row = layer_rows(small_report())[2]
    assert (row.name, row.type) == ("__myl_CorrMulAdd_myl0_2", "runtime_fusion")
    assert row.nodes == ("<script>alert(1)</script>", "a|b", "`x`")
    assert (row.flops, row.bytes, row.intensity) == ("55.3 k", "6.44 KiB", "8.39")
    assert [(b.us, b.share, b.by) for b in row.bounds] == [
        ("0.01", "0.4%", "memory"),
        ("0.02", "0.5%", "memory"),
    ]


@pytest.mark.parametrize(
    ("status", "kernel", "words"),
    [
        ("chosen", "sm80_xmma", "sm80_xmma"),
        ("chosen", "two\nlines", r"two\nlines"),
        ("chosen", None, NOT_REPORTED),
        ("chosen_at_first_run", None, FIRST_RUN),
        ("chosen_at_first_run", "__myelin_CASK_STUB", FIRST_RUN),
        ("none", None, NO_KERNEL),
        ("unknown", None, NOT_REPORTED),
        ("unknown", "guess", NOT_REPORTED),
    ],
)
def test_only_a_chosen_kernel_is_shown_as_one(status: str, kernel: str | None, words: str) -> None:
    assert kernel_words(layer(0, "x", "y", kernel=kernel, kernel_status=status)) == words


@pytest.mark.parametrize(
    ("layout", "word"),
    [
        (NHWC, "NHWC"),
        (LINEAR, "Linear"),
        ("Row major linear FP32 format (kLINEAR)", "Linear"),
        ("something\nnew", r"something\nnew"),
    ],
)
def test_format_word(layout: str, word: str) -> None:
    assert format_word(layout) == word


def test_types_have_one_word_whoever_names_them() -> None:
    words = [dtype_word(d) for d in ("Float", "float", "Half", "float16", "BFloat16", "FP8", "E\n")]
    assert words == ["fp32", "fp32", "fp16", "fp16", "bf16", "fp8", r"E\n"]


def test_an_arrow_says_that_a_layer_changes_type_or_format() -> None:
    moved = layer(0, "", "kgen", inputs=(tensor("x", (1,), layout=LINEAR),), outputs=())
    assert tensors_words(moved) == "-"
    rows = layer_rows(small_report())
    assert rows[1].tensors == "fp32 Linear → fp32 NHWC"
    assert rows[2].tensors == "fp32 NHWC"


def test_largest_bound_first_and_unknown_last() -> None:
    values = [r.bound.value_us for r in by_bound(layer_rows(small_report()))]
    known = [v for v in values if v is not None]
    assert known == sorted(known, reverse=True)
    assert values[len(known) :] == [None, None]
    types = [r.bound.value_us for r in type_rows(realistic_report())]
    assert types == sorted(types, reverse=True)


def test_shares_add_up_to_the_whole_on_each_gpu() -> None:
    report = realistic_report()
    for gpu in range(len(report.gpus)):
        parts = [r.bounds[gpu].share_value for r in layer_rows(report)]
        assert sum(p for p in parts if p is not None) == pytest.approx(1)
        assert total_bounds(report)[gpu].share_value == 1


def test_without_a_profile_there_are_rows_but_no_bounds() -> None:
    report = replace(small_report(), gpus=())
    assert all(r.bounds == () and r.bound.us == "-" for r in layer_rows(report))
    assert total_bounds(report) == ()


def test_a_gpu_whose_bounds_are_absent_has_none() -> None:
    report = small_report()
    totals = replace(report.totals, bound_us={})
    assert layer_rows(replace(report, totals=totals))[2].bound.share == "-"


def test_words_for_lists() -> None:
    rows = layer_rows(small_report())
    assert node_words(rows[0]) == "-"
    assert node_words(rows[2]) == "<script>alert(1)</script> +2"
    left_out = layer_rows(chain_report(4))
    assert left_out_words(left_out[:1]).startswith("1 more layer is in report.html")
    assert left_out_words(left_out[:2]).endswith("(50.0% of the bound)")
    assert left_out_words(rows[:1]) == "1 more layer is in report.html and report.json"


def test_the_convolution_leads_the_nodes_that_were_fused_to_it() -> None:
    report = small_report()
    operators = {"add": "Add", "conv": "Conv", "relu": "Relu"}
    nodes = (layer(0, "", "x", onnx_nodes=("add", "conv", "relu")),)
    nodes += (layer(1, "", "x", onnx_nodes=("add", "relu")), layer(2, "", "x"))
    rows = layer_rows(replace(report, layers=nodes, onnx_nodes=operators))
    assert [node_words(r) for r in rows] == ["conv +2", "add +1", "-"]


def test_times_are_told_only_where_one_was_measured() -> None:
    report = small_report()
    assert not has_times(report)
    timed = replace(report.layers[2], time_us=12.5)
    measured = replace(report, layers=(*report.layers[:2], timed))
    assert has_times(measured)
    assert layer_rows(measured)[2].time == "12.5"
