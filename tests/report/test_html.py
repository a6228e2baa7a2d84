"""The text of the page; tests/report/test_page.py opens it in a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.report.sample_detector import realistic_report
from tests.report.samples import HOSTILE, chain_report, small_report
from trtplug.report.html import json_for_html, report_to_html
from trtplug.report.words import visible


class _Page(HTMLParser):
    """Elements with their attributes, and what `script`, `style`, `td` and `title` hold."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.cells: list[str] = []
        self.title = ""
        self.inside = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs) -> None:
        self.elements.append((tag, dict(attrs)))
        self.inside = tag
        if tag in self.raw:
            self.raw[tag].append("")
        elif tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag) -> None:
        self.inside = ""

    def handle_data(self, data) -> None:
        if self.inside in self.raw:
            self.raw[self.inside][-1] += data
        elif self.inside == "td":
            self.cells[-1] += data
        elif self.inside == "title":
            self.title += data

    def data(self) -> dict:
        return json.loads(self.raw["script"][0])


@pytest.fixture(scope="module")
def page() -> _Page:
    return _Page(report_to_html(small_report()))


def test_is_one_file_that_loads_nothing(page: _Page) -> None:
    loading = {"src", "href", "srcset", "action", "data", "poster"}
    for tag, attributes in page.elements:
        for name in loading & attributes.keys():
            assert attributes[name].startswith("#"), (tag, attributes)
    assert not {"link", "iframe", "object", "embed", "base"} & {t for t, _ in page.elements}
    assert "@import" not in page.raw["style"][0]
    assert "url(" not in page.raw["style"][0]


def test_the_policy_admits_this_style_and_this_script_alone(page: _Page) -> None:
    policy = next(a["content"] for t, a in page.elements if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for kind, text in (("style", page.raw["style"][0]), ("script", page.raw["script"][1])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_has_no_handler_and_no_style_in_its_markup(page: _Page) -> None:
    for _, attributes in page.elements:
        assert not [n for n in attributes if n.startswith("on") or n == "style"]


def test_hostile_names_add_no_element(page: _Page) -> None:
    tame = replace(
        small_report(),
        model=replace(small_report().model, file="det.onnx"),
        warnings=("a", "b", "c", "d"),
        layers=tuple(
            replace(x, name="n", onnx_nodes=tuple("x" for _ in x.onnx_nodes), kernel="k")
            for x in small_report().layers
        ),
    )
    expected = [t for t, _ in _Page(report_to_html(tame)).elements]
    assert [t for t, _ in page.elements] == expected
    assert page.title == "<b>det|x</b>.onnx · rtx-1.7:sm_89 · trtplug report"


def test_the_data_holds_every_name_as_it_is(page: _Page) -> None:
    labels = [n["label"] for n in page.data()["nodes"]]
    assert labels == [*map(visible, HOSTILE), "folded"]


def test_without_script_there_is_a_table(page: _Page) -> None:
    assert len(page.cells) == 6 * 10
    assert page.cells[0:3] == ["4", HOSTILE[10], "gemm"]


def test_without_script_a_large_report_says_what_it_leaves_out() -> None:
    html = report_to_html(chain_report(203))
    assert len(_Page(html).cells) == 200 * 10
    assert "3 more layers are in report.json" in html


@settings(max_examples=30, deadline=None)
@given(st.text(st.characters(), max_size=40), st.text("<>/!-script\"'&\\", max_size=30))
def test_no_name_ends_the_data(first: str, second: str) -> None:
    html = json_for_html([visible(first), second])
    assert not re.search(r"[<>&\u2028\u2029]", html)
    assert json.loads(html) == [visible(first), second]


def test_a_report_without_layers_or_gpus() -> None:
    html = report_to_html(replace(small_report(), layers=(), gpus=(), flags={}, assumptions=()))
    assert "no profile of such a GPU" in html


def test_the_same_report_gives_the_same_page() -> None:
    assert report_to_html(realistic_report()) == report_to_html(realistic_report())


def test_importing_the_renderers_loads_no_template_engine() -> None:
    code = (
        "import sys\n"
        "from trtplug.report import html, markdown, text\n"
        "print(sorted({'pydantic', 'jinja2', 'rich', 'numpy', 'onnx'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
