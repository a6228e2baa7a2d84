"""The page in a browser: opened from disk, sorted, filtered, switched, clicked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.report.sample_detector import realistic_report
from tests.report.samples import HOSTILE, chain_report, layer, small_report
from trtplug.report.html import report_to_html

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from selenium.webdriver import Chrome

    from trtplug.report.data import Report

pytestmark = pytest.mark.browser


class Page:
    """The opened page; every access goes through its elements, as a reader's would."""

    def __init__(self, browser: Chrome) -> None:
        self.browser = browser

    def run(self, script: str, *arguments: object):
        return self.browser.execute_script(script, *arguments)

    def all(self, selector: str) -> list:
        return self.browser.find_elements("css selector", selector)

    def one(self, selector: str):
        return self.browser.find_element("css selector", selector)

    def texts(self, selector: str) -> list[str]:
        script = "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)"
        return self.run(script, selector)

    def column(self, number: int) -> list[str]:
        """First line of each cell of a column of the layers' table."""
        script = (
            "return [...document.querySelectorAll('#layer-table tr.row')].map(r => {"
            "const c = r.children[arguments[0]];"
            "return c.children.length ? c.children[0].textContent : c.textContent })"
        )
        return self.run(script, number)

    def head(self, label: str):
        heads = self.all("#layer-table th")
        return next(h for h in heads if h.text.startswith(label))

    def click(self, selector: str) -> None:
        """Scrolls to the element first: a driver may leave it below the bar at the top."""
        self.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", selector)
        self.one(selector).click()

    def choose(self, selector: str, value: str) -> None:
        self.one(f"{selector} option[value='{value}']").click()

    def errors(self) -> list[str]:
        return [entry["message"] for entry in self.browser.get_log("browser")]


@pytest.fixture
def opened(browser: Chrome, tmp_path: Path):
    """Opens a report from disk; at the end, the console must be empty and nothing was loaded."""
    page = Page(browser)

    def open_report(report: Report, fragment: str = "") -> Page:
        file = tmp_path / "report.html"
        file.write_text(report_to_html(report), encoding="utf-8")
        browser.get("about:blank")
        browser.get(file.as_uri() + fragment)
        page.run("document.documentElement.style.scrollBehavior = 'auto'")
        return page

    yield open_report
    assert page.run("return performance.getEntriesByType('resource').map(e => e.name)") == []
    assert page.errors() == []
    page.run("localStorage.clear()")


def test_every_layer_has_a_row_the_largest_share_first(opened: Callable[..., Page]) -> None:
    page = opened(realistic_report())
    assert len(page.all("#layer-table tr.row")) == 82
    assert page.column(1)[0] == "__myl_Conc_myl0_75"
    assert page.head("Share").get_attribute("aria-sort") == "descending"


def test_headings_sort_in_both_directions_and_say_so(opened: Callable[..., Page]) -> None:
    page = opened(realistic_report())
    page.head("#").find_element("tag name", "button").click()
    assert page.column(0) == [str(i) for i in range(82)]
    assert page.head("#").get_attribute("aria-sort") == "ascending"
    assert page.head("Share").get_attribute("aria-sort") == "none"
    page.head("#").find_element("tag name", "button").click()
    assert page.column(0) == [str(i) for i in reversed(range(82))]
    assert page.head("#").get_attribute("aria-sort") == "descending"


def test_what_is_unknown_sorts_last_in_both_directions(opened: Callable[..., Page]) -> None:
    page = opened(small_report())
    button = page.head("Bound").find_element("tag name", "button")
    button.click()
    assert page.column(0) == ["4", "2", "3", "1", "0", "5"]
    button.click()
    assert page.column(0) == ["1", "3", "2", "4", "0", "5"]


def test_sorting_works_from_the_keyboard(opened: Callable[..., Page]) -> None:
    page = opened(small_report())
    page.head("#").find_element("tag name", "button").send_keys("\ue007")
    assert page.column(0) == ["0", "1", "2", "3", "4", "5"]


