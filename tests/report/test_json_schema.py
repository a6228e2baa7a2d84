from __future__ import annotations

import copy
import json

import jsonschema
import pytest

from tests.report.json_schema import SCHEMA_FILE, report_schema, report_schema_text
from tests.report.sample_detector import realistic_report
from tests.report.samples import chain_report, small_report
from tests.report.test_to_json import BAD_FIELDS
from trtplug.document import to_json


@pytest.fixture(scope="module")
def published() -> dict:
    return json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def validator(published: dict) -> jsonschema.Validator:
    return jsonschema.Draft202012Validator(published)


def test_the_published_schema_is_the_one_of_the_dataclasses() -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == report_schema_text()


def test_is_a_schema(published: dict) -> None:
    jsonschema.Draft202012Validator.check_schema(published)


@pytest.mark.parametrize("make", [small_report, realistic_report, lambda: chain_report(3)])
def test_reports_are_valid(make, validator: jsonschema.Validator) -> None:
    validator.validate(json.loads(to_json(make())))


@pytest.mark.parametrize("name", BAD_FIELDS)
def test_damaged_reports_are_not(name: str, validator: jsonschema.Validator) -> None:
    document = json.loads(to_json(small_report()))
    BAD_FIELDS[name](document)
    assert not validator.is_valid(document)


def test_every_field_is_required_and_may_not_become_anything(
    validator: jsonschema.Validator,
) -> None:
    document = json.loads(to_json(small_report()))
    for key in document:
        assert not validator.is_valid({k: v for k, v in document.items() if k != key}), key
        assert not validator.is_valid(document | {key: 1.5}), key
    for key in document["layers"][2]:
        changed = copy.deepcopy(document)
        del changed["layers"][2][key]
        assert not validator.is_valid(changed), key


def test_fields_are_described_where_the_dataclass_describes_them() -> None:
    layer = report_schema()["$defs"]["ReportLayer"]
    assert layer["description"] == "One layer of the engine."
    assert "roofline" in layer["properties"]["bound_us"]["description"]
    assert report_schema()["properties"]["schema"] == {"const": "trtplug.report/1"}
