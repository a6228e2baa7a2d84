"""trtplug.toml: the options of `trtplug build`, for pipelines. The command line overrides it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from trtplug.backends.options import LISTS
from trtplug.cli.build_options import MODEL, OPTIONS
from trtplug.cli.options import did_you_mean
from trtplug.cli.removed_options import removed_option_advice
from trtplug.errors import ConfigError, FileUnreadableError
from trtplug.files import read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from trtplug.backends.options import Kind, Option

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_TYPES: dict[Kind, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(LISTS, ((list,), "a list of strings")),
    **dict.fromkeys(("flag", "switch"), ((bool,), "true or false")),
    "integer": ((int,), "an integer"),
    "number": ((int, float), "a number"),
}
"""Kind of option -> the types of its value in TOML, and their name; all others are strings."""


def read_config(file: Path, options: Iterable[Option] = OPTIONS) -> dict[str, Any]:
    """The table `[build]` of a file; relative paths in it are relative to the file's folder.

    Raises:
        ConfigError: it cannot be read, is not TOML, or has an unknown key or a bad value.
    """
    rows = {row.key: row for row in (MODEL, *options) if row.in_config}
    try:
        document = tomllib.loads(read_text(file))
    except FileUnreadableError as error:
        raise ConfigError(file=str(file), problem=error.problem) from error
    except (ValueError, RecursionError) as error:
        # ValueError: not TOML, or a number of thousands of digits.
        raise ConfigError(file=str(file), problem=str(error)) from error
    for key in document:
        if key != "build":
            raise ConfigError(file=str(file), problem=f"unknown table or key {key!r}; use [build]")
    table = document.get("build", {})
    if not isinstance(table, dict):
        raise ConfigError(file=str(file), problem="build must be a table: [build]")
    for key, value in table.items():
        if problem := _problem(key, value, rows):
            raise ConfigError(file=str(file), problem=problem)
    return {key: _placed(rows[key], value, file) for key, value in table.items()}


def _problem(key: str, value: Any, rows: Mapping[str, Option]) -> str:  # noqa: ANN401 - a TOML value
    """What is wrong with a key of `[build]`; empty if nothing is."""
    if key not in rows:
        if advice := removed_option_advice(key):
            return f"build.{key} {advice}"
        near = did_you_mean(key, rows) or f"; known are {', '.join(sorted(rows))}"
        return f"unknown key {key!r} in [build]{near}"
    row = rows[key]
    types, wanted = _TYPES.get(row.kind, ((str,), "a string"))
    # In Python True is an int; in TOML it is not.
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        return f"build.{key} must be {wanted}, not {value!r}"
    if isinstance(value, list) and not all(isinstance(v, str) for v in value):
        return f"build.{key} must be {wanted}, not {value!r}"
    return _text_problem(key, value) or _range_problem(key, value, row)


def _text_problem(key: str, value: object) -> str:
    texts = [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, str)]
    if any("\0" in text for text in texts):
        return f"build.{key} holds a NUL character"
    if not all(text.strip() for text in texts):
        return f"build.{key} is empty, or holds an empty text"
    return ""


def _range_problem(key: str, value: Any, row: Option) -> str:  # noqa: ANN401 - a TOML value
    if row.choices and value.lower() not in row.choices:
        return f"build.{key} must be one of {', '.join(row.choices)}, not {value!r}"
    # Written so that nan is refused.
    if row.bounds is not None and not row.bounds[0] <= value <= row.bounds[1]:
        return f"build.{key} must be {row.bounds[0]} to {row.bounds[1]}, not {value!r}"
    return ""


def _placed(row: Option, value: Any, file: Path) -> Any:  # noqa: ANN401 - a TOML value
    match row.kind:
        case "path":
            return file.parent / value
        case "libraries":
            return tuple(file.parent / v for v in value)
        case "choice":
            return value.lower()
        case _:
            return tuple(value) if isinstance(value, list) else value
