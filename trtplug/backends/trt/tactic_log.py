"""Candidate tables from the VERBOSE log of a TensorRT build.

The log is the only source of them: a timing cache holds winners alone. Two tuners write to it. The
classic one times convolutions, poolings, reformats and plugins, once for each combination of
formats; the compiler (Myelin) the other operations, each with a sorted table. In goes what the
builder said, message by message, with the thread that said it where the logger kept it.

Written from logs of TensorRT 10.16 (NVIDIA/trt-samples-for-hackathon-cn, cookbook/04-Feature/
ProfilingVerbosity, 05-Plugin/Tactic+TimingCache, 07-Tool/trtexec) and the README of NVIDIA's
sampleEditableTimingCache (10.8). Logs end early, threads write between each other's lines, names
hold anything: nothing here raises, and a line whose table is not certain is counted, never guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trtplug.backends.layer_listing import onnx_layer_names, without_profile
from trtplug.backends.tactic_table import CacheHit, Candidate, CandidateTable, TacticLog, Tuner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_HASH = r"0x[0-9a-fA-F]{1,16}"
_PREFIX = re.compile(
    r"(?:\[(?:\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d|TRT|TensorRT|[FEWIVX]|thread (?P<thread>\d+))\]\s*)*"
    r"(?:\(foreignNode\) ?)?"
)
"""What loggers put before a message: time, name, severity, ours the thread; then the compiler's."""
_OP = re.compile(
    r"Autotuning op (?:(?P<op>.*?)\(key: (?P<key>0x[0-9a-fA-F]{1,64})\)\s*:?\s*(?P<nodes>.*)"
    r"|(?P<bare>.+?):\s*(?P<bare_nodes>(?:\[ONNX Layer: .*)?))$"
)
_HEADER = re.compile(r"\s*tactic_id\s*,")
_ROW = re.compile(r"\s*\d{1,9}\s*,")
_SELECTED = re.compile(
    rf"The selected tactic is .*?:\s*(?P<hash>{_HASH})\s*(?:,\s*(?P<cost>[^\s,]+))?"
)
_WRITTEN = re.compile(rf"Writing the best tactic \(?(?P<hash>{_HASH})\)? to cache")
_COSTS = re.compile(r"=+ Computing (?:reformatting )?costs(?: for (?P<layer>.*))?$")
_FORMATS = re.compile(
    r"\*{3,} Autotuning (?:format combination|(?P<reformat>Reformat)):\s*(?P<formats>.*?)\s*"
    r"(?:\{key: (?P<key>[^{}]*)\}\s*)?\*{3,}\s*$"
)
_RUNNER = re.compile(r"-{3,} Timing Runner: (?P<layer>.*) \((?P<runner>\w+)\[0x[0-9a-fA-F]+\]\)")
_TIMED = re.compile(
    rf"(?:Tactic Name: (?P<kernel>.*?) )?Tactic: (?P<hash>{_HASH}) Time: (?P<cost>\S+)\s*$"
)
_FASTEST = re.compile(
    rf"(?P<layer>.*) \((?P<runner>\w+)\[0x[0-9a-fA-F]+\]\) profiling completed in \S+ seconds\. "
    rf"Fastest Tactic: (?P<hash>{_HASH}) Time: (?P<cost>\S+)"
)
_CHOSE = re.compile(rf"Chose Runner Type: (?P<runner>\w+) Tactic: (?P<hash>{_HASH})")
_HIT = re.compile(
    rf"(?P<layer>.*?) \[(?P<formats>[^\[\]]*->.*)\] got cached result: "
    rf"(?P<runner>\w+), tactic (?P<hash>{_HASH}), (?P<cost>\S+) ms"
)
_REGISTERED = re.compile(r"Registering layer: (?P<layer>.+) for ONNX node: (?P<node>.+)$")
_TAIL = re.compile(rf"(?P<kernel>.*?)\s*,\s*(?P<hash>{_HASH})\s*(?:,(?P<rest>.*))?")

_NUMBERS = {
    "tactic_id": "id",
    "cost(in ms)": "cost",
    "cost/fastest_cost": "ratio",
    "prediction_correlation": "correlation",
}
_COLUMNS = ("id", "cost", "ratio", "correlation")
"""Before the kernel's name, where no header says otherwise."""

_ROUNDING = 2e-3
"""Relative; ratios are printed with five decimals, small costs with few digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of the builder, of one line or many."""

    text: str
    thread: int | None = None
    """Which of the builder's threads said it; None where the logger did not keep it."""


def parse_tactic_text(text: str) -> TacticLog:
    """The tables in a log kept as text, such as `build.log`."""
    return parse_tactic_log(Message(text=line) for line in text.splitlines())


