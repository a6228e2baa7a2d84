"""A report as a JSON document, and back."""

from __future__ import annotations

from trtplug.document import from_json, to_json
from trtplug.report.report import SCHEMA, Report


def report_to_json(report: Report) -> str:
    """The document, see `trtplug.document.to_json`."""
    return to_json(report)


def report_from_json(text: str, path: str) -> Report:
    """The inverse of `report_to_json`; `path` is for messages only.

    Raises:
        DocumentError: no JSON, another schema, another major version, or fields that do not fit.
    """
    return from_json(Report, SCHEMA, text, path)
