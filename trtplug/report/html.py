"""A report as one HTML file that works from disk, with no network.

The template holds the parts that need no script; layers, graph, nodes and sites are drawn by the
script in `html/` from the data embedded in the page. Jinja2 escapes every value; the data has `<`,
`>` and `&` as JSON escapes; and the page forbids itself every source but its own script and style.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.report.heading import (
    added_counts,
    bound_note,
    heading_facts,
    kernel_counts,
    shape_words,
)
from trtplug.report.html_data import page_data
from trtplug.report.rows import by_bound, dtype_word, layer_rows, margin_words, total_bounds
from trtplug.report.words import format_bytes, format_flops, visible

if TYPE_CHECKING:
    import jinja2

    from trtplug.report.data import Report


_FOLDER = Path(__file__).with_name("page")
_SCRIPTS = ("dom", "table", "detail", "layers", "layout", "graph", "bounds", "lists", "main")
"""In this order they become one script, inside one function of its own."""

_ROWS_WITHOUT_SCRIPT = 200


_FORMATS = (visible, dtype_word, shape_words, margin_words, format_bytes, format_flops)
"""Functions that the template calls, by their names."""


def report_to_html(report: Report) -> str:
    """The whole page."""
    template = load_page()
    rows = layer_rows(report)
    parts = "\n".join(_read(f"{name}.js") for name in _SCRIPTS)
    style = _read("page.css")
    script = f'(function () {{\n"use strict";\n{parts}}})();\n'
    page = template.render(
        report=report,
        style=style,
        script=script,
        data=json_for_html(page_data(report, rows)),
        policy=_policy(style, script),
        facts=heading_facts(report),
        bounds=total_bounds(report),
        note=bound_note(report),
        kernels=kernel_counts(report),
        added=added_counts(report),
        rows=by_bound(rows)[:_ROWS_WITHOUT_SCRIPT],
        rows_left_out=max(0, len(rows) - _ROWS_WITHOUT_SCRIPT),
        **{format.__name__: format for format in _FORMATS},
    )
    return page + "\n"


@functools.cache
def load_page() -> jinja2.Template:
    """The page, compiled once: that takes longer than filling it."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.from_string(_read("page.html.jinja"))


def json_for_html(value: object) -> str:
    """JSON that cannot end the `<script>` element it is in, nor open a comment there."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    # Three passes: `str.translate` takes ten times as long.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _policy(style: str, script: str) -> str:
    """The content security policy: nothing but this style and this script, by their digests."""
    digests = (hashlib.sha256(text.encode()).digest() for text in (style, script))
    styles, scripts = (f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; style-src {styles}; script-src {scripts}; "
        "base-uri 'none'; form-action 'none'"
    )


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
