"""Entry point: the commands, and the one place that turns errors into words and an exit status."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import signal
import sys
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

import trtplug
from trtplug import errors
from trtplug.cli.build import build
from trtplug.cli.doctor import doctor
from trtplug.cli.inspect import inspect, verify_bundle
from trtplug.cli.kernels import app as kernels
from trtplug.cli.rewrite import rewrite
from trtplug.cli.sites import sites
from trtplug.cli.targets import targets

if TYPE_CHECKING:
    from collections.abc import Sequence

app = typer.Typer(
    name="trtplug",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for _command in (build, inspect, sites, rewrite, verify_bundle, targets, doctor):
    app.command()(_command)
app.add_typer(kernels)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"trtplug {trtplug.__version__}")
        raise typer.Exit


@app.callback()
def trtplug_command(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """One ONNX model in; one tuned, checked TensorRT engine per GPU out, with a report."""


class _Terminated(BaseException):
    """SIGTERM or SIGHUP, as something that unwinds and so cleans up."""


def run() -> NoReturn:
    """The console script."""
    # Collecting garbage while modules load takes a tenth of a start, and there is none yet.
    gc.disable()
    for number in (signal.SIGTERM, signal.SIGHUP):
        # `nohup` has it ignored, and that stays.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _terminate)
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Runs one command line; everything that goes wrong becomes words on stderr and a status."""
    try:
        return main_inner(arguments)
    except errors.TrtplugError as error:
        _say(f"error[{error.code}]: {error.message}", error.hint)
        return error.exit_status
    except (KeyboardInterrupt, _Terminated):
        _say("interrupted; nothing was left half-written", "")
        return errors.INTERRUPTED
    except BrokenPipeError:
        # Whoever reads our output has gone; Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return errors.DONE
    except OSError as error:
        return _system_said(error)
    except Exception as error:  # noqa: BLE001 - the last line of defence: a fault of ours
        return _fault(error)


def main_inner(arguments: Sequence[str]) -> int:
    """As `main`, but errors of ours are raised; for tests and callers.

    Raises:
        TrtplugError: whatever the command raises.
    """
    try:
        # Without a command there is nothing to do but to say what there is.
        status = app(args=list(arguments) or ["--help"], prog_name="trtplug", standalone_mode=False)
    except typer.Exit as leave:
        return leave.exit_code
    except SystemExit as leave:
        # How typer takes a closed pipe. A status of 1 would say that a gate failed.
        raise BrokenPipeError from leave
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "trtplug"
        message = error.format_message()
        advice = f"`{command} --help` lists what it takes"
        if "No such option" in message:
            from trtplug.cli.gone import advice_in

            advice = advice_in(message) or advice
        raise errors.UsageError(message, advice) from error
    if status == errors.INTERRUPTED:  # typer's way to take Ctrl-C; no command returns it
        raise KeyboardInterrupt
    return status if isinstance(status, int) else errors.DONE


def _terminate(*_: object) -> None:
    raise _Terminated


def _say(message: str, hint: str) -> None:
    # Where stderr is gone too, the exit status has to do.
    with contextlib.suppress(OSError):
        typer.echo(message, err=True)
        if hint:
            typer.echo(f"hint: {hint}", err=True)


def _system_said(error: OSError) -> int:
    """An error of the file system that no command met in its own words."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG):
        return _fault(error)
    where = f" {error.filename}" if error.filename else " its output"
    _say(f"error[output]: cannot write{where}: {error.strerror}", "")
    return errors.MACHINE_LACKS


def _fault(error: Exception) -> int:
    import traceback

    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{frame.name}, line {frame.lineno}"
    _say(
        f"error[fault]: trtplug itself failed: {type(error).__name__}: {error} (in {where})",
        "this is a fault of trtplug's; set TRTPLUG_TRACEBACK=1, run it again and report all of it",
    )
    if os.environ.get("TRTPLUG_TRACEBACK"):
        traceback.print_exception(error)
    return errors.FAULT
