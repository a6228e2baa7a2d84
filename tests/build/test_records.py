"""The records of one build: each says its own things once."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import itertools
import pkgutil
import sys

from trtplug.backends.backend import Outcome
from trtplug.backends.request import BuildRequest
from trtplug.build.command import BuildCommand
from trtplug.build.context import BuildContext
from trtplug.plan import Plan, PlannedTarget
from trtplug.report.make import ReportInputs

MOST_SHARED = 5


def names(record: type) -> set[str]:
    return {f.name for f in dataclasses.fields(record)}


def records() -> set[type]:
    """Those that a build passes on, and every other one that its modules define."""
    found = {BuildCommand, BuildContext, BuildRequest, Outcome, Plan, PlannedTarget, ReportInputs}
    for info in pkgutil.iter_modules(sys.modules["trtplug.build"].__path__, "trtplug.build."):
        for _, kind in inspect.getmembers(importlib.import_module(info.name), inspect.isclass):
            if dataclasses.is_dataclass(kind) and kind.__module__ == info.name:
                found.add(kind)
    return found


def test_no_record_of_a_build_copies_more_than_five_fields_of_another():
    for one, other in itertools.combinations(records(), 2):
        shared = names(one) & names(other)
        assert len(shared) <= MOST_SHARED, (one.__name__, other.__name__, sorted(shared))
