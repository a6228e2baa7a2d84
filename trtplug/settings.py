"""Settings: of the environment, which is read here alone, and lists of names as flags give them."""

from __future__ import annotations

import contextlib
import fnmatch
import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the environment may set; each variable is listed in docs/errors.md."""

    store: Path
    """`TRTPLUG_STORE`: folder of the store; the user's cache folder by default."""
    profiles: Path | None
    """`TRTPLUG_PROFILES`: folder of further GPU profiles, read after those that ship."""


def read_settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """Settings from the environment; an empty value counts as unset."""
    store = environ.get("TRTPLUG_STORE", "")
    profiles = environ.get("TRTPLUG_PROFILES", "")
    return Settings(
        store=Path(store) if store else _default_store(),
        profiles=Path(profiles) if profiles else None,
    )


def log_file(environ: Mapping[str, str] = os.environ) -> Path | None:
    """`TRTPLUG_LOG`: the file that gets all log lines; None where it is not set."""
    name = environ.get("TRTPLUG_LOG", "")
    return Path(name) if name else None


def wants_traceback(environ: Mapping[str, str] = os.environ) -> bool:
    """`TRTPLUG_TRACEBACK`: whether a fault of trtplug's shows its traceback."""
    return bool(environ.get("TRTPLUG_TRACEBACK", ""))


def _default_store() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("trtplug", appauthor=False)) / "store"


_PACKAGE = Path(__file__).resolve().parent


def resource_folder(name: str) -> Path:
    """The folder `profiles` or `plugins`.

    In a wheel they ship inside the package, under `trtplug/_resources/`; in a checkout they lie
    at the top level, beside the package.
    """
    shipped = _PACKAGE / "_resources" / name
    return shipped if shipped.is_dir() else _PACKAGE.parent / name


_FOLDER = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)\.dist-info")
"""Source: packaging.python.org, "Recording installed projects"."""


def installed_version(*names: str) -> str | None:
    """Version of the first of some distributions that is on `sys.path`, by pip's name of it.

    None where all are missing. One that lies earlier on the path comes first.
    """
    wanted = [_normal(name) for name in names]
    for folder in sys.path:
        there: dict[str, str] = {}
        with contextlib.suppress(OSError):  # an archive, or nothing at all
            for entry in os.listdir(folder or "."):  # noqa: PTH208 - pathlib would wrap each name
                found = _FOLDER.fullmatch(entry)
                if found:
                    there.setdefault(_normal(found["name"]), found["version"])
        for name in wanted:
            if name in there:
                return there[name]
    return None


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def matches_any(name: str, globs: Sequence[str]) -> bool:
    """Whether a name is one of these, letter by letter or as a glob.

    Names of nodes may hold brackets, which a glob takes for a set of characters: `conv[0]` is to
    find the node that is called so.
    """
    return any(name == glob or fnmatch.fnmatchcase(name, glob) for glob in globs)


def as_flag(items: Iterable[str], separator: str = ", ") -> str:
    """A list as one text, such that no two lists have the same text.

    An item that holds the separator, or that looks quoted, is written as a JSON string.
    """
    return separator.join(
        json.dumps(item, ensure_ascii=False)
        if separator.strip() in item or item.startswith('"')
        else item
        for item in items
    )


def from_flag(text: str, separator: str = ", ") -> tuple[str, ...]:
    """The inverse of `as_flag`; an empty text is an empty list.

    Raises:
        ValueError: no `as_flag` wrote that text.
    """
    items, rest = [], text
    while rest:
        if rest.startswith('"'):
            item, end = json.JSONDecoder().raw_decode(rest)
            after = rest[end:]
            if after and not after.startswith(separator):
                raise ValueError(f"no separator after a quoted item: {text!r}")
            rest = after.removeprefix(separator)
        else:
            item, _, rest = rest.partition(separator)
        items.append(item)
    return tuple(items)
