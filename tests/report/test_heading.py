from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.sample_detector import realistic_report
from tests.report.samples import layer, make_site, small_report
from trtplug.report.data import ReportTimingCache
from trtplug.report.heading import (
    added_counts,
    bound_note,
    heading_facts,
    kernel_counts,
    shape_words,
    site_words,
    total_words,
)


def test_facts_name_the_model_the_target_and_the_engine() -> None:
    facts = dict(heading_facts(realistic_report()))
    assert facts == {
        "model": "ch_PP-OCRv4_det_infer.onnx (opset 12, 388 nodes, 1,234,567 parameters)",
        "target": "rtx-1.7:sm_89 (builder 1.7.1.116)",
        "GPUs": "GeForce RTX 4090 (rtx4090), L4 (l4)",
        "precision": "keep",
        "input x": "1x3x320x320 to 1x3x960x960, opt 1x3x640x640, fp32",
        "engine": "det.rtx-1.7-sm_89.engine (9.26 MiB)",
    }


CACHE = ReportTimingCache(
    word="partial",
    reason="",
    set_aside=None,
    keys_before=10,
    keys_after=11,
    hits=9,
    misses=1,
    lost=0,
    changed=0,
    sha256="ab" * 32,
)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "partial: 9 hits, 1 miss"),
        ({"hits": None, "misses": 2}, "partial: hits unknown, 2 misses"),
        (
            {"changed": 1, "lost": 2},
            "partial: 9 hits, 1 miss, 1 changed winner, 2 lost keys",
        ),
        (
            {"word": "rejected", "reason": "foreign: gpu: a\nb", "hits": 0},
            r"rejected (foreign: gpu: a\nb): 0 hits, 1 miss",
        ),
    ],
)
def test_the_timing_cache_has_one_word_and_its_counts(fields, words) -> None:
    report = replace(small_report(), timing_cache=replace(CACHE, **fields))
    assert dict(heading_facts(report))["timing cache"] == words
    assert "timing cache" not in dict(heading_facts(small_report()))


def test_what_ran_on_a_gpu_is_told() -> None:
    report = small_report()
    assert bound_note(report).endswith("layers and engine were not timed.")
    predicted = tuple(
        replace(
            x,
            candidates=tuple(replace(c, timed_by="prediction") for c in x.candidates),
        )
        for x in report.layers
    )
    assert bound_note(replace(report, layers=predicted)).endswith("Nothing was run on a GPU.")


def test_what_is_unknown_is_not_made_up() -> None:
    report = realistic_report()
    report = replace(report, gpus=(), model=replace(report.model, parameters=None))
    facts = dict(heading_facts(report))
    assert "parameters" not in facts["model"]
    assert facts["GPUs"] == "no profile of such a GPU"
    assert "bound" not in total_words(report)


def test_an_input_of_one_size_shows_it_once() -> None:
    shape = realistic_report().shapes[0]
    assert shape_words(replace(shape, min=shape.opt, max=shape.opt)) == "1x3x640x640 fp32"


def test_a_bound_is_never_called_a_time() -> None:
    report = small_report()
    assert "not times" in bound_note(report)
    assert "Nothing was run" in bound_note(realistic_report())
    timed = (replace(report.layers[2], time_us=1.0),)
    assert "Times were measured" in bound_note(replace(report, layers=timed))


def test_totals_say_what_they_lack() -> None:
    assert total_words(small_report()) == (
        "6 layers, 124 MFLOP, 21.9 KiB moved, lower bound 1.51 µs on GeForce RTX 4090; "
        "4.12 µs on L4, FLOPs not known for 1 layer, bytes not known for 1 layer"
    )


def test_kernels_are_counted_by_what_is_known_of_them() -> None:
    assert kernel_counts(small_report()) == (
        "2 named by the builder, 1 chosen at first run, 3 not reported"
    )
    report = small_report()
    more = replace(report, totals=replace(report.totals, layers=8))
    assert kernel_counts(more).endswith(", 2 needing none")


def test_additions_are_counted_by_what_they_do() -> None:
    assert added_counts(small_report()) == "1 reformat, 1 cast, 1 copy"
    layers = (layer(0, "", "kgen", added="sync"), layer(1, "", "kgen", added="copy"))
    assert added_counts(replace(small_report(), layers=layers * 2)) == (
        "0 reformats, 0 casts, 2 syncs, 2 copies"
    )


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "Conv 3x3 + Relu"),
        ({"activation": "none"}, "Conv 3x3"),
        ({"strides": (2, 2), "group": 16}, "Conv 3x3 /2x2 + Relu, 16 groups"),
        ({"residual": "before_activation"}, "Conv 3x3 + Relu, residual before activation"),
    ],
)
def test_site_words(fields: dict, words: str) -> None:
    assert site_words(replace(make_site("c", ("c",), "unknown", ()), **fields)) == words
