"""The README tells the truth: commands, folders, error codes, settings, reasons."""

from __future__ import annotations

import ast
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bindings.versions import VERSIONS
from tests.cli.options_table import option_names, options_table
from trtplug import errors
from trtplug.backends.trt.capabilities import find_capability
from trtplug.rewrite.site import NearMissReason, PairMissReason

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def error_table() -> str:
    lines = ["| code | status | when |", "|---|---|---|"]
    for cls in errors.every_error():
        when = " ".join((cls.__doc__ or "").split("\n\n")[0].split())
        lines.append(f"| `{cls.code}` | {cls.exit_status} | {when} |")
    return "\n".join(lines)


def reason_table(reasons: type[NearMissReason | PairMissReason] = NearMissReason) -> str:
    lines = ["| reason | meaning |", "|---|---|"]
    lines += [f"| `{reason.value}` | {reason.sentence} |" for reason in reasons]
    return "\n".join(lines)


RELEASES = ("10.9", "10.13", "10.16", "11.0", "11.1", "11.4")


def release_table() -> str:
    """What is not the same in all releases of enterprise TensorRT, from the capability table."""
    lines = [f"| option | {' | '.join(RELEASES)} |", "|---" * (len(RELEASES) + 1) + "|"]
    lines.append(f"| every option and name not listed here |{' yes |' * len(RELEASES)}")
    for flag, name in sorted(set(option_names())):
        row = find_capability(name)
        assert row is not None, name
        there = [row.in_version(release) for release in RELEASES]
        if not all(there):
            lines.append(f"| `{flag}` | {' | '.join('yes' if t else 'no' for t in there)} |")
    return "\n".join(lines)


def evidence_table() -> str:
    """The fields of a measurement, from the strings below them."""
    source = (ROOT / "trtplug/plugin/evidence.py").read_text(encoding="utf-8")
    classes = (n for n in ast.parse(source).body if isinstance(n, ast.ClassDef))
    (body,) = (c.body for c in classes if c.name == "SiteMeasurement")
    lines = ["| field | type | meaning |", "|---|---|---|"]
    for field, told in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(told, ast.Expr):
            kind = {"str": "string", "str | None": "string or null"}.get(
                ast.unparse(field.annotation), "list of numbers"
            )
            words = " ".join(ast.literal_eval(told.value).split())
            lines.append(f"| `{ast.unparse(field.target)}` | {kind} | {words} |")
    return "\n".join(lines)


FEATURES = {
    "engines, several profiles, inspector, trial run": (
        "Builder.build_serialized_network",
        "ICudaEngine.create_engine_inspector",
    ),
    "timing caches: store, merge, hits and misses": (
        "IBuilderConfig.set_timing_cache",
        "ITimingCache.combine",
        "ITimingCache.queryKeys",
    ),
    "what was tried for each layer, margins, near ties": ("BuilderFlag.EDITABLE_TIMING_CACHE",),
    "`--pin` `--ban` `--prefer`, `--locked`": (
        "BuilderFlag.ERROR_ON_TIMING_CACHE_MISS",
        "ITimingCache.update",
    ),
    "our kernels in the engine, which then needs no Python": (
        "NetworkDefinitionCreationFlag.PREFER_AOT_PYTHON_PLUGINS",
        "QuickPluginCreationRequest",
    ),
    "`--hardware-compatibility same_compute_capability`": (
        "HardwareCompatibilityLevel.SAME_COMPUTE_CAPABILITY",
    ),
    "`--tiling`": ("IBuilderConfig.tiling_optimization_level",),
    "`--build-route`": ("IBuilderConfig.build_route",),
    "`--precision` (the model's own types)": ("NetworkDefinitionCreationFlag.STRONGLY_TYPED",),
}
"""What a user asks for -> the names of TensorRT that it takes."""

HELD = tuple(VERSIONS)
"""Releases whose real bindings hold the names."""


