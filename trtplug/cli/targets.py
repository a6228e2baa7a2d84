"""`trtplug targets`: the GPU profiles."""

from __future__ import annotations

import click

from trtplug.cli.options import Format, echo, epilog, format_option
from trtplug.errors import DONE
from trtplug.report.tables import render_grid, render_json
from trtplug.report.words import UNKNOWN, format_bytes


@click.command(epilog=epilog("trtplug targets --format json"))
@format_option
def targets(format: Format) -> int:
    """List the GPU profiles and the builders for each."""
    from trtplug.backends.find import BACKENDS
    from trtplug.profile import bundled_folders, load_profiles
    from trtplug.settings import read_settings

    profiles = sorted(load_profiles(bundled_folders(read_settings())), key=lambda p: (p.sm, p.name))
    builders = {
        p.name: [b.name for b in BACKENDS if b.name != "null" and p.sm in b.capabilities().sms]
        for p in profiles
    }
    if format is Format.JSON:
        records = [
            {"name": p.name, "gpu": p.gpu, "sm": str(p.sm), "backends": builders[p.name]}
            for p in profiles
        ]
        echo(render_json("trtplug.targets/1", {"targets": records}))
        return DONE
    rows = [
        (
            p.name,
            str(p.sm),
            p.gpu,
            format_bytes(p.memory_bytes) if p.memory_bytes else UNKNOWN,
            ", ".join(builders[p.name]) or "none: build on a machine with this GPU",
        )
        for p in profiles
    ]
    head = ("target", "SM", "GPU", "memory", "builders here")
    echo(render_grid(head, rows, format, ("memory",)))
    return DONE
