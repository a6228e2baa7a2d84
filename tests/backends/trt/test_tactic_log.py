from __future__ import annotations

import dataclasses

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.backends.trt.tactic_logs import (
    CLASSIC,
    KEY,
    OTHER_KEY,
    SAMPLE_10_8,
    SAMPLE_11,
    prefixed,
    print_table,
    table,
)
from trtplug.backends.tactic_table import Candidate, CandidateTable
from trtplug.backends.trt.tactic_log import Message, parse_tactic_log, parse_tactic_text


def test_the_sample_of_10_8():
    log = parse_tactic_text(SAMPLE_10_8)
    assert (log.unread, log.loose) == (0, 0)
    (found,) = log.tables
    assert (found.op, found.key, found.complete) == ("matMul1", KEY, True)
    assert [c.tactic_id for c in found.candidates] == [3, 5, 6]
    assert found.chosen.kernel == "sm80_xmma_gemm_tilesize32x32x64_stage3"
    assert found.chosen.cost_ms == 0.011264
    assert found.written == found.selected == "0x665ded9abbf88"
    assert found.margin == pytest.approx(0.05454, abs=1e-4)


def test_the_shape_of_11_names_onnx_nodes_and_has_prefixes():
    (found,) = parse_tactic_text(SAMPLE_11).tables
    assert found.onnx_layers == ("node_linear",)
    assert found.candidates[1].parameter == "split_k=2"
    assert found.complete
    assert found.written is None
    assert found.near_tie is True


def test_one_message_may_hold_a_whole_table():
    log = parse_tactic_log([Message(text=SAMPLE_10_8)])
    assert log == parse_tactic_text(SAMPLE_10_8)


def test_columns_go_by_the_header():
    text = SAMPLE_10_8.replace("prediction_correlation, ", "").replace(" 0.50673,", "")
    text = text.replace(" 0.51157,", "").replace(" 0.50600,", "")
    (found,) = parse_tactic_text(text).tables
    assert [c.correlation for c in found.candidates] == [None] * 3
    assert [c.cost_ms for c in found.candidates] == [0.011264, 0.0118784, 0.0123904]
    assert found.complete


def test_kernels_may_hold_commas():
    name = "void cutlass::Kernel<int, 3, (bool)1>"
    text = SAMPLE_10_8.replace("sm80_xmma_gemm_tilesize64x32x64_stage4", name)
    (found,) = parse_tactic_text(text).tables
    assert found.candidates[1].kernel == name


def test_a_damaged_row_is_counted_and_the_table_not_whole():
    text = SAMPLE_10_8.replace("0.0118784", "oops")
    log = parse_tactic_text(text)
    assert log.unread == 1
    assert not log.tables[0].complete
    assert len(log.tables[0].candidates) == 2


@pytest.mark.parametrize("lines", range(8))
def test_a_log_that_ends_early_gives_what_it_has(lines):
    text = "".join(SAMPLE_10_8.splitlines(keepends=True)[:lines])
    log = parse_tactic_text(text)
    assert len(log.tables) == (1 if lines else 0)
    assert all(t.complete == (lines >= 7) for t in log.tables)


def test_a_line_cut_within_its_hash_is_not_trusted():
    """The rest of the hash could be that of another candidate."""
    short = SAMPLE_10_8.replace("0x393e4ef8ad243", "0x665")
    cut = short[: short.index("The selected tactic")] + (
        "The selected tactic is (tactic hash, cost(in ms)):0x665"
    )
    (found,) = parse_tactic_text(cut).tables
    assert found.selected == "0x665"
    assert not found.complete


def interleave(*streams):
    """One line of each in turn."""
    streams = [list(s) for s in streams]
    while any(streams):
        for number, stream in enumerate(streams):
            if stream:
                yield number, stream.pop(0)


def test_lines_of_threads_that_write_between_each_other_are_separated():
    one, two = table("a", [0.01, 0.02]), table("b", [0.01, 0.03, 0.05], key=OTHER_KEY)
    lines = list(interleave(print_table(one), print_table(two)))
    log = parse_tactic_log(Message(text=line, thread=n) for n, line in lines)
    assert log.tables == (one, two)
    text = "".join(f"[V] [thread {n}] {line}\n" for n, line in lines)
    assert parse_tactic_text(text).tables == (one, two)


def test_without_threads_nothing_is_guessed():
    one, two = table("a", [0.01, 0.02]), table("b", [0.01, 0.03, 0.05], key=OTHER_KEY)
    text = "".join(line + "\n" for _, line in interleave(print_table(one), print_table(two)))
    log = parse_tactic_text(text)
    assert [t.complete for t in log.tables] == [False, False]


def test_without_threads_a_table_broken_by_another_is_put_together_by_its_figures():
    one, two = table("a", [0.01, 0.02]), table("b", [0.5, 0.7], key=OTHER_KEY)
    first, second = list(print_table(one)), list(print_table(two))
    text = "".join(line + "\n" for line in [*first[:4], *second, *first[4:]])
    log = parse_tactic_text(text)
    assert [t.candidates for t in log.tables] == [one.candidates, two.candidates]
    assert [t.selected for t in log.tables] == [one.selected, two.selected]
    # Put together, but by conclusion: it is not to be acted on.
    assert not any(t.complete for t in log.tables)