def feature_table() -> str:
    """What works in which release of enterprise TensorRT, from the capability table."""
    lines = [f"| | {' | '.join(HELD)} |", "|---" * (len(HELD) + 1) + "|"]
    for feature, names in FEATURES.items():
        rows = [find_capability(name) for name in names]
        assert all(rows), feature
        there = [all(r is not None and r.in_version(release) for r in rows) for release in HELD]
        lines.append(f"| {feature} | {' | '.join('yes' if t else 'no' for t in there)} |")
    return "\n".join(lines)


def gpu_run_table() -> str:
    """What scripts/gpu_check has seen, from the folders that were sent back; never the double."""
    lines = [
        "| GPU | driver | TensorRT | flows that passed | flows that did not |",
        "|---" * 5 + "|",
    ]
    for file in sorted((ROOT / "tests" / "replay").glob("*/gpu_check.jsonl")):
        records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        machine = records[0]
        if machine["seen_on"] != machine["gpu"]:
            continue
        good, bad = (
            [r["name"] for r in records if r["kind"] == "flow" and (r["status"] == "passed") == way]
            for way in (True, False)
        )
        shown = (machine["gpu"], machine["driver"], machine["tensorrt"], len(good), ", ".join(bad))
        lines.append(f"| {' | '.join(map(str, shown))} |")
    return "\n".join(lines if len(lines) > 2 else [*lines, "| none yet | | | | |"])


TABLES = {
    "features": feature_table,
    "gpu runs": gpu_run_table,
    "evidence": evidence_table,
    "options": options_table,
    "errors": error_table,
    "releases": release_table,
    "reasons": reason_table,
    "pair reasons": lambda: reason_table(PairMissReason),
}


def replaced(text: str) -> str:
    """The README with its tables made anew."""
    for name, table in TABLES.items():
        pattern = rf"(<!-- {name}: [^\n]*-->\n).*?(<!-- /{name} -->)"
        made = table() + "\n"
        text, found = re.subn(pattern, lambda m, t=made: m[1] + t + m[2], text, flags=re.DOTALL)
        assert found == 1, f"the README has no place for the table of {name}"
    return text


def test_tables_are_those_of_the_code():
    """Mend it with `python -m tests.test_readme`."""
    assert replaced(README) == README


def test_every_module_and_folder_has_its_room():
    section = README.partition("## Architecture")[2]
    named = set(re.findall(r"`(\w+)/?`", section))
    package = ROOT / "trtplug"
    there = {p.name for p in package.iterdir() if (p / "__init__.py").is_file()}
    there |= {p.stem for p in package.glob("*.py") if not p.stem.startswith("_")}
    assert there - named == set()
    table = section.partition("| where | what |")[2].partition("\n\n")[0]
    first_column = " ".join(row.split("|")[1] for row in table.splitlines() if row.count("|") > 1)
    assert set(re.findall(r"`(\w+)/?`", first_column)) == there


def test_every_command_is_named_and_every_named_one_exists():
    shown = subprocess.run(
        [sys.executable, "-m", "trtplug", "--help"], capture_output=True, text=True, check=True
    ).stdout
    there = set(re.findall(r"^  ([a-z-]+)  ", shown.partition("Commands:")[2], re.MULTILINE))
    named = set(re.findall(r"^\| `trtplug ([a-z-]+)", README, re.MULTILINE))
    assert named == there


def test_every_variable_is_named():
    code = "\n".join(p.read_text(encoding="utf-8") for p in (ROOT / "trtplug").rglob("*.py"))
    read = set(re.findall(r"environ\.get\(\"(TRTPLUG_\w+)\"", code))
    assert read <= set(re.findall(r"`(TRTPLUG_\w+)`", README))


def test_every_status_is_named():
    statuses = {value for name, value in vars(errors).items() if name.isupper()}
    table = README.partition("## Exit status")[2].partition("Each error")[0]
    assert {int(n) for n in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)} == statuses


@pytest.mark.parametrize("path", re.findall(r"\]\(([\w./-]+)\)|`(scripts/\w+)", README))
def test_every_file_that_it_shows_exists(path):
    assert (ROOT / (path[0] or path[1])).exists()


if __name__ == "__main__":
    (ROOT / "README.md").write_text(replaced(README), encoding="utf-8")
