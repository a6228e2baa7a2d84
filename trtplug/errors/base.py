"""What every error has: a stable code, an exit status, a message and a hint.

An error class takes fields, not a sentence, and writes its own message: what, where, got, wanted.
All of them survive `pickle`, since builds run in child processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: bool) -> Any:  # noqa: ANN401
        """Of interest to type checkers only."""
        return lambda cls: cls


DONE = 0
"""Everything asked for was done."""
GATE_FAILED = 1
"""Done, but a gate failed: slower, inaccurate, differs from the manifest."""
BAD_INPUT = 2
"""Wrong use, or input that cannot be used."""
BUILD_FAILED = 3
"""At least one build failed."""
MACHINE_LACKS = 4
"""This machine lacks something that the command needs."""
FAULT = 70
"""A fault of trtplug's own."""
INTERRUPTED = 130
"""Stopped by Ctrl-C or SIGTERM."""


@dataclass_transform(eq_default=False)
class TrtplugError(Exception):
    """Base of all errors that trtplug raises on purpose.

    A subclass annotates its fields as a dataclass does, and is made like one. It is none: making
    thirty dataclasses takes longer than parsing a command line.
    """

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = FAULT

    def __init__(self, *values: object, **named: object) -> None:
        given = {**dict(zip(self.fields(), values, strict=False)), **named}
        for name in self.fields():
            if name in given:
                setattr(self, name, given.pop(name))
            elif not hasattr(self, name):
                raise TypeError(f"{type(self).__name__} wants {name}")
        if given or len(values) > len(self.fields()):
            raise TypeError(f"{type(self).__name__} does not take {sorted(given)}")

    @classmethod
    def fields(cls) -> tuple[str, ...]:
        """Names of the fields, in order."""
        return tuple(n for n, kind in cls.__annotations__.items() if "ClassVar" not in str(kind))

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild from the fields: the default would call `__init__` with the joined message."""
        return _rebuild, (type(self), {name: getattr(self, name) for name in self.fields()})

    @property
    def message(self) -> str:
        """One or more lines: what went wrong, where, got and wanted."""
        raise AssertionError(f"{type(self).__name__} does not write its message")

    @property
    def hint(self) -> str:
        """What to do about it; empty where the message says it."""
        return ""

    def __str__(self) -> str:
        return self.message


def _rebuild(cls: type[TrtplugError], values: dict[str, Any]) -> TrtplugError:
    return cls(**values)


def error_to_plain(error: TrtplugError) -> dict[str, Any]:
    """The error as JSON can hold it, to cross into another process."""
    return {"code": error.code} | {name: getattr(error, name) for name in error.fields()}


def error_from_plain(plain: Mapping[str, Any]) -> TrtplugError:
    """The inverse of `error_to_plain`."""
    (cls,) = (c for c in every_error() if c.code == plain["code"])
    return cls(**{name: plain[name] for name in cls.fields()})


def every_error() -> tuple[type[TrtplugError], ...]:
    """All concrete error classes of the package, in order of their code."""

    def below(cls: type[TrtplugError]) -> list[type[TrtplugError]]:
        return [c for s in cls.__subclasses__() for c in (s, *below(s))]

    return tuple(sorted(below(TrtplugError), key=lambda c: c.code))