def test_tables_with_one_fastest_time_are_told_apart_by_their_order():
    one = table("a", [0.01, 0.02, 0.03])
    two = table("b", [0.01, 0.015], key=OTHER_KEY)
    first, second = list(print_table(one)), list(print_table(two))
    text = "".join(line + "\n" for line in [*first[:5], *second, *first[5:]])
    log = parse_tactic_text(text)
    assert [t.candidates for t in log.tables] == [one.candidates, two.candidates]


def test_a_choice_belongs_to_the_table_that_has_its_hash():
    one, two = table("a", [0.01, 0.02]), table("b", [0.5, 0.7], key=OTHER_KEY)
    first, second = list(print_table(one)), list(print_table(two))
    text = "".join(line + "\n" for line in [*first[:5], *second[:5], *first[5:], *second[5:]])
    log = parse_tactic_text(text)
    assert [t.selected for t in log.tables] == [one.selected, two.selected]
    assert [t.written for t in log.tables] == [one.written, two.written]


def test_an_operation_without_a_table_does_not_spoil_the_rest():
    hit = f"Autotuning op hit(key: {OTHER_KEY}):\n"
    log = parse_tactic_text(hit * 3 + SAMPLE_10_8 + SAMPLE_10_8)
    assert [len(t.candidates) for t in log.tables] == [0, 0, 0, 3, 3]
    assert log.tables[-1].complete


def test_a_long_log_takes_time_in_proportion():
    tables = [table(f"op{n}", [0.01, 0.02], key=f"0x{n:032x}") for n in range(3000)]
    text = prefixed([line for t in tables for line in print_table(t)], "[V] ")
    assert parse_tactic_text(text).tables == tuple(tables)


# No line breaks, and nothing that builders put around names.
NAMES = st.text("abz09_-+/.@ <>=%|`#\u00e9\u202e\U0001f600", min_size=1, max_size=20)
NAMES = NAMES.map(str.strip).filter(bool)
HASHES = st.integers(0, 2**64 - 1).map(lambda n: f"0x{n:x}")
FINITE = st.floats(min_value=1e-6, max_value=1e3, allow_nan=False)


@st.composite
def tables(draw) -> CandidateTable:
    costs = sorted(draw(st.lists(FINITE, min_size=1, max_size=6)))
    hashes = draw(st.lists(HASHES, min_size=len(costs), max_size=len(costs), unique=True))
    rows = tuple(
        Candidate(
            tactic_id=draw(st.integers(0, 10**6)),
            cost_ms=cost,
            ratio=cost / costs[0],
            correlation=draw(FINITE),
            kernel=draw(NAMES),
            tactic_hash=tactic,
            parameter=draw(st.one_of(st.just(""), NAMES)),
        )
        for cost, tactic in zip(costs, hashes, strict=True)
    )
    chosen = draw(st.sampled_from(rows))
    return CandidateTable(
        op=draw(NAMES),
        key=f"0x{draw(st.integers(0, 2**128 - 1)):032x}",
        onnx_layers=tuple(dict.fromkeys(draw(st.lists(NAMES, max_size=3)))),
        candidates=rows,
        selected=chosen.tactic_hash,
        selected_ms=chosen.cost_ms,
        written=draw(st.sampled_from([None, chosen.tactic_hash])),
        complete=True,
    )


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(tables(), max_size=4))
def test_what_was_printed_is_what_is_read(printed):
    text = prefixed(
        [line for t in printed for line in print_table(t)], "[11/30/2026-11:03:15] [V] "
    )
    assert parse_tactic_text(text).tables == tuple(printed)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(tables(), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_what_threads_printed_in_any_order_is_what_is_read(printed, random):
    streams = [[(n, line) for line in print_table(t)] for n, t in enumerate(printed)]
    mixed = []
    while any(streams):
        mixed.append(random.choice([s for s in streams if s]).pop(0))
    found = parse_tactic_log(Message(text=line, thread=n) for n, line in mixed).tables
    assert sorted(found, key=repr) == sorted(printed, key=repr)


PIECES = [*SAMPLE_10_8.splitlines(), *SAMPLE_11.splitlines(), "3,", "0x", ", ,", "\x00", "[V] "]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=60)), max_size=30))
def test_garbage_raises_nothing(lines):
    log = parse_tactic_text("\n".join(lines))
    for found in log.tables:
        assert found.complete <= (found.chosen is not None)
        assert all(c.cost_ms is None or c.cost_ms >= 0 for c in found.candidates)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables(), st.data())
def test_cut_anywhere_raises_nothing_and_invents_nothing(printed, data):
    text = prefixed(list(print_table(printed)), "[V] ")
    cut = data.draw(st.integers(0, len(text)))
    log = parse_tactic_text(text[:cut])
    hashes = {c.tactic_hash for c in printed.candidates}
    for found in log.tables:
        # The last row may be cut within its hash, which is then a shorter one.
        assert all(c.tactic_hash in hashes for c in found.candidates[:-1])
        assert dataclasses.replace(found, complete=True) == printed or len(text) > cut