def test_filters_narrow_the_rows_and_count_them(opened: Callable[..., Page]) -> None:
    page = opened(realistic_report())
    field = page.one("#layer-table input")
    field.send_keys("p2o.Conv.1 correlation")
    assert {"3", "13", "15"} <= set(page.column(0))
    assert set(page.texts("#layer-table tr.row td:nth-child(3) span")) == {"correlation"}
    field.clear()
    field.send_keys("no such layer")
    assert page.texts("#layer-table tbody") == ["No layer matches."]
    field.clear()
    field.send_keys(" ")
    page.choose("#layer-table select[aria-label=Type]", "deconv")
    assert sorted(page.column(0)) == ["78", "79"]
    assert page.one("#layer-table [role=status]").text == "2 of 82 layers, 14.1% of the bound"
    page.choose("#layer-table select[aria-label=Type]", "")
    page.choose("#layer-table select[aria-label=Origin]", "any")
    assert sorted(page.column(0)) == ["1", "77", "80"]
    page.choose("#layer-table select[aria-label=Origin]", "copy")
    assert page.column(0) == ["77"]


def test_a_type_in_the_table_of_shares_filters_the_layers(opened: Callable[..., Page]) -> None:
    page = opened(realistic_report())
    assert page.texts("#types tbody button")[0] == "kgen"
    page.all("#types tbody button")[3].click()
    assert sorted(page.column(0)) == ["78", "79"]


def test_another_gpu_has_other_bounds(opened: Callable[..., Page]) -> None:
    page = opened(realistic_report())
    before = page.column(6)
    assert page.one("#total-bound").text == "167 µs"
    page.choose("#gpu", "1")
    assert page.one("#total-bound").text == "558 µs"
    assert "L4" in page.one("#total-gpu").text
    assert page.column(6) != before
    cells = page.texts("#layer-table tr.row td:last-child")
    shares = [float(cell.strip("%<")) for cell in cells if cell != "-"]
    assert shares == sorted(shares, reverse=True)
    assert "65.5 µs" in " ".join(page.texts("#graph .us"))


def test_one_gpu_needs_no_choice_and_none_is_no_fault(opened: Callable[..., Page]) -> None:
    report = small_report()
    assert not opened(replace(report, gpus=report.gpus[:1])).all("#gpu")
    page = opened(replace(report, gpus=()))
    assert page.column(6) == ["-"] * 6
    assert "no profile" in page.one("#total-gpu").text


def test_dark_and_light(opened: Callable[..., Page]) -> None:
    page = opened(small_report())
    colour = "return getComputedStyle(document.body).backgroundColor"
    light = page.run(colour)
    assert page.one("#theme").text == "Dark"
    page.one("#theme").click()
    assert page.run(colour) != light
    assert page.one("#theme").text == "Light"
    page.one("#theme").click()
    assert page.run(colour) == light


def test_follows_the_systems_colours(opened: Callable[..., Page], browser: Chrome) -> None:
    page = opened(small_report())
    colour = "return getComputedStyle(document.body).backgroundColor"
    light = page.run(colour)
    media = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    try:
        assert page.run(colour) != light
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_a_layer_of_the_graph_leads_to_its_row_and_back(opened: Callable[..., Page]) -> None:
    page = opened(realistic_report())
    assert len(page.all("#graph .node")) == 82
    page.one("#graph .node[data-position='3']").click()
    assert page.one("#layer-table tr.selected").get_attribute("id") == "layer-3"
    assert page.one("#layer-table tr.selected").is_displayed()
    detail = page.one("#layer-table tr.detail").text
    assert "p2o.Conv.1" in detail
    assert "1x16x320x320" in detail
    assert "38.2 µs" not in detail
    page.one("#layer-79 button").click()
    assert page.one("#graph .node.selected").get_attribute("data-position") == "79"
    assert page.run(
        "const n = document.querySelector('#graph .node.selected').getBoundingClientRect();"
        "const v = document.querySelector('.graph-view').getBoundingClientRect();"
        "return n.top >= v.top && n.bottom <= v.bottom"
    )
    assert len(page.all("#graph .edge.near")) == 2
    assert page.one("#layer-79 button").get_attribute("aria-expanded") == "true"
    page.one("#layer-79 button").click()
    assert not page.all("#layer-table tr.detail")
    assert not page.all("#graph .selected")


