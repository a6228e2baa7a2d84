"""The options of `trtplug build` for the documentation, from their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.backends.options import TrtOptions, options_of
from trtplug.backends.trt.capabilities import CAPABILITIES, OLDEST, find_capability
from trtplug.backends.trt.options import FREE_FLAGS
from trtplug.cli.build_options import OPTIONS, value_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trtplug.backends.options import Option


def option_names() -> Iterator[tuple[str, str]]:
    """Options, and their values that are names in TensorRT, with the name that each needs."""
    for row in options_of(TrtOptions).values():
        if row.sets:
            yield row.flag, row.sets
        for capability in CAPABILITIES:
            first, _, value = capability.name.partition(".")
            settable = row.enum != "BuilderFlag" or value in FREE_FLAGS
            if first == row.enum and value and settable:
                yield f"{row.flag} {value}", capability.name


def options_table(rows: Iterable[Option] = OPTIONS) -> str:
    """Every option of `trtplug build`, from its row."""
    lines = ["| option | in trtplug.toml | meaning | builder |", "|---|---|---|---|"]
    for row in rows:
        value = value_of(row).replace("|", "\\|")
        flag = row.off_flag if row.kind == "switch" else f"{row.flag} {value}".strip()
        config = f"{row.key} = false" if row.kind == "switch" else row.key
        config = f"`{config}`" if row.in_config else ""
        meaning = row.help if row.kind != "switch" else f"Turns off: {row.help}"
        cells = (f"`{flag}`", config, meaning, _builder(row))
        lines.append(f"| {' | '.join(cells)} |".replace("|  |", "| |"))
    return "\n".join(lines)


def _builder(row: Option) -> str:
    """`trt` and the first release that has it, where that is not the oldest supported one."""
    if row.backend != "trt":
        return "rtx, trt"
    capability = find_capability(row.sets)
    if capability is None or capability.in_version(OLDEST):
        return "trt"
    return f"trt {capability.since}"