STAMPS = ("", "[07/07/2026-06:12:04] [TRT] [V] ", "[07/07/2026-02:11:16] [V] [TRT] ", "[V] ")


@pytest.mark.parametrize("stamp", STAMPS)
def test_each_combination_of_formats_has_a_table_of_its_own(stamp):
    log = parse_tactic_text(prefixed(CLASSIC.splitlines(), stamp))
    assert (log.unread, log.loose, log.warnings) == (0, 0, ())
    nchw, nhwc, plugin, reformat, head, first, second, failed = log.tables
    assert (nchw.tuner, nchw.op, nchw.key) == ("classic", "stem + stem_act", "")
    assert nchw.formats == "Half(3072,1024,32,1) -> Half(16384,1024,32,1)"
    # One name, two tactics: they stay apart.
    assert [(c.kernel, c.tactic_hash) for c in nchw.candidates[:2]] == [
        ("sm75_made_up_fprop_nchw_tilesize64x64x8", "0x00000000000000a1"),
        ("sm75_made_up_fprop_nchw_tilesize64x64x8", "0x00000000000000a2"),
    ]
    assert {c.runner for c in nchw.candidates} == {"CaskConvolution"}
    assert nchw.selected_ms == 0.0115
    assert nchw.margin == pytest.approx(0.0125 / 0.0115 - 1)
    assert nchw.complete
    assert (nhwc.op, nhwc.key) == (nchw.op, "0x00112233445566778899aabbccddeeff")
    assert nhwc.identity != nchw.identity
    assert [c.kernel for c in plugin.candidates] == ["", ""]
    assert plugin.chosen is not None
    assert (plugin.op, plugin.key) == ("(Unnamed Layer* 3) [PluginV3_Made]", "")
    assert plugin.formats.endswith("where E0=(* (# 1 (SHAPE in)) 4)")
    assert (reformat.op, reformat.selected) == (
        "Optimizer Reformat(image -> <out>)",
        "0x0000000000000000",
    )
    assert [(c.runner, c.cost_ms) for c in head.candidates] == [("Myelin", 0.012)]
    assert (failed.selected, failed.candidates) == (None, ())
    assert [t.onnx_layers for t in (first, second)] == [("head", "head_act"), ("head_2",)]
    assert [t.tuner for t in (first, second)] == ["compiler", "compiler"]


def test_rows_with_a_column_more_keep_hash_and_kernel():
    first = parse_tactic_text(CLASSIC).tables[5]
    assert [(c.kernel, c.tactic_hash, c.cost_ms) for c in first.candidates] == [
        ("sm80_made_up_gemm_tilesize32x32x8", "0x49175fa8b00a3", 0.01),
        ("sm80_made_up_gemm_tilesize32x32x8", "0x1b0b0b0b0b0b0", 0.0105),
    ]
    # Nothing says which one was taken.
    assert first.selected is None


def test_a_hit_has_layer_formats_runner_tactic_and_time():
    (hit,) = parse_tactic_text(CLASSIC).hits
    assert (hit.layer, hit.runner, hit.tactic_hash, hit.cost_ms) == (
        "stem + stem_act [profile 1]",
        "CaskConvolution",
        "0x00000000000000a2",
        0.0115,
    )
    assert hit.formats == "Half(3072,1024,32,1) -> Half(16384,1024,32,1)"


@pytest.mark.parametrize(
    ("damage", "warning"),
    [
        (("Time: 0.0125", "Tim"), "a timed tactic that cannot be read"),
        (("(CaskConvolution[0x80000009])\nTactic Name", "(Cask\nTactic Name"), "a runner without"),
        (("got cached result: CaskConvolution,", "got cached result"), "a cached result that"),
        (("   7, 0.0100000,", "   7, oops,"), "a row of the table of head that cannot be read"),
    ],
)
def test_what_looks_like_a_table_and_is_not_read_is_named_with_its_line(damage, warning):
    log = parse_tactic_text(CLASSIC.replace(*damage, 1))
    line = CLASSIC[: CLASSIC.index(damage[0])].count("\n") + 1
    assert any(w.startswith(f"line {line}: ") and warning in w for w in log.warnings)


def test_a_table_without_a_row_is_named_with_its_line():
    text = "\n".join(x for x in CLASSIC.splitlines() if "a1 Time" not in x and "Skipping" not in x)
    text = "\n".join(x for x in text.splitlines() if "_fprop_nchw_" not in x)
    (warning,) = (w for w in parse_tactic_text(text).warnings if "stem" in w)
    assert warning == "line 2: no row of the table of stem + stem_act was read"


@given(st.lists(st.sampled_from(CLASSIC.splitlines()), max_size=40), st.integers(0, 60))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_no_order_of_lines_and_no_cut_raises(lines, cut):
    text = "\n".join(line[: cut or None] for line in lines)
    log = parse_tactic_text(text)
    assert sum(len(t.candidates) for t in log.tables) <= len(lines)
