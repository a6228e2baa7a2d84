"""Candidate tables from the VERBOSE log of a build with an editable timing cache (TensorRT 10.8+).

The log is the only source of them: the cache holds the winner alone. In goes what the builder said,
message by message, with the thread that said it where the logger kept it; out come the tables.
Builders differ, logs end early, threads write between each other's lines, names hold anything:
nothing here raises, and a line whose table is not certain is counted, never guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trtplug.backends.layer_listing import onnx_layer_names
from trtplug.backends.tactic_table import Candidate, CandidateTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_PREFIX = re.compile(
    r"(?:\[(?:\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d|TRT|TensorRT|[FEWIVX]|thread (?P<thread>\d+))\]\s*)+"
)
"""What loggers put before a message: time, name, severity, and ours the thread."""
_OP = re.compile(
    r"Autotuning op (?P<op>.*?)\(key: (?P<key>0x[0-9a-fA-F]{1,64})\)\s*:?\s*(?P<nodes>.*)"
)
_HEADER = re.compile(r"\s*tactic_id\s*,")
_ROW = re.compile(r"\s*\d{1,9}\s*,")
_SELECTED = re.compile(
    r"The selected tactic is .*?:\s*(?P<hash>0x[0-9a-fA-F]{1,16})\s*(?:,\s*(?P<cost>[^\s,]+))?"
)
_WRITTEN = re.compile(r"Writing the best tactic \(?(?P<hash>0x[0-9a-fA-F]{1,16})\)? to cache")
_TAIL = re.compile(r"(?P<kernel>.*?)\s*,\s*(?P<hash>0x[0-9a-fA-F]{1,16})\s*(?:,(?P<rest>.*))?")

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TacticLog:
    """Everything about tactics in one log."""

    tables: tuple[CandidateTable, ...]
    """In the order in which they begin."""
    unread: int
    """Rows that could not be read."""
    loose: int
    """Lines whose table is not certain."""


def parse_tactic_text(text: str) -> TacticLog:
    """The tables in a log kept as text, such as `build.log`."""
    return parse_tactic_log(Message(text=line) for line in text.splitlines())


def parse_tactic_log(messages: Iterable[Message]) -> TacticLog:
    """The tables in what a builder said; never raises."""
    reader = _Reader()
    for line, thread in _lines(messages):
        reader.take(line, thread)
    return TacticLog(
        tables=tuple(block.table() for block in reader.blocks),
        unread=reader.unread,
        loose=reader.loose,
    )


def _lines(messages: Iterable[Message]) -> Iterator[tuple[str, int | None]]:
    for message in messages:
        for line in message.text.splitlines():
            prefix = _PREFIX.match(line)
            said = prefix["thread"] if prefix else None
            rest = line[prefix.end() :] if prefix else line
            yield rest, int(said) if said else message.thread


@dataclass(slots=True, eq=False)
class _Block:
    """A table under way."""

    op: str
    key: str
    onnx_layers: tuple[str, ...]
    certain: bool
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

    def table(self) -> CandidateTable:
        return CandidateTable(
            op=self.op,
            key=self.key,
            onnx_layers=self.onnx_layers,
            candidates=tuple(self.rows),
            selected=self.selected,
            selected_ms=self.selected_ms,
            written=self.written,
            complete=self.certain and self.selected is not None and self.has(self.selected),
        )


class _Reader:
    """Takes lines one by one."""

    def __init__(self) -> None:
        self.blocks: list[_Block] = []
        self.unread = 0
        self.loose = 0
        self._open_by_thread: dict[int | None, list[_Block]] = {}
        self._unwritten: dict[int | None, list[_Block]] = {}

    def take(self, line: str, thread: int | None) -> None:
        if match := _OP.search(line):
            self._begin(match, thread)
        elif _HEADER.match(line):
            self._set_columns(line, thread)
        elif _ROW.match(line):
            self._add_row(line, thread)
        elif match := _SELECTED.search(line):
            self._select(match, thread)
        elif match := _WRITTEN.search(line):
            self._write(match["hash"].lower(), thread)

    def _begin(self, match: re.Match[str], thread: int | None) -> None:
        before = self._under_way(thread)
        # Without threads a second table that begins before the first ends may be between its lines.
        certain = thread is not None or not before
        for block in before:
            block.certain = False
        block = _Block(
            op=match["op"],
            key=match["key"].lower(),
            onnx_layers=onnx_layer_names(match["nodes"]),
            certain=certain,
        )
        self.blocks.append(block)
        # A thread works on one table at a time. Where threads are not known, an operation whose
        # table never came makes way for the next one; a table that has begun does not.
        kept = [] if thread is not None else [b for b in before if b.rows]
        self._open_by_thread[thread] = [*kept, block]

    def _under_way(self, thread: int | None) -> list[_Block]:
        """Blocks that the next row may belong to."""
        return self._open_by_thread.get(thread, [])

    def _set_columns(self, line: str, thread: int | None) -> None:
        names = [name.strip() for name in line.split(",")]
        if "kernel_name" in names and (under_way := self._under_way(thread)):
            before = names[: names.index("kernel_name")]
            under_way[-1].columns = tuple(_NUMBERS.get(name, "") for name in before)

    def _add_row(self, line: str, thread: int | None) -> None:
        under_way = self._under_way(thread)
        if not under_way:
            return  # no table is open: some other line that starts with a number
        row = _row(line, under_way[-1].columns)
        if row is None:
            self.unread += 1
            under_way[-1].certain = False
            return
        fitting = [b for b in under_way if b.fits(row)] if len(under_way) > 1 else under_way
        if len(fitting) == 1:
            fitting[0].rows.append(row)
        else:
            self._uncertain(fitting or under_way)

    def _select(self, match: re.Match[str], thread: int | None) -> None:
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

    def _write(self, tactic: str, thread: int | None) -> None:
        waiting = self._unwritten.get(thread, [])
        # The newest: a builder writes a tactic right after it has chosen it.
        block = next((b for b in reversed(waiting) if b.selected == tactic), None)
        if block is None:
            self.loose += 1
            return
        block.written = tactic
        waiting.remove(block)

    def _uncertain(self, blocks: list[_Block]) -> None:
        self.loose += 1
        for block in blocks:
            block.certain = False


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