def test_choosing_a_layer_in_the_graph_clears_filters_that_hide_it(
    opened: Callable[..., Page],
) -> None:
    page = opened(realistic_report())
    page.choose("#layer-table select[aria-label=Type]", "deconv")
    page.one("#graph .node[data-position='3']").click()
    assert page.one("#layer-3").is_displayed()
    assert len(page.column(0)) == 82


def test_the_graph_works_from_the_keyboard(opened: Callable[..., Page]) -> None:
    page = opened(realistic_report())
    page.run("document.querySelector(\"#graph .node[data-position='1']\").focus()")
    page.browser.switch_to.active_element.send_keys("\ue015")
    page.browser.switch_to.active_element.send_keys("\ue007")
    assert page.one("#layer-table tr.selected").get_attribute("id") == "layer-2"


def test_the_graph_zooms(opened: Callable[..., Page]) -> None:
    page = opened(realistic_report())
    width = "return document.querySelector('#graph svg').getBoundingClientRect().width"
    before = page.run(width)
    page.one("#graph button[aria-label='Zoom in']").click()
    assert page.run(width) == pytest.approx(1.25 * before, rel=0.01)
    page.one("#graph button[aria-label='Show the whole graph']").click()
    assert page.run(width) < before


def test_no_two_layers_of_the_graph_overlap(opened: Callable[..., Page]) -> None:
    page = opened(realistic_report())
    assert (
        page.run(
            "const boxes = [...document.querySelectorAll('#graph .box')].map(b => b.getBBox());"
            "return boxes.flatMap((a, i) => boxes.slice(i + 1).filter(b => a.x < b.x + b.width && "
            "b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height)).length"
        )
        == 0
    )


def test_layers_without_tensors_stand_below_the_others(opened: Callable[..., Page]) -> None:
    report = realistic_report()
    loose = (layer(i, f"wait{i}", "wait", added="sync") for i in range(82, 182))
    page = opened(replace(report, layers=(*report.layers, *loose)))
    top = "return document.querySelector(arguments[0] + ' .box').getBBox()"
    last, first_loose, width = (
        page.run(f"{top}.{side}", selector)
        for selector, side in (
            ("#graph .node[data-position='81']", "y"),
            ("#graph .node[data-position='82']", "y"),
            ("#graph .node[data-position='82']", "width"),
        )
    )
    assert first_loose > last
    drawn = page.run("return document.querySelector('#graph svg').viewBox.baseVal.width")
    assert drawn < 12 * width


def test_nodes_lead_to_layers_and_layers_to_nodes(opened: Callable[..., Page]) -> None:
    page = opened(realistic_report())
    page.one("#layer-2 button").click()
    page.one("#layer-table tr.detail a[data-node]").click()
    row = page.run("return document.querySelector('#node-table tr:has(bdi)').textContent")
    assert row.startswith("p2o.Conv.0")
    field = page.one("#node-table input")
    field.send_keys("p2o.Conv.12")
    assert page.texts("#node-table tbody td:first-child") == ["p2o.Conv.12"]
    page.one("#node-table tbody a").click()
    assert page.one("#layer-table tr.selected").get_attribute("id") == "layer-14"
    field.clear()
    field.send_keys("constant")
    assert "in no layer" in page.one("#node-table tbody tr").text
    assert page.one("#node-table [role=status]").text == "120 of 388 nodes"


def test_sites_and_near_misses_lead_to_their_layers(opened: Callable[..., Page]) -> None:
    page = opened(realistic_report())
    first = page.one("#site-table tbody tr")
    assert "split over layers" in first.text
    first.find_element("css selector", "a").click()
    assert page.one("#layer-table tr.selected").get_attribute("id") == "layer-7"
    assert "15 near misses" in page.one("#miss-table").text


def test_sites_tell_what_was_planned_and_what_it_brought(opened: Callable[..., Page]) -> None:
    page = opened(small_report())
    (row,) = (r for r in page.all("#site-table tbody tr") if "plugin one of" in r.text)
    assert "in pair a|b+`x`" in row.text
    assert "Reformats before:" in row.text
    assert "Reformats after:" not in row.text
    assert "not a layer" in row.text
    row.find_elements("css selector", "td")[-1].find_element("css selector", "a").click()
    assert page.one("#layer-table tr.selected").get_attribute("id") == "layer-1"
    # Where no backend takes plugins they are not mentioned.
    assert "Planned" not in opened(realistic_report()).one("#site-table thead").text


