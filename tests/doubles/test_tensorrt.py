"""The double has no name, value or parameter that the real bindings do not have."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.bindings.versions import VERSIONS, Bindings, bindings
from tests.doubles.site import make_site

if TYPE_CHECKING:
    from collections.abc import Iterator

_DESCRIBE = Path(__file__).parent / "scripts/describe.py"


def version_of(release: str) -> str:
    return VERSIONS[release].partition("==")[2]


def described(folder: Path, release: str) -> dict[str, Any]:
    site = make_site(folder, version=version_of(release))
    done = subprocess.run(
        [sys.executable, str(_DESCRIBE), "tensorrt"],
        env=site.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def differences(double: dict[str, Any], real: Bindings) -> Iterator[str]:
    for name, members in double.items():
        found = real.find(name)
        if found is None:
            yield f"{name}: there is no such name"
        elif isinstance(members, list):
            yield from _parameters(name, members, found)
        else:
            for member, (kind, what) in members.items():
                yield from _member(f"{name}.{member}", kind, what, real)


def _member(name: str, kind: str, what: Any, real: Bindings) -> Iterator[str]:
    found = real.find(name)
    if found is None:
        yield f"{name}: there is no such member"
    elif kind == "value":
        if found.get("value") != what:
            yield f"{name} is {found.get('value')}, not {what}"
    elif kind == "method":
        yield from _parameters(name, what, found)
    elif kind == "property" and what and not found.get("writable", False):
        yield f"{name}: cannot be written"


def _parameters(name: str, rows: list[Any], found: Any) -> Iterator[str]:
    overloads = found.get("overloads")
    if overloads is None:
        return
    # `in` is no name that Python could give a parameter.
    said = [["inp" if n == "in" else n for n, _ in o] for o in overloads]
    if [n for n, _ in rows] in said:
        return
    yield f"{name}: takes {overloads}, not {rows}"


@pytest.mark.parametrize("release", VERSIONS)
def test_every_public_name_is_one_of_the_real_bindings(tmp_path: Path, release: str):
    assert list(differences(described(tmp_path, release), bindings(release))) == []


def test_the_comparison_sees_what_is_wrong():
    """Else the test above would hold of anything."""
    real = bindings("11.4")
    wrong = {
        "Nothing": {},
        "BuilderFlag": {"FP16": ["value", 0], "TF32": ["value", 7]},
        "IBuilderConfig": {
            "set_flag": ["method", [["flags", False]]],
            "all_build_routes": ["property", True],
        },
        "init_libnvinfer_plugins": [["logger", False]],
    }
    assert len(list(differences(wrong, real))) == 6


@pytest.mark.parametrize("release", VERSIONS)
def test_it_has_every_name_that_the_capability_table_gives_the_release(
    tmp_path: Path, release: str
):
    from trtplug.backends.trt.capabilities import CAPABILITIES

    double = described(tmp_path, release)

    def has(name: str) -> bool:
        first, _, member = name.partition(".")
        members = double.get(first)
        return members is not None and (not member or member in members or member == "name")

    used = [c.name for c in CAPABILITIES if c.in_version(release) and c.removed is None]
    assert [n for n in used if not has(n)] == []
