from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.report.golden import GOLDEN, golden
from tests.report.sample_detector import realistic_report
from tests.report.samples import HOSTILE, chain_report, small_report
from trtplug.report.text import LAYERS_SHOWN, report_to_text


@pytest.mark.parametrize("name", [n for n in GOLDEN if n.endswith(".txt")])
def test_golden(name: str) -> None:
    assert GOLDEN[name]() == golden(name)


@pytest.mark.parametrize("width", [100, 80, 132, 60])
@pytest.mark.parametrize("make", [small_report, realistic_report, lambda: chain_report(60)])
def test_fits_the_width(make, width: int) -> None:
    lines = report_to_text(make(), width=width).splitlines()
    assert max(map(cell_len, lines)) <= width


def test_a_terminal_that_is_too_narrow_gets_60_columns() -> None:
    text = report_to_text(small_report(), width=1)
    assert text == report_to_text(small_report(), width=60)


def _table_rows(text: str) -> list[str]:
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("───"))
    return lines[start + 1 : next(i for i, x in enumerate(lines) if i > start and "layers," in x)]


def test_forty_layers_are_shown_and_the_rest_is_accounted_for() -> None:
    rows = _table_rows(report_to_text(chain_report(45)))
    assert len(rows) == LAYERS_SHOWN + 1
    assert rows[-1] == "5 more layers are in report.html and report.json (11.1% of the bound)"
    assert len(_table_rows(report_to_text(chain_report(40)))) == LAYERS_SHOWN


def test_the_largest_bound_comes_first() -> None:
    rows = _table_rows(report_to_text(realistic_report()))
    shares = [float(r.split()[-1].rstrip("%")) for r in rows[:LAYERS_SHOWN]]
    assert shares == sorted(shares, reverse=True)


def test_bounds_are_called_bounds_above_the_table() -> None:
    head = report_to_text(realistic_report()).split("───")[0]
    assert "Bounds are lower bounds, not times" in head
    assert "time" not in head.replace("not times", "")


def test_measured_times_get_a_column() -> None:
    report = small_report()
    layers = tuple(replace(x, time_us=7.25 if x.index == 4 else None) for x in report.layers)
    text = report_to_text(replace(report, layers=layers))
    assert "7.25" in next(line for line in text.splitlines() if line.startswith("4 "))


def test_colour_is_only_there_when_asked_for() -> None:
    assert "\x1b[" not in report_to_text(small_report())
    assert "\x1b[1m" in report_to_text(small_report(), color=True)


def test_wide_characters_keep_to_their_line() -> None:
    report = small_report()
    wide = replace(report.layers[4], name="卷" * 60, type="积" * 60)
    text = report_to_text(replace(report, layers=(wide,)))
    assert len(_table_rows(text)) == 1
    assert max(map(cell_len, text.splitlines())) <= 100


def test_no_name_is_taken_as_markup() -> None:
    report = replace(small_report(), warnings=("[bold]x[/bold] :smile:",), target="[red]t")
    text = report_to_text(report)
    assert "[bold]x[/bold] :smile:" in text
    assert "[red]t" in text


def test_a_report_without_layers_or_gpus() -> None:
    report = replace(small_report(), layers=(), gpus=())
    assert "no profile of such a GPU" in report_to_text(report)


@settings(deadline=None)
@given(st.one_of(st.text(st.characters()), st.sampled_from(HOSTILE)))
def test_no_name_breaks_a_line_or_steers_the_terminal(name: str) -> None:
    report = small_report()
    hostile = replace(report.layers[2], name=name, type=name, kernel=name, kernel_status="chosen")
    changed = replace(report, layers=(*report.layers[:2], hostile), warnings=(name,))
    plain = replace(hostile, name="x", type="x", kernel="x")
    text = report_to_text(changed)
    assert "\x1b" not in text
    assert max(map(cell_len, text.split("\n"))) <= 100
    expected = report_to_text(replace(changed, layers=(*report.layers[:2], plain)))
    assert len(_table_rows(text)) == len(_table_rows(expected)) == 3