def test_a_link_to_a_layer_opens_it(opened: Callable[..., Page]) -> None:
    page = opened(realistic_report(), "#layer-41")
    assert page.one("#layer-table tr.selected").get_attribute("id") == "layer-41"
    assert "p2o.Conv.33" in page.one("#layer-table tr.detail").text
    assert not opened(realistic_report(), "#layer-999").all("#layer-table tr.selected")


def test_hostile_names_are_shown_and_do_nothing(opened: Callable[..., Page]) -> None:
    page = opened(small_report())
    assert page.texts("#layer-table tr.row button") == [
        HOSTILE[10],
        "__myl_CorrMulAdd_myl0_2",
        "cast",
        "__myl_Move_myl0_1",
        "__mye1_myl0_0",
        "(no name)",
    ]
    assert page.texts("#node-table td:first-child") == [
        *HOSTILE[:3],
        r"two\nlines",
        "]]>",
        r"abc\u202etxt.exe",
        *HOSTILE[6:11],
        "(no name)",
        "folded",
    ]
    for i in range(6):
        page.one(f"#layer-{i} button").click()
    # An alert that opened would make this, or any other call, fail.
    assert page.run("return document.querySelectorAll('script, img, b b').length") == 2


def test_candidates_are_listed(opened: Callable[..., Page]) -> None:
    page = opened(small_report())
    page.one("#layer-2 button").click()
    detail = page.one("#layer-table tr.detail").text
    assert "3 candidates" in detail
    assert "3.25 1.00 timed by the builder, alone 0x8047623b83d18058" in detail
    assert "not timed" in detail
    assert page.column(7)[:2] == ["-", "3.1% near tie"]


def test_measured_times_get_a_column(opened: Callable[..., Page]) -> None:
    report = small_report()
    layers = tuple(replace(x, time_us=7.25 if x.index == 4 else None) for x in report.layers)
    page = opened(replace(report, layers=layers))
    page.head("Time").find_element("tag name", "button").click()
    assert page.column(7)[:2] == ["7.25", "-"]


def test_two_thousand_layers_open_and_all_can_be_reached(opened: Callable[..., Page]) -> None:
    page = opened(chain_report(2000))
    assert len(page.all("#layer-table tr.row")) == 400
    page.one("#layer-table input").send_keys("conv1999")
    assert page.column(0) == ["1999"]
    page.one("#layer-table input").clear()
    page.one("#layer-table input").send_keys(" ")
    page.click("#layer-table .more button")
    assert len(page.all("#layer-table tr.row")) == 2000
    page.click("#graph p button")
    assert len(page.all("#graph .node")) == 2000


def test_an_empty_report_opens(opened: Callable[..., Page]) -> None:
    page = opened(replace(small_report(), layers=(), sites=(), near_misses=(), onnx_nodes={}))
    assert page.texts("#layer-table tbody") == ["The builder reported no layers."]


@pytest.mark.parametrize("width", [1400, 800])
def test_nothing_sticks_out(opened: Callable[..., Page], browser: Chrome, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for report in (small_report(), realistic_report()):
            page = opened(report)
            assert page.run("return document.documentElement.scrollWidth - innerWidth") <= 0
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_with_a_margin_layers_have_the_whole_width(
    opened: Callable[..., Page], browser: Chrome
) -> None:
    """Beside the graph six letters of each name were left, and who chose a tactic was cut off."""
    size = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    report = small_report()
    pinned = tuple(replace(x, selected_by="pin", near_tie=None) for x in report.layers)
    try:
        page = opened(replace(report, layers=pinned))
        assert page.head("Margin")
        wide = "return document.querySelector(arguments[0]).getBoundingClientRect().width"
        assert page.run(wide, "#layer-table col.c-layer") > 200
        below = page.texts("#layer-table .lines > :nth-child(2)")
        assert sum(text.startswith("by --pin; ") for text in below) == len(pinned)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
