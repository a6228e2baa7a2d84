"""README and docs/ are true: tables, commands, options, links, files; the README stays short."""

from __future__ import annotations

import ast
import itertools
import json
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from tests.bindings.versions import VERSIONS
from tests.cli.options_table import option_names, options_table
from trtplug import errors
from trtplug.backends.trt.capabilities import find_capability
from trtplug.cli.main import app
from trtplug.rewrite.site import NearMissReason, PairMissReason

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = (README, *sorted(DOCS.glob("*.md")))
LINKED = (*PAGES, ROOT / "profiles" / "README.md", ROOT / "plugins" / "README.md")
"""Pages whose links are followed."""


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


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
    "engines, several optimization profiles, inspector, trial run": (
        "Builder.build_serialized_network",
        "ICudaEngine.create_engine_inspector",
    ),
    "timing caches: store, merge, hits and misses": (
        "IBuilderConfig.set_timing_cache",
        "ITimingCache.combine",
        "ITimingCache.queryKeys",
    ),
    "tactics timed for each layer, margins, near ties": ("BuilderFlag.EDITABLE_TIMING_CACHE",),
    "`--pin` `--ban` `--prefer`, `--locked`": (
        "BuilderFlag.ERROR_ON_TIMING_CACHE_MISS",
        "ITimingCache.update",
    ),
    "trtplug's kernels in the engine, which then needs no Python": (
        "NetworkDefinitionCreationFlag.PREFER_AOT_PYTHON_PLUGINS",
        "QuickPluginCreationRequest",
    ),
    "`--hardware-compatibility same_compute_capability`": (
        "HardwareCompatibilityLevel.SAME_COMPUTE_CAPABILITY",
    ),
    "`--tiling`": ("IBuilderConfig.tiling_optimization_level",),
    "`--build-route`": ("IBuilderConfig.build_route",),
    "`--precision`, with the types of the model": ("NetworkDefinitionCreationFlag.STRONGLY_TYPED",),
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
    "options": ("tensorrt-releases.md", options_table),
    "features": ("tensorrt-releases.md", feature_table),
    "gpu runs": ("tensorrt-releases.md", gpu_run_table),
    "releases": ("tensorrt-releases.md", release_table),
    "evidence": ("plugin.md", evidence_table),
    "reasons": ("plugin.md", reason_table),
    "pair reasons": ("plugin.md", lambda: reason_table(PairMissReason)),
    "errors": ("errors.md", error_table),
}
"""Name of a generated table -> its page, and what makes it."""


def replaced(page: str) -> str:
    """A page of docs/ with its tables made anew."""
    text = read(DOCS / page)
    for name, (home, table) in TABLES.items():
        if home == page:
            pattern = rf"(<!-- {name}: held by tests/test_docs.py -->\n).*?(<!-- /{name} -->)"
            made = table() + "\n"
            text, found = re.subn(pattern, lambda m, t=made: m[1] + t + m[2], text, flags=re.DOTALL)
            assert found == 1, f"{page} has no place for the table of {name}"
    return text


def test_tables_are_those_of_the_code():
    """Update them with `python -m tests.test_docs`."""
    for page in {home for home, _ in TABLES.values()}:
        assert replaced(page) == read(DOCS / page), page


def test_every_table_with_marks_is_a_generated_one():
    marked = {(n, p.name) for p in PAGES for n in re.findall(r"<!-- ([\w ]+): held", read(p))}
    assert marked == {(name, home) for name, (home, _) in TABLES.items()}


def test_readme_is_short():
    assert len(read(README).splitlines()) <= 250


# --- links -----------------------------------------------------------------------------------


