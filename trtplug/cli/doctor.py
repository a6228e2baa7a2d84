"""`trtplug doctor`: what this machine can do, and how to get the rest."""

from __future__ import annotations

import click

from trtplug.cli.options import Format, format_option
from trtplug.errors import DONE


@click.command()
@format_option
def doctor(format: Format) -> int:
    """Say what this machine can do, and how to get the rest."""
    from trtplug.cli.diagnosis import diagnose, diagnosis_rows
    from trtplug.cli.table import render_rows
    from trtplug.document import to_json
    from trtplug.settings import read_settings

    diagnosis = diagnose(read_settings())
    if format is Format.JSON:
        click.echo(to_json(diagnosis), nl=False)
    else:
        click.echo(render_rows(diagnosis_rows(diagnosis), format), nl=False)
    return DONE
