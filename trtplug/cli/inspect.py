"""`trtplug inspect` and `trtplug verify-bundle`: what a file holds, and whether it is intact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trtplug.cli.options import Format, format_option, path
from trtplug.errors import DONE, GATE_FAILED, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from trtplug.engine.contents import BundleCheck


@click.command()
@click.argument("file", type=path)
@click.option(
    "--shape",
    multiple=True,
    help="NAME=SIZES: sizes at which a model's operations are counted.",
)
@click.option("--verify", is_flag=True, help="Compare every file of a bundle with its manifest.")
@format_option
def inspect(file: Path, shape: tuple[str, ...], verify: bool, format: Format) -> int:
    """Say what a model, bundle, report, lock or engine holds."""
    if verify:
        return _verify(file, format)
    from trtplug.cli.inspection import inspect_file

    click.echo(inspect_file(file, shape, format), nl=False)
    return DONE


@click.command()
@click.argument("folder", type=path)
@format_option
def verify_bundle(folder: Path, format: Format) -> int:
    """Compare a bundle with its manifest.

    The status is 1 where a file differs.
    """
    return _verify(folder, format)


def _verify(folder: Path, format: Format) -> int:
    from trtplug.engine.contents import verify_bundle as check

    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", "give the folder that `trtplug build` made")
    result = check(folder)
    click.echo(_verdict(folder, result, format), nl=False)
    return GATE_FAILED if result.problems else DONE


def _verdict(folder: Path, result: BundleCheck, format: Format) -> str:
    import json

    from trtplug.report.names import printable

    if format is Format.JSON:
        document = {
            "schema": "trtplug.bundle-check/1",
            "files": result.files,
            "intact": not result.problems,
            "problems": list(result.problems),
        }
        return json.dumps(document, indent=2) + "\n"
    if not result.problems:
        return f"{folder}: all {result.files} files are as the manifest says\n"
    lines = [f"{folder}: {len(result.problems)} of {result.files} files differ", *result.problems]
    return "".join(printable(line) + "\n" for line in lines)
