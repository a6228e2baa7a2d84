"""The documents of `trtplug kernels` as text, JSON or Markdown."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import TYPE_CHECKING

from trtplug.cli.options import lines_of
from trtplug.report.tables import Format, aligned_lines, render_grid, render_json, render_titled
from trtplug.report.words import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trtplug.kernels.check import ChecksDocument
    from trtplug.kernels.family import AnyTactic
    from trtplug.kernels.listing import KernelsDocument, ProblemEntry
    from trtplug.ops.cbr import CbrAttributes
    from trtplug.ops.cbr_pair import CbrPairAttributes

    Row = tuple[str, ...]

TACTICS_SCHEMA = "trtplug.tactics/1"


def render_tactics(form: Format) -> str:
    """The catalogue of tactics."""
    from trtplug.kernels.catalog import CATALOG

    records = [_record(tactic) for tactic in CATALOG.tactics]
    if form is Format.JSON:
        return render_json(TACTICS_SCHEMA, {"tactics": records})
    every = {str(sm) for r in records for sm in _list(r["sms"])}
    cells = [
        {name: str(value) for name, value in r.items()}
        | {
            "types": " ".join(map(str, _list(r["dtypes"]))),
            "SMs": " ".join(str(sm).removeprefix("sm_") for sm in _list(r["sms"])),
            "not on": " ".join(sorted(every - {str(sm) for sm in _list(r["sms"])})),
            "shared KiB": f"{int(str(r['shared_bytes'])) / 1024:g}",
        }
        for r in records
    ]
    if form is Format.MARKDOWN:
        head = ("tactic", "op", "types", "SMs", "layout", "shared KiB", "threads", "use")
        return render_grid(head, [tuple(row[name] for name in head) for row in cells], form)
    # The use of a tactic is below it, since lines would be too long for a terminal.
    shown = ("tactic", "types", "layout", "shared KiB", "threads", "not on")
    first, *lines = aligned_lines(shown, [tuple(row[name] for name in shown) for row in cells])
    below = [f"{line}\n    {r['use']}\n" for line, r in zip(lines, records, strict=True)]
    sms = ", ".join(sorted(every, key=lambda sm: int(sm.removeprefix("sm_"))))
    return f"{first}\n{''.join(below)}\nCompiled for {sms}.\nbfloat16 from sm_80.\n"


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _record(tactic: AnyTactic) -> dict[str, object]:
    from trtplug.kernels.sm import SMS
    from trtplug.target import Sm

    changes = tactic.x_layout != tactic.layout
    return {
        "tactic": tactic.name,
        "op": tactic.op,
        "number": tactic.number,
        "dtypes": list(tactic.dtypes),
        # BF16 begins with sm_80.
        "sms": [str(Sm(n)) for n in sorted(SMS) if tactic.exists_on(Sm(n))],
        "layout": f"{tactic.x_layout} to {tactic.layout}" if changes else tactic.layout,
        "shared_bytes": tactic.shared_bytes(Sm(80)),
        "threads": tactic.threads,
        "use": tactic.use,
    }


def render_kernels(document: KernelsDocument, form: Format) -> str:
    """The compiled kernels, by site."""
    from trtplug.document import to_json

    if form is Format.JSON:
        return to_json(document)
    head = (
        "tactic", "SM", "GPU", "regs", "KiB", "spill", "blocks", "MMA", "predicted us", "bound by",
        "status",
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
    text = "".join(_titled(title, head, rows, form) for title, head, rows in parts if rows)
    return text + lines_of(_reasons(document), form)


def _reasons(document: KernelsDocument) -> Iterator[str]:
    for site in document.unsized:
        yield f"no kernels for {site.site}: {site.problem}"
    for sm, problem in _without(document):
        yield from _wrapped(printable(f"no tactic on {sm} for {_title(problem)}")).split("\n")
    good = sum(k.status == "ok" for k in document.kernels)
    kernels = f"{len(document.kernels)} kernels, {good} ok"
    yield f"{len(document.problems)} different sites and pairs, {kernels};"
    yield f"{len(document.excluded)} tactics excluded (--format json says why)."
    yield "regs: registers per thread; KiB: shared memory per block; spill: bytes per thread;"
    yield "blocks: resident per SM; MMA: share of matrix instructions in the main loop."
    yield "Times are predicted, not measured."
    if any(p.dtype == "float" for p in document.problems):
        yield "FP32 sites have one tactic; --precision fp16 or bf16 compiles the others."


def _without(document: KernelsDocument) -> Iterator[tuple[str, ProblemEntry]]:
    """SMs and sites for which every tactic is excluded."""
    out = Counter((e.sm, e.problem) for e in document.excluded)
    for (sm, number), count in sorted(out.items()):
        if count == document.problems[number].tactics:
            yield sm, document.problems[number]


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
        return f"{_window(first)}{_ending(first)}, then 1x1{_ending(second)}"
    return f"{_window(given)}{_ending(given)}"


def _window(given: CbrAttributes) -> str:
    kernel, strides = ("x".join(map(str, v)) for v in (given.kernel_shape, given.strides))
    return f"{kernel} stride {strides}" + f", group {given.group}" * (given.group > 1)


def _ending(given: CbrAttributes) -> str:
    """Activation and residual, if there are any."""
    residual = f", residual {given.residual.partition('_')[0]} it"
    return f", {given.activation}" * (given.activation != "none") + residual * (
        given.residual != "none"
    )


def render_checks(document: ChecksDocument, form: Format) -> str:
    """The verdicts, and the problems below them."""
    from trtplug.document import to_json

    if form is Format.JSON:
        return to_json(document)
    own = document.activations == "model"
    head = ("site", "tactic", "SM", "blocks", "error", *(("model",) if own else ()), "shared",
            "global", "verdict")  # fmt: skip
    rows = [
        (
            c.sites[0],
            c.tactic,
            c.sm,
            f"{c.blocks} of {c.grid_blocks}",
            _scientific(c.relative_error),
            *((_scientific(c.model_error),) if own else ()),
            _ratio(c.shared_ratio),
            _ratio(c.global_ratio),
            c.status,
        )
        for c in document.checks
    ]
    found = [
        f"{c.sites[0]} {c.tactic} {c.sm}: {problem}"
        for c in document.checks
        for problem in c.problems
    ]
    return render_grid(head, rows, form) + lines_of([*found, *_summary(document)], form)


def _summary(document: ChecksDocument) -> Iterator[str]:
    passed = sum(c.status == "passed" for c in document.checks)
    yield f"{passed} of {len(document.checks)} kernels passed; inputs of seed {document.seed}."
    yield "error: relative to float64 on the same inputs; shared, global: shared-memory wavefronts"
    yield "and global-memory sectors relative to the minimum."
    if document.activations == "model":
        yield "model: error relative to ONNX Runtime's output of the site, with all its roundings."
    if any(c.block_numbers for c in document.checks):
        yield "Of large grids only some blocks were run; --format json lists them."


def _scientific(value: float | None) -> str:
    return "?" if value is None else f"{value:.1e}"


def _ratio(value: float | None) -> str:
    return "?" if value is None else f"{value:.2f}"


def _known(value: int | None) -> str:
    return "?" if value is None else str(value)


def _last_line(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if "error" in line] or [log.strip()]
    return lines[0][:120]


def _titled(title: str, head: Row, rows: Sequence[Row], form: Format) -> str:
    table = render_grid(head, rows, form)
    if form is Format.MARKDOWN:
        return f"{render_titled(title, table, form)}\n"
    return f"{_wrapped(printable(title))}\n\n{table}\n"


def _wrapped(text: str) -> str:
    """For a terminal of 100 columns."""
    return textwrap.fill(
        text, 100, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
