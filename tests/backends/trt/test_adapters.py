"""Every attribute and call in the adapters, against the capability table and the real bindings."""

from __future__ import annotations

import pytest

from tests.backends.trt.uses import (
    ADAPTERS,
    PLUGINS,
    RECEIVERS,
    Use,
    adapter_source,
    enum_lookups,
    untyped_parameters,
    uses_of,
)
from tests.bindings.versions import VERSIONS, Bindings, bindings
from trtplug.backends.options import TrtOptions, options_of
from trtplug.backends.trt.capabilities import CAPABILITIES, find_capability
from trtplug.backends.trt.options import _OWN_OPTION, FREE_FLAGS

ROWS = tuple(options_of(TrtOptions).values())
SET = {name for row in ROWS for name in (row.sets, *row.sets_by_value.values()) if name}
"""What the rows of the options set, by name: `trt/config.py` need not say it again."""
ENUMS = {row.enum for row in ROWS if row.enum}


def all_uses() -> list[Use]:
    code = [use for name in ADAPTERS for use in uses_of(adapter_source(name), name)]
    return code + [
        Use(name, "options", find_capability(name).parameters is None and "Config" in name, None)
        for name in sorted(SET)
    ]


def problem(use: Use, release: str, real: Bindings) -> str:
    """What is wrong with a use in a release; empty where nothing is."""
    row = find_capability(use.name)
    if row is None:
        return "has no row in the capability table"
    if not row.in_version(release):
        # Then it is reached only where an option asks for it, and that is checked by name first.
        return "" if use.name in _guarded() else "is used in every release, and this one lacks it"
    found = real.find(use.name)
    if found is None:
        return "is not in the bindings"
    if use.stored and not found.get("writable", False):
        return "cannot be written"
    if use.call is not None and not real.fits(use.name, *use.call):
        return f"takes other parameters than {use.call}"
    return ""


def _guarded() -> set[str]:
    # `all_build_routes` is read where `build_route` was given; both came at once.
    return SET | {"IBuilderConfig.all_build_routes"}


@pytest.mark.parametrize("release", VERSIONS)
def test_every_use_is_in_the_table_and_fits_the_bindings(release: str):
    real = bindings(release)
    wrong = [
        f"{u.where}: {u.name} {what}" for u in all_uses() if (what := problem(u, release, real))
    ]
    assert wrong == []


def test_the_adapters_do_use_the_bindings():
    """Else the test above would hold of an empty list."""
    names = {u.name for u in all_uses()}
    assert len(names) > 60
    for one_of_each in (
        "Builder.build_serialized_network",
        "IBuilderConfig.max_num_tactics",
        "BuilderFlag.STRIP_PLAN",
        "OnnxParser",
        "ParserError.desc",
        "Logger.VERBOSE",
        "IExecutionContext.execute_async_v3",
    ):
        assert one_of_each in names


# Plugins are called by TensorRT: with what, is tested by calling them as it does.
@pytest.mark.parametrize("name", [n for n in ADAPTERS if n not in PLUGINS])
def test_every_untyped_parameter_is_of_a_known_class(name: str):
    assert untyped_parameters(adapter_source(name)) - set(RECEIVERS) == set()


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("config.set_flags(trt.BuilderFlag.TF32)", "has no row"),
        ("config.set_flag(trt.BuilderFlag.FP16)", "this one lacks it"),
        ("config.set_timing_cache(cache)", "takes other parameters"),
        ("config.set_memory_pool_limit(pool=1, size=2)", "takes other parameters"),
        ("config.all_build_routes = ''", "cannot be written"),
        ("log.logger.write(1)", "has no row"),
    ],
)
def test_the_check_sees_what_is_wrong(source: str, what: str):
    real = bindings("11.4")
    found = [problem(use, "11.4", real) for use in uses_of(source)]
    assert any(what in f for f in found), found


def test_every_name_of_the_option_tables_has_a_row():
    wanted = SET | {f"BuilderFlag.{n}" for n in (*FREE_FLAGS, *_OWN_OPTION)}
    assert wanted - {c.name for c in CAPABILITIES} == set()


def test_enums_that_are_asked_by_name_are_those_of_the_option_table():
    looked_up = set().union(*(enum_lookups(adapter_source(name)) for name in ADAPTERS))
    assert looked_up - ENUMS == set()


def test_every_row_is_used_somewhere():
    """A row that nothing uses is no capability of trtplug's."""
    used = {u.name for u in all_uses()} | _guarded() | ENUMS
    used |= {f"BuilderFlag.{f}" for f in FREE_FLAGS}
    asked = tuple(f"{enum}." for enum in ENUMS if enum != "BuilderFlag")
    idle = [
        c.name
        for c in CAPABILITIES
        if c.name not in used and c.removed is None and not c.name.startswith(asked)
    ]
    # For strict builds, whose calls are not in these modules; and what `hasattr` asks for.
    later = ("BuilderFlag.ERROR_ON", "QuickPluginCreationRequest")
    assert [n for n in idle if not n.startswith(later)] == []
