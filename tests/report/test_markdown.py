from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.report.golden import GOLDEN, golden
from tests.report.sample_detector import realistic_report
from tests.report.samples import HOSTILE, chain_report, small_report
from trtplug.report.markdown import LAYERS_SHOWN, report_to_markdown
from trtplug.report.tables import Format, render_grid, render_rows, render_titled
from trtplug.report.tables import markdown_name as code
from trtplug.report.tables import markdown_table as table
from trtplug.report.tables import markdown_text as text
from trtplug.report.words import elide, visible

OUR_TAGS = {"h2", "h3", "blockquote", "p", "strong", "ul", "li", "code"}
OUR_TAGS |= {"table", "thead", "tbody", "tr", "th", "td"}


class _Page(HTMLParser):
    """Tags of a page, and the text of each table row's cells and of each list item."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.rows: list[list[str]] = []
        self.items: list[str] = []
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.add(tag)
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag == "li":
            self.items.append("")

    def handle_endtag(self, tag) -> None:
        self.open.remove(tag)

    def handle_data(self, data) -> None:
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data
        elif "li" in self.open:
            self.items[-1] += data


def _render(markdown: str) -> _Page:
    return _Page(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))


def _squeezed(words: str) -> str:
    return " ".join(words.split())


@pytest.mark.parametrize("name", [n for n in GOLDEN if n.endswith(".md")])
def test_golden(name: str) -> None:
    assert GOLDEN[name]() == golden(name)


def test_renders_as_tables_lists_and_headings_and_nothing_else() -> None:
    page = _render(report_to_markdown(small_report()))
    assert page.tags == OUR_TAGS
    layers = [r for r in page.rows if len(r) == 11]
    assert [r[0] for r in layers] == ["#", "4", "2", "3", "1", "0", "5"]
    assert layers[1][1] == HOSTILE[10]
    assert layers[1][4] == "k|`<b>"
    assert layers[2][3] == "<script>alert(1)</script> and 2 more"
    assert r"two\nlines" in page.items


def test_forty_layers_are_shown_and_the_rest_is_accounted_for() -> None:
    markdown = report_to_markdown(chain_report(45))
    assert len([r for r in _render(markdown).rows if len(r) == 10]) == LAYERS_SHOWN + 1
    assert "5 more layers are in report.html and report.json (11.1% of the bound)." in markdown


def test_a_real_report_reads_well_unrendered() -> None:
    lines = report_to_markdown(realistic_report()).splitlines()
    assert lines[0] == "## `ch_PP-OCRv4_det_infer.onnx` on rtx-1.7:sm_89"
    assert "&#" not in "".join(lines)


def test_measured_times_get_a_column() -> None:
    report = small_report()
    layers = tuple(replace(x, time_us=7.25) for x in report.layers)
    rows = _render(report_to_markdown(replace(report, layers=layers))).rows
    assert [r[9] for r in rows if len(r) == 12][:2] == ["Time µs", "7.25"]


def test_margins_get_a_column_where_there_are_candidates() -> None:
    rows = _render(report_to_markdown(small_report())).rows
    assert [r[9] for r in rows if len(r) == 11][:3] == ["Margin", "-", "3.1% near tie"]
    assert "Margin" not in report_to_markdown(chain_report(2))


def test_a_report_without_layers_or_gpus() -> None:
    report = replace(small_report(), layers=(), gpus=(), assumptions=())
    assert "The builder reported no layers." in report_to_markdown(report)


names = st.one_of(
    st.text(st.characters(), max_size=80),
    st.text("<>&|`*_~[]()!\\@#$:/. \n-+=1aw", max_size=30),
    st.sampled_from(HOSTILE),
    st.sampled_from(("www.a.b", "https://a.b", "a@b.c", "![x](y)", "<!--", "__init__", "1. x")),
)


@given(names, names)
def test_names_in_cells_read_as_they_are(first: str, second: str) -> None:
    words = visible(second)
    page = _render(table(("a", "b", "c"), [(code(first), text(words), "end")]))
    assert page.tags <= OUR_TAGS
    assert [[_squeezed(c) for c in row] for row in page.rows] == [
        ["a", "b", "c"],
        [_squeezed(elide(visible(first), 60)), _squeezed(words), "end"],
    ]


@given(names)
def test_warnings_and_assumptions_stay_one_item_each(name: str) -> None:
    report = replace(small_report(), warnings=(name,), assumptions=("end",))
    page = _render(report_to_markdown(report))
    assert page.tags <= OUR_TAGS
    assert [_squeezed(item) for item in page.items[-2:]] == [_squeezed(visible(name)), "end"]


@pytest.mark.parametrize("name", ["@someone", "a @b", "fixes #12", "o/r#1", "GH-7", "a@b.c"])
def test_nothing_is_mentioned_or_referenced(name: str) -> None:
    assert text(name) == f"<code>{name}</code>"
    # In code, of either form, GitHub looks for neither.
    assert code(name) in (f"<code>{name}</code>", f"`{name}`")


@pytest.mark.parametrize(
    "character", ["\x1b", "\x07", "\x9b", "\u202e", "\u2066", "\x85", "\r"], ids=ascii
)
def test_no_renderer_writes_a_control_character(character: str) -> None:
    rows = [(f"a{character}b", "c")]
    for form in (Format.TEXT, Format.MARKDOWN):
        shown = render_grid(("x", "y"), rows, form) + render_rows(rows, form)
        assert character not in shown + render_titled(f"t{character}", "", form)
        assert shown.replace("&#92;", "\\").count(ascii(character)[1:-1]) == 2