def parse_tactic_log(messages: Iterable[Message]) -> TacticLog:
    """The tables in what a builder said; never raises."""
    reader = _Reader()
    number = 0
    for message in messages:
        for line in message.text.splitlines():
            number += 1
            reader.take(line, message.thread, number)
    return reader.result()


def _without_prefix(line: str, thread: int | None) -> tuple[str, int | None]:
    """A line without what loggers put before it, and the thread that said it."""
    prefix = _PREFIX.match(line)
    if prefix is None:
        return line, thread
    rest = line[prefix.end() :]
    if "(foreignNode) " in rest:  # behind a logger's own prefix
        rest = rest.partition("(foreignNode) ")[2]
    return rest, int(prefix["thread"]) if prefix["thread"] else thread


@dataclass(slots=True, eq=False)
class _Block:
    """A table under way."""

    op: str
    key: str
    onnx_layers: tuple[str, ...]
    certain: bool
    line: int
    tuner: Tuner = "compiler"
    formats: str = ""
    columns: tuple[str, ...] = _COLUMNS
    rows: list[Candidate] = field(default_factory=list)
    selected: str | None = None
    selected_ms: float | None = None
    written: str | None = None

    def fits(self, row: Candidate) -> bool:
        """Whether a row can be the next one: tables are sorted, and ratios share one divisor."""
        if row.cost_ms is None or row.ratio is None:
            return True
        if not self.rows:
            return abs(row.ratio - 1) <= _ROUNDING
        first, last = self.rows[0].cost_ms, self.rows[-1].cost_ms
        if first is None or last is None:
            return True
        return row.cost_ms >= last and abs(row.cost_ms - first * row.ratio) <= _ROUNDING * (
            row.cost_ms
        )

    def has(self, tactic_hash: str) -> bool:
        return any(row.tactic_hash == tactic_hash for row in self.rows)

    def table(self, onnx_layers: tuple[str, ...]) -> CandidateTable:
        return CandidateTable(
            op=self.op,
            key=self.key,
            onnx_layers=onnx_layers,
            candidates=tuple(self.rows),
            selected=self.selected,
            selected_ms=self.selected_ms,
            written=self.written,
            complete=self.certain and self.selected is not None and self.has(self.selected),
            tuner=self.tuner,
            formats=self.formats,
        )


@dataclass(slots=True, eq=False)
class _Classic:
    """Where one thread of the classic tuner is."""

    layer: str = ""
    runner: str = ""
    block: _Block | None = None
    is_reformat: bool = False