def prose(text: str) -> str:
    """The text without its code blocks."""
    return re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(text: str) -> set[str]:
    """Anchors of a page's headings, by GitHub's rule: a repeated one gets a number."""
    made: set[str] = set()
    for heading in re.findall(r"^#+ +(.+?)\s*$", prose(text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        made.add(next(s for s in (slug, *(f"{slug}-{n}" for n in range(1, 99))) if s not in made))
    return made


def broken_links(page: Path) -> list[str]:
    """Relative links of a page that lead to no file, out of the project, or to no heading."""
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(read(page))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        there = target.exists() and target.is_relative_to(ROOT)
        if not there or (anchor and anchor not in anchors(read(target))):
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_works(page):
    assert broken_links(page) == []


def test_broken_links_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "there.md").write_text(
        "# A `--b` title?\n\n```\n# no heading\n```\n\n## Twice\n## Twice\n"
    )
    page = tmp_path / "page.md"
    good = ("there.md", "there.md#a---b-title", "there.md#twice-1", "#own", "https://x.example/#y")
    bad = ("gone.md", "there.md#no-heading", "there.md#twice-2", "#other", "../..")
    page.write_text("# Own\n" + " ".join(f"[x]({link})" for link in (*good, *bad)))
    assert broken_links(page) == list(bad)


def test_the_readme_leads_to_every_page():
    linked = set(re.findall(r"\]\(docs/([\w-]+\.md)", read(README)))
    assert linked == {p.name for p in DOCS.glob("*.md")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_script_that_is_named_exists(page):
    for name in re.findall(r"\bscripts/[\w.]+", read(page)):
        assert (ROOT / name).is_file(), name


# --- commands, options and folders -----------------------------------------------------------


def test_every_command_is_named_and_every_named_one_exists():
    there = {" ".join(names) for names, command in commands() if not is_group(command)}
    table = read(README).partition("## All commands")[2].partition("\n## ")[0]
    named = re.findall(r"^\| `trtplug ([a-z-]+(?: [a-z-]+)?)", table, re.MULTILINE)
    assert sorted(named) == sorted(there)


def commands() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """All commands with their names, groups too."""
    waiting: list[tuple[tuple[str, ...], click.Command]] = [((), app)]
    while waiting:
        names, command = waiting.pop()
        yield names, command
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                assert below is not None, name
                waiting.append(((*names, name), below))


def is_group(command: click.Command) -> bool:
    return isinstance(command, click.Group)


def shown_commands(page: Path) -> list[str]:
    """Command lines of trtplug in the code blocks of a page."""
    blocks = re.findall(r"^ *```\n(.*?)^ *```$", read(page), re.DOTALL | re.MULTILINE)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    found = (re.match(r"\s*(?:\$ )?(?:[A-Z_]+=\S+ )?trtplug (.*)", line) for line in lines)
    return [m[1] for m in found if m]


WITH_WRONG_OPTION = {"build det.onnx --fp16"}
"""Shown for the error that it gives."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_option_in_a_command_line_exists(page):
    known = dict(commands())
    for line in set(shown_commands(page)) - WITH_WRONG_OPTION:
        words = [w for w in shlex.split(line, comments=True) if w != "..."]
        names = next(tuple(words[:n]) for n in (2, 1) if tuple(words[:n]) in known)
        assert not is_group(known[names]), line
        options = {o for p in known[names].params for o in (*p.opts, *p.secondary_opts)}
        used = {w.partition("=")[0] for w in words if re.match(r"--?[a-z]", w)}
        assert used <= options, line


def test_every_module_and_folder_is_in_the_architecture():
    package = ROOT / "trtplug"
    there = {p.name for p in package.iterdir() if (p / "__init__.py").is_file()}
    there |= {p.stem for p in package.glob("*.py") if not p.stem.startswith("_")}
    table = read(DOCS / "architecture.md").partition("| where | what |")[2].partition("\n\n")[0]
    first_column = " ".join(row.split("|")[1] for row in table.splitlines() if row.count("|") > 1)
    assert there == set(re.findall(r"`(\w+)/?`", first_column))


def test_every_place_for_a_change_exists():
    table = read(DOCS / "architecture.md").partition("## Where to make a change")[2]
    named = re.findall(r"`([\w/]+(?:\.py|/))`", table.partition("\n## ")[0])
    assert [name for name in named if not (ROOT / "trtplug" / name).exists()] == []
    assert len(named) > 20


def test_every_variable_is_named():
    code = "\n".join(read(p) for p in (ROOT / "trtplug").rglob("*.py"))
    found = set(re.findall(r"environ\.get\(\"(TRTPLUG_\w+)\"", code))
    table = read(DOCS / "errors.md").partition("## Environment variables")[2]
    assert found == set(re.findall(r"^\| `(TRTPLUG_\w+)`", table, re.MULTILINE))


def test_every_status_is_named():
    statuses = {value for name, value in vars(errors).items() if name.isupper()}
    table = read(DOCS / "errors.md").partition("## Exit status")[2].partition("## Error codes")[0]
    assert {int(n) for n in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)} == statuses


if __name__ == "__main__":
    for home in {home for home, _ in TABLES.values()}:
        (DOCS / home).write_text(replaced(home), encoding="utf-8")
