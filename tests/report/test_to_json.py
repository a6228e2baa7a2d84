from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.report.sample_detector import realistic_report
from tests.report.samples import HOSTILE, chain_report, small_report
from trtplug.document import from_json, to_json
from trtplug.errors import DocumentError
from trtplug.report.data import SCHEMA, Report


@pytest.mark.parametrize("make", [small_report, realistic_report, lambda: chain_report(20)])
def test_comes_back_as_it_was(make) -> None:
    assert from_json(Report, SCHEMA, to_json(make()), "r.json") == make()


def test_is_plain_json_in_the_order_of_the_fields() -> None:
    text = to_json(small_report())
    document = json.loads(text)
    assert text.endswith("}\n")
    assert text.isascii()
    assert list(document)[:4] == ["schema", "tool_version", "model", "target"]
    assert [x["index"] for x in document["layers"]] == [0, 1, 2, 3, 4, 5]
    assert document["layers"][2]["onnx_nodes"][0] == HOSTILE[0]
    assert document["layers"][5]["flops"] is None
    assert document["layers"][2]["bound_us"].keys() == {"rtx4090", "l4"}


def test_each_layer_has_a_line_so_that_documents_diff_well() -> None:
    text = to_json(small_report())
    changed = replace(small_report().layers[3], kernel="k", kernel_status="chosen")
    layers = (*small_report().layers[:3], changed, *small_report().layers[4:])
    other = to_json(replace(small_report(), layers=layers))
    pairs = zip(text.splitlines(), other.splitlines(), strict=True)
    assert sum(a != b for a, b in pairs) == 1


def test_writing_needs_no_pydantic() -> None:
    code = (
        "import sys\n"
        "from tests.report.samples import small_report\n"
        "from trtplug.document import to_json\n"
        "to_json(small_report())\n"
        "print(sorted({'pydantic', 'jinja2', 'rich', 'numpy', 'onnx'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def _document() -> dict:
    return json.loads(to_json(small_report()))


def test_what_may_be_none_may_be_absent_and_what_is_new_is_skipped() -> None:
    document = _document()
    for layer in document["layers"]:
        del layer["kernel"], layer["time_us"], layer["added"]
        layer["invented_later"] = {"x": [1]}
    document["invented_later"] = 1
    document["schema"] = "trtplug.report/1.7"
    report = from_json(Report, SCHEMA, json.dumps(document), "r.json")
    assert report.layers[2].time_us is None
    assert report.layers[2].added is None
    assert report.layers[2].name == small_report().layers[2].name


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("trtplug.report/2", "'trtplug.report/2', of major version 2; this trtplug reads major"),
        ("trtplug.manifest/1", "'trtplug.manifest/1', not 'trtplug.report/1'"),
        (None, "absent"),
        (7, "schema is 7"),
        ("x" * 500, "xxx..."),
    ],
)
def test_another_schema_is_refused_by_name(schema: object, words: str) -> None:
    document = _document() | {"schema": schema}
    with pytest.raises(DocumentError) as caught:
        from_json(Report, SCHEMA, json.dumps(document), "r.json")
    assert words in str(caught.value)
    assert str(caught.value).startswith("r.json is not a usable trtplug.report/1 document: ")
    assert len(str(caught.value)) < 250


BAD_FIELDS = {
    "a number for a name": lambda d: d["layers"][2].update(name=3),
    "text for a number": lambda d: d["layers"][2].update(flops="55296"),
    "an unknown status": lambda d: d["layers"][2].update(kernel_status="guessed"),
    "a missing name": lambda d: d["layers"][2].pop("name"),
    "an object for a list": lambda d: d.update(layers={}),
    "a list for an object": lambda d: d.update(model=[]),
    "null for a number": lambda d: d["totals"].update(layers=None),
    "no totals": lambda d: d.pop("totals"),
    "text for a bound": lambda d: d["layers"][2]["bound_us"].update(l4="fast"),
}


@pytest.mark.parametrize("name", BAD_FIELDS)
def test_bad_fields_are_refused_by_place(name: str) -> None:
    document = _document()
    BAD_FIELDS[name](document)
    with pytest.raises(DocumentError, match=r"layers|model|totals"):
        from_json(Report, SCHEMA, json.dumps(document), "r.json")


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "[" * 100_000, '{"a": NaN}', "\ufeff{}"])
def test_what_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(DocumentError):
        from_json(Report, SCHEMA, text, "r.json")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_damaged_document_is_read_or_refused_and_never_anything_else(data) -> None:
    text = to_json(small_report())
    start = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 20))
    damaged = text[:start] + data.draw(st.text(max_size=10)) + text[start + length :]
    with contextlib.suppress(DocumentError):
        from_json(Report, SCHEMA, damaged, "r.json")
