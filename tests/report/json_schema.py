"""The JSON Schema of `report.json`, made from the dataclasses and their docstrings.

`trtplug/report/schema/report-1.json` is what `report_schema_text` gives; `python -m
tests.report.json_schema` writes it anew.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import trtplug.report.data as data

SCHEMA_FILE = Path(data.__file__).with_name("schema") / "report-1.json"


def report_schema() -> dict[str, Any]:
    """The schema of the documents of a `Report`.

    Every field is required, since every field is written; further ones are allowed, since a minor
    version may add some.
    """
    import pydantic

    schema = pydantic.TypeAdapter(data.Report).json_schema()
    _drop_titles(schema)
    docs = _docs()
    for name, definition in (("Report", schema), *schema["$defs"].items()):
        definition["description"], fields = docs[name]
        for field, description in fields.items():
            definition["properties"][field]["description"] = description
    schema["properties"]["schema"] = {"const": data.SCHEMA}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": data.SCHEMA,
        **schema,
    }


def report_schema_text() -> str:
    """The text of the published file."""
    return json.dumps(report_schema(), indent=2, sort_keys=True) + "\n"


def _drop_titles(node: object) -> None:
    """Pydantic derives titles from field names, and they say nothing more."""
    if isinstance(node, dict):
        # A field may itself be called `title`; its value is then a dict.
        if isinstance(node.get("title"), str):
            del node["title"]
        for value in node.values():
            _drop_titles(value)
    elif isinstance(node, list):
        for value in node:
            _drop_titles(value)


def _docs() -> dict[str, tuple[str, dict[str, str]]]:
    """Class -> its docstring, and the string under each field.

    From the source, since pydantic's versions differ in what they take over.
    """
    tree = ast.parse(Path(data.__file__).read_text(encoding="utf-8"))
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef))
    return {
        c.name: (" ".join((ast.get_docstring(c) or "").split()), _docs_below_fields(c))
        for c in classes
    }


def _docs_below_fields(definition: ast.ClassDef) -> dict[str, str]:
    docs = {}
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                docs[name] = " ".join(text.split())
            case _:
                pass
    return docs


if __name__ == "__main__":
    SCHEMA_FILE.write_text(report_schema_text(), encoding="utf-8")
