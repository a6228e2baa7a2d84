"""Documents: frozen dataclasses as JSON with a `schema` field, and back.

Writing uses the standard library alone, since every build writes; reading checks with pydantic,
since a document may come from anywhere.
"""

from __future__ import annotations

import dataclasses
import json
import re
import types
import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from trtplug.errors import DocumentError, FileUnreadableError
from trtplug.files import read_text

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import ValidationError

T = TypeVar("T")

_SCHEMA = re.compile(r"(?P<name>[\w.-]{1,80})/(?P<major>\d{1,9})(?:\.\d{1,9})*", re.ASCII)
_PROBLEMS_SHOWN = 5


def to_json(document: object) -> str:
    """A document: one line for each field, and for each record of a list, so that it diffs well.

    In the order of the fields, ASCII only, ends with a newline.
    """
    encoder = json.JSONEncoder(default=_plain, allow_nan=False)
    lines = (
        f"{encoder.encode(name)}: {_field(encoder, value)}"
        for name, value in _plain(document).items()
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


def from_json(kind: type[T], schema: str, text: str, path: str) -> T:
    """The inverse of `to_json`.

    Fields that it does not know are skipped: a later minor version may add some. A field that may
    be None may also be absent.

    Args:
        kind: the dataclass.
        schema: such as `trtplug.report/1`.
        text: the document.
        path: where it came from, for messages only.

    Raises:
        DocumentError: no JSON, another schema, another major version, or fields that do not fit.
    """
    return Reader(kind, schema).read(text, path)


def read_document(kind: type[T], schema: str, file: Path) -> T:
    """The document in a file.

    Raises:
        DocumentError: as `from_json`, and where the file cannot be read.
    """
    try:
        text = read_text(file)
    except FileUnreadableError as error:
        raise DocumentError(path=str(file), wanted=schema, problem=error.problem) from error
    return from_json(kind, schema, text, str(file))


def from_own_json(kind: type[T], text: str | bytes) -> T:
    """As `from_json` for a text that this program wrote, its digest checked: without pydantic.

    Raises:
        ValueError: it is not such a text after all.
    """
    try:
        document = json.loads(text)
        if not isinstance(document, dict):
            raise ValueError(f"no {kind.__name__}: no object")
        made: T = _Maker().make(document, kind)
        return made
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"no {kind.__name__}: {error}") from error


