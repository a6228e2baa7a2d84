"""Globs over names, and lists of them as the text of a flag."""

from __future__ import annotations

import fnmatch
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


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