class _Reader:
    """Takes lines one by one."""

    def __init__(self) -> None:
        self.blocks: list[_Block] = []
        self.hits: list[CacheHit] = []
        self.unread = 0
        self.loose = 0
        self.warnings: list[str] = []
        self._open_by_thread: dict[int | None, list[_Block]] = {}
        self._unwritten: dict[int | None, list[_Block]] = {}
        self._classic: dict[int | None, _Classic] = {}
        self._nodes: dict[str, str] = {}
        """Layer of the parser -> its ONNX node."""
        self._skipped: set[int] = set()
        """Identities of classic blocks whose runners had no valid tactic."""

    def result(self) -> TacticLog:
        """All that was read."""
        for block in self.blocks:
            if not block.rows and id(block) not in self._skipped:
                self.warnings.append(
                    f"line {block.line}: no row of the table of {block.op} was read"
                )
        return TacticLog(
            tables=tuple(block.table(self._nodes_in(block)) for block in self.blocks),
            hits=tuple(self.hits),
            unread=self.unread,
            loose=self.loose,
            warnings=tuple(self.warnings),
        )

    def _nodes_in(self, block: _Block) -> tuple[str, ...]:
        """ONNX nodes: those that the log names beside it, or those that its layer is fused of."""
        name = without_profile(block.op)
        parts = (name,) if name in self._nodes else tuple(name.split(" + "))
        if block.onnx_layers or not all(part in self._nodes for part in parts):
            return block.onnx_layers
        return tuple(dict.fromkeys(self._nodes[part] for part in parts))

    def _register(self, line: str, thread: int | None, number: int) -> None:  # noqa: ARG002
        if match := _REGISTERED.search(line):
            self._nodes[match["layer"]] = match["node"]

    def take(self, line: str, thread: int | None, number: int) -> None:
        """One line; `number` counts from 1."""
        for mark, take in _TAKERS:
            if mark in line:
                rest, thread = _without_prefix(line, thread)
                take(self, rest, thread, number)
                return
        if ", " in line:
            rest, thread = _without_prefix(line, thread)
            if _ROW.match(rest):
                self._add_row(rest, thread, number)

    # The compiler's tables.

    def _begin(self, line: str, thread: int | None, number: int) -> None:
        match = _OP.search(line)
        if match is None:
            self._warn(number, "an operation that cannot be read")
            return
        before = self._under_way(thread)
        # Without threads a second table that begins before the first ends may be between its lines.
        # A table that names no key has no last line: there the next one ends it.
        certain = thread is not None or not any(block.key for block in before)
        if not certain:
            for block in before:
                block.certain = False
        block = _Block(
            op=match["op"] if match["key"] else match["bare"],
            key=(match["key"] or "").lower(),
            onnx_layers=onnx_layer_names(match["nodes"] or match["bare_nodes"] or ""),
            certain=certain,
            line=number,
        )
        self.blocks.append(block)
        # A thread works on one table at a time. Where threads are not known, an operation whose
        # table never came makes way for the next one; a table that has begun does not.
        kept = [] if thread is not None else [b for b in before if b.rows and b.key]
        self._open_by_thread[thread] = [*kept, block]

    def _under_way(self, thread: int | None) -> list[_Block]:
        """Blocks that the next row may belong to."""
        return self._open_by_thread.get(thread, [])

    def _set_columns(self, line: str, thread: int | None, number: int) -> None:
        names = [name.strip() for name in line.split(",")]
        if not _HEADER.match(line) or "kernel_name" not in names:
            return
        if under_way := self._under_way(thread):
            before = names[: names.index("kernel_name")]
            under_way[-1].columns = tuple(_NUMBERS.get(name, "") for name in before)
        else:
            self._warn(number, "a table without an operation")

    def _add_row(self, line: str, thread: int | None, number: int) -> None:
        under_way = self._under_way(thread)
        if not under_way:
            if _row(line, _COLUMNS) is not None:
                self.loose += 1
                self._warn(number, "a row without a table")
            return  # no table is open: some other line that starts with a number
        row = _row(line, under_way[-1].columns)
        if row is None:
            self.unread += 1
            self._warn(number, f"a row of the table of {under_way[-1].op} that cannot be read")
            under_way[-1].certain = False
            return
        fitting = [b for b in under_way if b.fits(row)] if len(under_way) > 1 else under_way
        if len(fitting) == 1:
            fitting[0].rows.append(row)
        else:
            self._uncertain(fitting or under_way)

    def _select(self, line: str, thread: int | None, number: int) -> None:
        match = _SELECTED.search(line)
        if match is None:
            self._warn(number, "a selected tactic that cannot be read")
            return
        tactic = match["hash"].lower()
        under_way = self._under_way(thread)
        block = _only([b for b in under_way if b.has(tactic)]) or _only(under_way)
        if block is None:
            self._uncertain(under_way)
            return
        block.selected, block.selected_ms = tactic, _number(match["cost"])
        if block.selected_ms is None:
            block.certain = False  # the line was cut, and the hash may be too
        under_way.remove(block)
        self._unwritten.setdefault(thread, []).append(block)

    def _write(self, line: str, thread: int | None, number: int) -> None:
        match = _WRITTEN.search(line)
        if match is None:
            self._warn(number, "a written tactic that cannot be read")
            return
        tactic = match["hash"].lower()
        waiting = self._unwritten.get(thread, [])
        # The newest: a builder writes a tactic right after it has chosen it.
        block = next((b for b in reversed(waiting) if b.selected == tactic), None)
        if block is None:
            self.loose += 1
            return
        block.written = tactic
        waiting.remove(block)

    # The classic tuner's tables.

    def _at(self, thread: int | None) -> _Classic:
        return self._classic.setdefault(thread, _Classic())

    def _compute(self, line: str, thread: int | None, number: int) -> None:  # noqa: ARG002
        if match := _COSTS.search(line):
            self._classic[thread] = _Classic(layer=(match["layer"] or "").strip())

    def _combine(self, line: str, thread: int | None, number: int) -> None:
        match = _FORMATS.search(line)
        if match is None:
            self._warn(number, "a combination of formats that cannot be read")
            return
        at, key = self._at(thread), (match["key"] or "").strip()
        at.is_reformat, at.runner = match["reformat"] is not None, ""
        at.block = _Block(
            op="" if at.is_reformat else at.layer,  # a reformat is named by its runner
            key="" if key == "None" else key.lower(),
            onnx_layers=(),
            certain=True,
            line=number,
            tuner="classic",
            formats=match["formats"],
        )
        self.blocks.append(at.block)

    def _run(self, line: str, thread: int | None, number: int) -> None:
        match, at = _RUNNER.search(line), self._at(thread)
        if match is None or at.block is None:
            self._warn(number, "a runner without a combination of formats")
            return
        at.runner = match["runner"]
        at.block.op = at.block.op or match["layer"]

    def _time(self, line: str, thread: int | None, number: int) -> None:
        match, block = _TIMED.search(line), self._at(thread).block
        if match is None:
            self.unread += 1
            self._warn(number, "a timed tactic that cannot be read")
            if block is not None:
                block.certain = False
            return
        if block is None:
            self.loose += 1
            self._warn(number, "a timed tactic without a layer")
            return
        block.rows.append(
            Candidate(
                tactic_id=None,
                cost_ms=_number(match["cost"]),
                ratio=None,
                correlation=None,
                kernel=match["kernel"] or "",
                tactic_hash=match["hash"].lower(),
                parameter="",
                runner=self._at(thread).runner,
            )
        )

    def _finish(self, line: str, thread: int | None, number: int) -> None:
        match, at = _FASTEST.search(line), self._at(thread)
        if match is None or at.block is None:
            self._warn(number, "the end of a runner that was not begun")
        elif _number(match["cost"]) is None:  # `Time: inf`: no tactic of this runner could run
            self._skipped.add(id(at.block))
        elif at.is_reformat:  # there no line says which runner was chosen
            self._take(at.block, match["hash"])

    def _choose(self, line: str, thread: int | None, number: int) -> None:
        match, at = _CHOSE.search(line), self._at(thread)
        if match is None or at.block is None:
            self._warn(number, "a choice without a combination of formats")
            return
        self._take(at.block, match["hash"])
        at.block = None

    def _take(self, block: _Block, tactic: str) -> None:
        block.selected = tactic.lower()
        costs = [row.cost_ms for row in block.rows if row.tactic_hash == block.selected]
        block.selected_ms = costs[0] if costs else None

    def _skip(self, line: str, thread: int | None, number: int) -> None:  # noqa: ARG002
        block = self._at(thread).block
        if block is not None and "No valid tactics" in line:
            self._skipped.add(id(block))

    def _hit(self, line: str, thread: int | None, number: int) -> None:  # noqa: ARG002
        match = _HIT.search(line)
        if match is None:
            self.unread += 1
            self._warn(number, "a cached result that cannot be read")
            return
        self.hits.append(
            CacheHit(
                layer=match["layer"],
                formats=match["formats"],
                runner=match["runner"],
                tactic_hash=match["hash"].lower(),
                cost_ms=_number(match["cost"]),
            )
        )

    def _warn(self, number: int, what: str) -> None:
        self.warnings.append(f"line {number}: {what}")

    def _uncertain(self, blocks: list[_Block]) -> None:
        self.loose += 1
        for block in blocks:
            block.certain = False


