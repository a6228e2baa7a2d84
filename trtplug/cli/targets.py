"""`trtplug targets`: the GPU profiles."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from trtplug.cli.options import Format, format_option

if TYPE_CHECKING:
    from trtplug.profile import GpuProfile


@click.command()
@format_option
def targets(format: Format) -> int:
    """List the GPU profiles, and what can build for each here."""
    from trtplug.backends.find import BACKENDS
    from trtplug.profile import bundled_folders, load_profiles
    from trtplug.settings import read_settings

    profiles = sorted(load_profiles(bundled_folders(read_settings())), key=lambda p: (p.sm, p.name))
    builders = {
        p.name: [b.name for b in BACKENDS if b.name != "null" and p.sm in b.capabilities().sms]
        for p in profiles
    }
    click.echo(_render(profiles, builders, format))
    return 0


def _render(profiles: list[GpuProfile], builders: dict[str, list[str]], format: Format) -> str:
    if format is Format.JSON:
        records = [
            {"name": p.name, "gpu": p.gpu, "sm": str(p.sm), "backends": builders[p.name]}
            for p in profiles
        ]
        return json.dumps({"schema": "trtplug.targets/1", "targets": records}, indent=2)
    rows = [("target", "SM", "GPU", "memory", "can be built here with")]
    rows += [
        (
            p.name,
            str(p.sm),
            p.gpu,
            f"{p.memory_bytes / 2**30:.0f} GiB" if p.memory_bytes else "unknown",
            ", ".join(builders[p.name]) or "nothing: it needs a machine with this GPU",
        )
        for p in profiles
    ]
    if format is Format.MARKDOWN:
        lines = [f"| {' | '.join(row)} |" for row in rows]
        return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows
    )
