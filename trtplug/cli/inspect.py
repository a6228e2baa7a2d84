"""`trtplug inspect` and `trtplug verify-bundle`: what a file holds, and whether it is intact."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trtplug.cli.options import Format
from trtplug.errors import DONE, GATE_FAILED, UsageError

if TYPE_CHECKING:
    from trtplug.engine.contents import BundleCheck


def inspect(
    file: Annotated[
        Path, typer.Argument(help="An ONNX model, a bundle, a report, a lock or an engine.")
    ],
    shape: Annotated[
        list[str] | None,
        typer.Option(help="NAME=SIZES: sizes at which a model's operations are counted."),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare every file of a bundle with its manifest.")
    ] = False,
    format: Annotated[Format, typer.Option(help="Form of the result.")] = Format.TEXT,
) -> int:
    """Say what a file holds."""
    if verify:
        return _verify(file, format)
    from trtplug.cli.inspection import inspect_file

    typer.echo(inspect_file(file, tuple(shape or ()), format), nl=False)
    return DONE


def verify_bundle(
    folder: Annotated[Path, typer.Argument(help="The bundle.")],
    format: Annotated[Format, typer.Option(help="Form of the result.")] = Format.TEXT,
) -> int:
    """Compare every file of a bundle with its manifest; status 1 where one differs."""
    return _verify(folder, format)


def _verify(folder: Path, format: Format) -> int:
    from trtplug.engine.contents import verify_bundle as check

    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", "give the folder that `trtplug build` made")
    result = check(folder)
    typer.echo(_verdict(folder, result, format), nl=False)
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
