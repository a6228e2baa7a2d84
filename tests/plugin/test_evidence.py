"""Measurements of sites: read strictly, found by problem and GPU, judged beyond their spread."""

from __future__ import annotations

import json
from dataclasses import fields

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kernels.problems import problem, problems
from trtplug.errors import DocumentError, FileUnreadableError
from trtplug.plugin.evidence import (
    NO_EVIDENCE,
    SCHEMA,
    SiteMeasurement,
    problem_digest,
    read_evidence,
)

GPU = "NVIDIA H200"
SITE = problem((1, 64, 56, 56), 64)


def measured(**changed) -> dict[str, object]:
    """A line in which the plugin wins."""
    given = {
        "schema": SCHEMA,
        "problem_sha256": problem_digest(SITE),
        "gpu": GPU,
        "driver": "580.95.05",
        "backend_version": "11.4.0.106",
        "plugin_us": [10.0, 11.0, 12.0],
        "reformat_us": [1.0, 1.0],
        "native_us": [20, 21.0, 22.0],
    }
    return {k: v for k, v in {**given, **changed}.items() if v is not None}


def write(path, *lines):
    path.write_text("\n\n".join(json.dumps(line) for line in lines) + "\n")
    return path


def one(**changed) -> SiteMeasurement:
    values = measured(**changed)
    return SiteMeasurement(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()})


def test_every_field_is_read(tmp_path):
    file = write(tmp_path / "e.jsonl", measured(tactic="igemm_64x64x64_s2"))
    (line,) = read_evidence(file).measurements
    assert {f.name for f in fields(line)} == {*measured(), "tactic"}
    assert line.native_us == (20, 21, 22)
    assert line.samples == (3, 3)
    assert (line.with_plugin_us, line.without_us) == (12.0, 21.0)
    assert line.tactic == "igemm_64x64x64_s2"


def test_no_file_is_no_evidence():
    assert read_evidence(None) is NO_EVIDENCE
    assert NO_EVIDENCE.find(SITE, GPU) is None


def test_a_line_is_found_by_problem_and_gpu_and_the_last_one_counts(tmp_path):
    lines = (measured(plugin_us=[30.0]), measured(gpu="NVIDIA L4"), measured(plugin_us=[1.0]))
    evidence = read_evidence(write(tmp_path / "e.jsonl", *lines))
    found = evidence.find(SITE, GPU)
    assert found is not None
    assert found.plugin_us == (1.0,)
    assert evidence.find(SITE, "NVIDIA H100") is None
    # Another batch is another problem.
    assert evidence.find(problem((2, 64, 56, 56), 64), GPU) is None


def test_a_file_that_grew_for_years_is_read_in_one_go(tmp_path, monkeypatch: pytest.MonkeyPatch):
    """20,000 lines took half a minute: what pydantic makes of the kind was made for each."""
    made = []
    adapter = pydantic.TypeAdapter
    monkeypatch.setattr(pydantic, "TypeAdapter", lambda kind: made.append(kind) or adapter(kind))
    file = write(tmp_path / "e.jsonl", *([measured()] * 500), measured(plugin_us=[3.0]))
    evidence = read_evidence(file)
    assert made == [SiteMeasurement]
    (kept,) = evidence.measurements
    assert kept.plugin_us == (3.0,)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"schema": "trtplug.site-measurement/2"}, "major version 2"),
        ({"schema": "trtplug.report/1"}, "its schema is 'trtplug.report/1'"),
        ({"native_us": None}, "native_us: Field required"),
        ({"plugin_us": 3.0}, "plugin_us"),
        ({"plugin_us": ["3"]}, "plugin_us.0"),
        ({"plugin_us": []}, "plugin_us has no samples"),
        ({"native_us": []}, "native_us has no samples"),
        ({"native_us": [0]}, "native_us holds a sample that is not above 0"),
        ({"reformat_us": [-1.5]}, "reformat_us holds a sample that is not above 0"),
        ({"problem_sha256": "ABC"}, "is no SHA-256"),
        ({"gpu": " "}, "gpu is empty"),
        ({"driver": 580}, "driver"),
    ],
)
def test_a_line_that_is_none_is_named_by_its_number(tmp_path, changed, words):
    file = write(tmp_path / "e.jsonl", measured(), {**measured(), **changed})
    if changed.get("native_us", ...) is None:
        file = write(tmp_path / "e.jsonl", measured(), measured(native_us=None))
    with pytest.raises(DocumentError) as refused:
        read_evidence(file)
    assert f"{file}:3 is not a usable {SCHEMA} document" in refused.value.message
    assert words in refused.value.message


@pytest.mark.parametrize("text", ["no json", "[1]", '{"schema": NaN}', "{" * 5000])
def test_what_is_no_json_object_is_refused(tmp_path, text):
    (tmp_path / "e.jsonl").write_text(text)
    with pytest.raises(DocumentError):
        read_evidence(tmp_path / "e.jsonl")


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(FileUnreadableError):
        read_evidence(tmp_path / "nowhere")
    (tmp_path / "e.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(FileUnreadableError, match="UTF-8"):
        read_evidence(tmp_path / "e.jsonl")


def test_reformats_count_and_the_spread_does():
    assert one().plugin_wins
    assert not one(reformat_us=[12.0]).plugin_wins
    # Faster in the median, not beyond the spread.
    wide = one(plugin_us=[10.0, 19.0, 40.0], reformat_us=[])
    assert wide.with_plugin_us < wide.without_us
    assert not wide.plugin_wins
    assert one(plugin_us=[19.9], reformat_us=[], native_us=[20.0]).plugin_wins
    assert not one(plugin_us=[20.0], reformat_us=[], native_us=[20.0]).plugin_wins


times = st.lists(st.floats(0.1, 1e6), min_size=1, max_size=9)


@given(times, st.lists(st.floats(0.1, 1e6), max_size=9), times)
def test_a_winner_has_the_smaller_median_and_loses_the_other_way_round(plugin, reformats, native):
    line = one(plugin_us=plugin, reformat_us=reformats, native_us=native)
    if line.plugin_wins:
        assert line.with_plugin_us < line.without_us
        assert not one(plugin_us=native, reformat_us=[], native_us=plugin).plugin_wins


@given(problems(), problems())
def test_problems_have_one_digest_where_they_are_equal(first, second):
    assert (problem_digest(first) == problem_digest(second)) == (first == second)
