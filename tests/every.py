"""One test over many cases: all of them run, and the failure names each that failed."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, TypeVar

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")


def check_every(
    cases: Iterable[T], check: Callable[[T], object], name: Callable[[T], object] = str
) -> None:
    """Calls `check` with each case; at least one case is wanted.

    Args:
        cases: what `check` takes.
        check: fails as a test does.
        name: how the failure calls a case.
    """
    failed, count = [], 0
    for case in cases:
        count += 1
        try:
            check(case)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001
            last = traceback.extract_tb(error.__traceback__)[-1]
            failed.append(f"{name(case)}: {last.filename}:{last.lineno}: {error!r}")
    assert count, "there is no case"
    if failed:
        pytest.fail(f"{len(failed)} of {count} failed:\n" + "\n".join(failed), pytrace=False)