_TAKERS: tuple[tuple[str, Callable[[_Reader, str, int | None, int], None]], ...] = (
    ("Autotuning op ", _Reader._begin),
    ("got cached result", _Reader._hit),
    ("profiling completed in", _Reader._finish),
    ("Chose Runner Type:", _Reader._choose),
    (" Time: ", _Reader._time),
    ("Tactic Name: ", _Reader._time),
    ("Timing Runner: ", _Reader._run),
    ("** Autotuning ", _Reader._combine),
    ("== Computing ", _Reader._compute),
    ("Skipping ", _Reader._skip),
    ("The selected tactic is ", _Reader._select),
    ("Writing the best tactic ", _Reader._write),
    ("tactic_id", _Reader._set_columns),
    ("Registering layer: ", _Reader._register),
)
"""Words that only one kind of line has, the most telling first."""


def _row(line: str, columns: tuple[str, ...]) -> Candidate | None:
    cells = line.split(",", len(columns))
    if len(cells) <= len(columns):
        return None
    tail = _TAIL.fullmatch(cells[-1].strip())
    if tail is None or not tail["kernel"]:
        return None
    numbers = dict(zip(columns, cells, strict=False))
    cost = _number(numbers.get("cost"))
    if "cost" in columns and cost is None:
        return None
    tactic_id = numbers.get("id", "").strip()
    return Candidate(
        tactic_id=int(tactic_id) if tactic_id.isdecimal() and tactic_id.isascii() else None,
        cost_ms=cost,
        ratio=_number(numbers.get("ratio")),
        correlation=_number(numbers.get("correlation")),
        kernel=tail["kernel"],
        tactic_hash=tail["hash"].lower(),
        parameter=(tail["rest"] or "").strip().rstrip(",").strip(),
    )


def _number(text: str | None) -> float | None:
    """A finite number that is not negative, or None."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def _only(blocks: list[_Block]) -> _Block | None:
    return blocks[0] if len(blocks) == 1 else None
