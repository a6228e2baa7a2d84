"""The documents of `trtplug kernels` as text, JSON or Markdown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from trtplug.cli.options import Format
from trtplug.report.names import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trtplug.candidates.check import ChecksDocument
    from trtplug.candidates.compile import KernelsDocument, ProblemEntry
    from trtplug.ops.cbr import CbrAttributes
    from trtplug.ops.cbr_pair import CbrPairAttributes
    from trtplug.tactics.either import EitherTactic

    Row = tuple[str, ...]

TACTICS_SCHEMA = "trtplug.tactics/1"


def render_tactics(form: Format) -> str:
    """The catalogue of tactics."""
    from trtplug.tactics.either import ALL_TACTICS

    records = [_record(tactic) for tactic in ALL_TACTICS]
    if form is Format.JSON:
        document = {"schema": TACTICS_SCHEMA, "tactics": records}
        return json.dumps(document, indent=2) + "\n"
    head = ("tactic", "op", "types", "SMs", "layout", "shared KiB", "threads", "wins")
    rows = [
        (
            str(r["tactic"]),
            str(r["op"]),
            " ".join(map(str, _list(r["dtypes"]))),
            " ".join(str(sm).removeprefix("sm_") for sm in _list(r["sms"])),
            str(r["layout"]),
            f"{int(str(r['shared_bytes'])) / 1024:g}",
            str(r["threads"]),
            str(r["use"]),
        )
        for r in records
    ]
    return _table([(head, rows)], form)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _record(tactic: EitherTactic) -> dict[str, object]:
    from trtplug.kernels.usage import LIMITS
    from trtplug.tactics.either import exists_on, shared_bytes_of_either, threads_of_either
    from trtplug.tactics.pair.catalog import PairTactic
    from trtplug.tactics.tactic import Stem
    from trtplug.target import Sm

    half = ["float16", "bfloat16"]
    return {
        "tactic": tactic.name,
        "op": "CBRPair" if isinstance(tactic, PairTactic) else "CBR",
        "number": tactic.number,
        "dtypes": ["float"] if tactic.layout == "LINEAR" else half,
        # BF16 begins with sm_80.
        "sms": [str(Sm(n)) for n in sorted(LIMITS) if exists_on(tactic, Sm(n))],
        "layout": "LINEAR to HWC8" if isinstance(tactic, Stem) else tactic.layout,
        "shared_bytes": shared_bytes_of_either(tactic, Sm(80)),
        "threads": threads_of_either(tactic),
        "use": tactic.use,
    }


def render_kernels(document: KernelsDocument, form: Format) -> str:
    """What was compiled, problem by problem."""
    from trtplug.document import to_json

    if form is Format.JSON:
        return to_json(document)
    head = (
        "tactic", "SM", "GPU", "registers", "shared KiB", "spill", "blocks/SM", "MMA",
        "predicted us", "bound by", "status",
    )  # fmt: skip
    parts = []
    for number, problem in enumerate(document.problems):
        rows = [
            (
                k.tactic,
                k.sm,
                k.gpu or "?",
                _known(k.registers),
                "?" if k.shared_bytes is None else f"{k.shared_bytes / 1024:g}",
                _known(k.spill_bytes),
                _known(k.blocks_per_sm),
                "" if k.mma_share is None else f"{k.mma_share:.0%}",
                "?" if k.predicted_us is None else f"{k.predicted_us:.1f}",
                k.bound_by or "?",
                k.status if k.log is None else f"{k.status}: {_last_line(k.log)}",
            )
            for k in document.kernels
            if k.problem == number
        ]
        parts.append((_title(problem), head, rows))
    text = "".join(_titled(title, head, rows, form) for title, head, rows in parts)
    reasons = _reasons(document)
    return text + "".join(f"{line}\n" for line in reasons)


def _reasons(document: KernelsDocument) -> Iterator[str]:
    for site in document.unsized:
        yield printable(f"no kernels for {site.site}: {site.problem}")
    good = sum(k.status == "ok" for k in document.kernels)
    yield (
        f"{len(document.problems)} different sites, {len(document.kernels)} kernels, {good} ok; "
        f"{len(document.excluded)} tactics excluded (--format json says why). Times are predicted, "
        "not measured."
    )


def _title(problem: ProblemEntry) -> str:
    sites = problem.sites[0] + (f" and {len(problem.sites) - 1} more" if problem.sites[1:] else "")
    size = "x".join(map(str, problem.input_opt))
    return printable(
        f"{sites}: {size} to {problem.outputs} channels, {_words(problem.attributes)}, "
        f"{problem.dtype}"
    )


def _words(given: CbrAttributes | CbrPairAttributes) -> str:
    from trtplug.ops.cbr_pair import CbrPairAttributes

    if isinstance(given, CbrPairAttributes):
        first, second = given.depthwise, given.pointwise
        return f"{_window(first)}, {first.activation}, then 1x1, {_end(second)}"
    return f"{_window(given)}, {_end(given)}"


def _window(given: CbrAttributes) -> str:
    kernel, strides = ("x".join(map(str, v)) for v in (given.kernel_shape, given.strides))
    return f"{kernel} stride {strides}, group {given.group}"


def _end(given: CbrAttributes) -> str:
    return f"{given.activation}, residual {given.residual}"


def render_checks(document: ChecksDocument, form: Format) -> str:
    """Verdicts, and below them what was found."""
    from trtplug.document import to_json

    if form is Format.JSON:
        return to_json(document)
    head = ("site", "tactic", "SM", "blocks", "error", "shared", "global", "verdict")
    rows = [
        (
            c.sites[0],
            c.tactic,
            c.sm,
            f"{c.blocks} of {c.grid_blocks}",
            "?" if c.relative_error is None else f"{c.relative_error:.1e}",
            "?" if c.shared_ratio is None else f"{c.shared_ratio:.2f}",
            "?" if c.global_ratio is None else f"{c.global_ratio:.2f}",
            c.status,
        )
        for c in document.checks
    ]
    found = [
        printable(f"{c.sites[0]} {c.tactic} {c.sm}: {problem}") + "\n"
        for c in document.checks
        for problem in c.problems
    ]
    passed = sum(c.status == "passed" for c in document.checks)
    summary = f"{passed} of {len(document.checks)} kernels passed; inputs of seed {document.seed}\n"
    return _table([(head, rows)], form) + "".join(found) + summary


def _known(value: int | None) -> str:
    return "?" if value is None else str(value)


def _last_line(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if "error" in line] or [log.strip()]
    return lines[0][:120]


def _titled(title: str, head: Row, rows: Sequence[Row], form: Format) -> str:
    mark = "## " if form is Format.MARKDOWN else ""
    return f"{mark}{title}\n\n{_table([(head, rows)], form)}\n"


def _table(parts: Sequence[tuple[Row, Sequence[Row]]], form: Format) -> str:
    if form is Format.MARKDOWN:
        lines = []
        for head, rows in parts:
            lines += [f"| {' | '.join(head)} |", "|" + " --- |" * len(head)]
            lines += [f"| {' | '.join(map(_cell, row))} |" for row in rows]
        return "\n".join(lines) + "\n"
    return "\n".join("\n".join(_aligned(head, rows)) for head, rows in parts) + "\n"


def _aligned(head: Row, rows: Sequence[Row]) -> Iterator[str]:
    """Columns as wide as what is in them: nothing is cut off, whatever the terminal."""
    shown = [tuple(map(printable, row)) for row in (head, *rows)]
    widths = [max(len(row[i]) for row in shown) for i in range(len(head))]
    for row in shown:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _cell(text: str) -> str:
    """A text that is harmless in a Markdown table."""
    return printable(text).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
