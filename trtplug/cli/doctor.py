"""`trtplug doctor`: what this machine can do, and how to get the rest."""

from __future__ import annotations

from typing import Annotated

import typer

from trtplug.cli.options import Format
from trtplug.errors import DONE


def doctor(
    format: Annotated[Format, typer.Option(help="Form of the result.")] = Format.TEXT,
) -> int:
    """Say what this machine can do, and how to get the rest."""
    from trtplug.cli.diagnosis import diagnose, diagnosis_rows
    from trtplug.cli.table import render_rows
    from trtplug.document import to_json
    from trtplug.settings import read_settings

    diagnosis = diagnose(read_settings())
    if format is Format.JSON:
        typer.echo(to_json(diagnosis), nl=False)
    else:
        typer.echo(render_rows(diagnosis_rows(diagnosis), format), nl=False)
    return DONE
