"""The capability table against the real bindings of five releases."""

from __future__ import annotations

import pytest

from tests.bindings.versions import VERSIONS, bindings
from trtplug.backends.trt.capabilities import (
    CAPABILITIES,
    OLDEST,
    Capability,
    find_capability,
    names_in,
    replacement_of,
    version_key,
)


@pytest.mark.parametrize("release", VERSIONS)
def test_every_row_says_what_the_release_has(release: str):
    real = bindings(release)
    assert real.version.startswith(f"{release}.")
    wrong = [
        f"{row.name}: {'should be there' if row.in_version(release) else 'should not be there'}"
        for row in CAPABILITIES
        if row.in_version(release) != (real.find(row.name) is not None)
    ]
    assert wrong == []


@pytest.mark.parametrize("release", VERSIONS)
def test_every_row_says_the_parameters(release: str):
    real = bindings(release)
    wrong = []
    for row in CAPABILITIES:
        found = real.find(row.name)
        if found is None:
            continue
        overloads = found.get("overloads") or []
        said = [tuple(f"{n}=" if default else n for n, default in o) for o in overloads]
        if row.parameters is None and found["kind"] in ("method", "function"):
            wrong += [f"{row.name}: a function, with {said}"] if row not in _gone() else []
        elif row.parameters is not None and row.parameters not in said:
            wrong.append(f"{row.name}{row.parameters}: takes {said}")
    assert wrong == []


def _gone() -> list[Capability]:
    return [c for c in CAPABILITIES if c.removed is not None]


def test_the_checks_see_what_is_wrong():
    """Else the tests above would hold of anything."""
    real = bindings("11.4")
    assert real.find("BuilderFlag.FP16") is None
    assert real.find("BuilderFlag.TF32") is not None
    assert real.fits("IBuilderConfig.set_timing_cache", 2, ())
    assert real.fits("IBuilderConfig.set_timing_cache", 1, ("ignore_mismatch",))
    assert not real.fits("IBuilderConfig.set_timing_cache", 1, ())
    assert not real.fits("IBuilderConfig.set_timing_cache", 3, ())
    assert not real.fits("IBuilderConfig.set_flag", 0, ("flags",))


def test_every_name_has_one_row():
    names = [c.name for c in CAPABILITIES]
    assert sorted(set(names)) == sorted(names)


def test_versions_are_compared_as_numbers():
    tactics = find_capability("IBuilderConfig.max_num_tactics")
    assert tactics is not None
    assert not tactics.in_version("10.3.0")
    assert tactics.in_version("10.16.1.11")
    fp16 = find_capability("BuilderFlag.FP16")
    assert fp16 is not None
    assert fp16.in_version("10.16.1.11")
    assert not fp16.in_version("11.0.0.114")
    assert version_key("10.14.1.48.post1") == (10, 14)
    assert version_key(OLDEST) <= version_key(next(iter(VERSIONS)))


def test_what_is_gone_comes_with_advice():
    without = [c.name for c in _gone() if not replacement_of(c.name)]
    # Preview features come and go; there is nothing else to do than to leave them out.
    assert [n for n in without if not n.startswith("PreviewFeature.")] == []


def test_values_of_an_enum_in_a_release():
    assert "CUBLAS" in names_in("TacticSource", "10.9")
    assert names_in("TacticSource", "11.4") == ("EDGE_MASK_CONVOLUTIONS", "JIT_CONVOLUTIONS")
