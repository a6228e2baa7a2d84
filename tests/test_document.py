"""Documents: written, read back, and refused in words when they are of another make or damaged."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtplug.document import from_json, from_own_json, read_document, schema_name, to_json
from trtplug.errors import DocumentError
from trtplug.files import LARGEST_DOCUMENT

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = "trtplug.sample/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    name: str
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    schema: str
    parts: tuple[Part, ...]
    flags: Mapping[str, str]
    ratio: float
    first: Part | None
    words: tuple[str, ...]


PARTS = st.builds(Part, name=st.text(), size=st.none() | st.integers(-(2**63), 2**63 - 1))
SAMPLES = st.builds(
    Sample,
    schema=st.just(SCHEMA),
    parts=st.lists(PARTS, max_size=3).map(tuple),
    flags=st.dictionaries(st.text(), st.text(), max_size=3),
    ratio=st.floats(allow_nan=False, allow_infinity=False),
    first=st.none() | PARTS,
    words=st.lists(st.text(), max_size=3).map(tuple),
)
SAMPLE = Sample(
    schema=SCHEMA, parts=(Part(name="a"),), flags={"k": "v"}, ratio=1.5, first=None, words=("w",)
)


def read(text: str) -> Sample:
    return from_json(Sample, SCHEMA, text, "sample.json")


def spoil(**fields: object) -> str:
    return json.dumps({**json.loads(to_json(SAMPLE)), **fields})


@given(SAMPLES)
def test_document_reads_back(sample: Sample):
    text = to_json(sample)
    assert text.isascii()
    assert text.endswith("}\n")
    assert read(text) == sample
    assert from_own_json(Sample, text) == sample


def test_a_line_for_each_field_and_each_record():
    text = to_json(Sample(**{**{f: getattr(SAMPLE, f) for f in Sample.__slots__},
                             "parts": (Part(name="a"), Part(name="b"))}))  # fmt: skip
    assert '{"name": "a", "size": null},\n' in text


def test_fields_of_a_later_minor_version_are_skipped():
    assert read(spoil(schema="trtplug.sample/1.4", novelty=[1])).parts == SAMPLE.parts


def test_field_that_may_be_none_may_be_absent():
    raw = json.loads(to_json(SAMPLE))
    del raw["first"], raw["parts"][0]["size"]
    assert read(json.dumps(raw)) == SAMPLE


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no JSON"),
        ("{", "no JSON"),
        ("[]", "holds a list"),
        ("1", "holds a int"),
        ("{}", "schema is absent"),
        ("[" * 200_000, "nested too deeply"),
        (spoil(schema="trtplug.other/1"), "'trtplug.other/1', not 'trtplug.sample/1'"),
        (spoil(schema="trtplug.sample/2"), "major version 2; this trtplug reads major version 1"),
        (spoil(schema="trtplug.sample"), "not 'trtplug.sample/1'"),
        (spoil(schema=["x"] * 9999), "..."),
        (spoil(ratio="1.5"), "ratio: "),
        (spoil(parts=[{"name": 1}]), "parts.0.name: "),
        (spoil(parts={}), "parts: "),
        (spoil(words=[None]), "words.0: "),
        (spoil(flags=[]), "flags: "),
        (spoil(first=[]), "first"),
        (to_json(SAMPLE).replace("1.5", "NaN"), "NaN"),
        (to_json(SAMPLE).replace("1.5", "1e999"), "number"),
        (to_json(SAMPLE).replace("1.5", "9" * 5000), ""),
    ],
)
def test_damage_is_named(text: str, words: str):
    with pytest.raises(DocumentError) as caught:
        read(text)
    assert words in caught.value.message
    assert caught.value.message.startswith("sample.json is not a usable trtplug.sample/1 document")
    assert len(caught.value.message) < 1000


@given(data=st.data())
def test_any_change_of_the_text_reads_or_is_a_document_error(data: st.DataObject):
    text = to_json(SAMPLE)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 8)))
    changed = text[:start] + data.draw(st.text(max_size=4)) + text[end:]
    try:
        read(changed)
    except DocumentError:
        return


def test_file_is_read_or_refused(tmp_path: Path):
    file = tmp_path / "sample.json"
    file.write_text(to_json(SAMPLE))
    assert read_document(Sample, SCHEMA, file) == SAMPLE
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(DocumentError, match="not UTF-8"):
        read_document(Sample, SCHEMA, file)
    with pytest.raises(DocumentError, match="no such file"):
        read_document(Sample, SCHEMA, tmp_path / "nowhere")
    with pytest.raises(DocumentError, match="it is a folder"):
        read_document(Sample, SCHEMA, tmp_path)
    with pytest.raises(DocumentError, match="name too long"):
        read_document(Sample, SCHEMA, tmp_path / ("x" * 300))


def test_huge_file_is_not_read(tmp_path: Path):
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(LARGEST_DOCUMENT + 1)
    with pytest.raises(DocumentError, match="at most 268435456 are read"):
        read_document(Sample, SCHEMA, tmp_path / "huge")


def test_what_is_not_a_regular_file_is_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("fifo", "zero"):
        with pytest.raises(DocumentError, match="not a regular file"):
            read_document(Sample, SCHEMA, tmp_path / name)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"schema": 1}', "[" * 200_000, "null"])
def test_text_without_a_schema(text: str):
    assert schema_name(text) is None


def test_schema_of_a_document():
    assert schema_name(to_json(SAMPLE)) == SCHEMA


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": 1, "more": 2}', "[" * 200_000, "null", '{"parts": [1]}']
)
def test_own_text_that_is_not_ours_after_all(text: str):
    with pytest.raises(ValueError, match=r"Sample|Expecting|recursion"):
        from_own_json(Sample, text)