def schema_name(text: str) -> str | None:
    """The `schema` that a JSON text states; None where it is no document."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    name = document.get("schema") if isinstance(document, dict) else None
    return name if isinstance(name, str) else None


def _field(encoder: json.JSONEncoder, value: object) -> str:
    # The encoder's C code runs only without `indent`: lines are broken here, at records.
    if isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
        return "[\n" + ",\n".join(map(encoder.encode, value)) + "\n]"
    return encoder.encode(value)


def _plain(value: object) -> dict[str, object]:
    """A dataclass or Mapping as a dict, one level deep: `asdict` would copy each level, slowly."""
    if isinstance(value, Mapping):
        return dict(value)
    if dataclasses.is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    raise AssertionError(f"a document holds a {type(value).__name__}")


class Reader(Generic[T]):
    """Reads many texts of one kind: what pydantic makes of the kind, it makes once."""

    def __init__(self, kind: type[T], schema: str) -> None:
        import pydantic

        self._schema = schema
        self._kind = kind
        self._filler = _Filler()
        self._adapter = pydantic.TypeAdapter(kind)

    def read(self, text: str, path: str) -> T:
        """As `from_json`."""
        place = _Place(self._schema, path)
        document = place.load(text)
        place.check_schema(document.get("schema"))
        return self._validate(document, place)

    def _validate(self, document: dict[str, Any], place: _Place) -> T:
        import pydantic

        try:
            # JSON mode, since strict Python mode would want tuples where JSON has arrays.
            text = json.dumps(self._filler.record(document, self._kind), allow_nan=False)
            return self._adapter.validate_json(text, strict=True)
        except pydantic.ValidationError as error:
            raise place.bad(_problems(error)) from error
        except ValueError as error:
            raise place.bad(f"a number is too large: {error}") from error
        except RecursionError:
            raise place.bad("it is nested too deeply") from None


@dataclasses.dataclass(frozen=True, slots=True)
class _Place:
    """Where one text came from; every refusal names it and the schema wanted."""

    schema: str
    path: str

    def load(self, text: str) -> dict[str, Any]:
        try:
            document = json.loads(text, parse_constant=_refuse_constant)
        except RecursionError:
            raise self.bad("it is nested too deeply") from None
        except ValueError as error:
            raise self.bad(f"it is no JSON: {error}") from error
        if not isinstance(document, dict):
            raise self.bad(f"it holds a {type(document).__name__} where an object was wanted")
        return document

    def check_schema(self, stated: object) -> None:
        name, _, major = self.schema.partition("/")
        match = _SCHEMA.fullmatch(stated) if isinstance(stated, str) else None
        if match is None or match["name"] != name:
            raise self.bad(f"its schema is {_short(stated)}, not {self.schema!r}")
        if match["major"] != major:
            raise self.bad(
                f"its schema is {stated!r}, of major version {match['major']}; "
                f"this trtplug reads major version {major} ({self.schema!r})"
            )

    def bad(self, problem: str) -> DocumentError:
        return DocumentError(path=self.path, wanted=self.schema, problem=problem)


def _refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is no JSON number")


def _problems(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [f"{'.'.join(map(str, e['loc'])) or 'document'}: {e['msg']}" for e in found]
    more = len(lines) - _PROBLEMS_SHOWN
    tail = [f"and {more} more"] if more > 0 else []
    return "; ".join([*lines[:_PROBLEMS_SHOWN], *tail])


def _short(value: object) -> str:
    text = "absent" if value is None else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


class _Filler:
    """Gives None to each absent field that may be None, on every level.

    What does not have the expected form is left as it is, for the validation to refuse. The
    type hints of each class are resolved once: that is slow, and records are many.
    """

    def __init__(self) -> None:
        self.hints: dict[type, dict[str, object]] = {}

    def record(self, document: dict[str, Any], kind: type) -> dict[str, Any]:
        hints = self.hints.get(kind) or self.hints.setdefault(kind, typing.get_type_hints(kind))
        filled = dict(document)
        for name, hint in hints.items():
            if name in document:
                filled[name] = self.value(document[name], hint)
            elif types.NoneType in typing.get_args(hint):
                filled[name] = None
        return filled

    def value(self, value: object, hint: object) -> object:
        if isinstance(value, dict):
            kinds = [h for h in (hint, *typing.get_args(hint)) if dataclasses.is_dataclass(h)]
            return self.record(value, typing.cast("type", kinds[0])) if kinds else value
        if isinstance(value, list) and (item := _item_hint(hint)) is not None:
            return [self.value(v, item) for v in value]
        return value


def _item_hint(hint: object) -> object | None:
    """`X` of `tuple[X, ...]`, or of its union with None; None for any other hint."""
    for each in (hint, *typing.get_args(hint)):
        if typing.get_origin(each) is tuple:
            item: object = typing.get_args(each)[0]
            return item
    return None


class _Maker:
    """Makes dataclasses from JSON values by their type hints; checks nothing but their fields."""

    def __init__(self) -> None:
        self.hints: dict[type, dict[str, Any]] = {}

    def make(self, value: Any, hint: Any) -> Any:  # noqa: ANN401 - JSON
        if value is None:
            return None
        if isinstance(value, list):
            item = _item_hint(hint)
            return tuple(self.make(v, item) for v in value)
        if isinstance(value, dict):
            kinds = [h for h in (hint, *typing.get_args(hint)) if dataclasses.is_dataclass(h)]
            return self.record(value, kinds[0]) if kinds else value
        return value

    def record(self, value: dict[str, Any], kind: Any) -> Any:  # noqa: ANN401 - JSON
        hints = self.hints.get(kind) or self.hints.setdefault(kind, typing.get_type_hints(kind))
        return kind(**{name: self.make(v, hints[name]) for name, v in value.items()})
