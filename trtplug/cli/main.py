"""Entry point: the commands, and the one place that turns errors into words and an exit status."""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, NoReturn

import click

import trtplug
from trtplug import errors
from trtplug.cli.options import Group, echo, epilog

if TYPE_CHECKING:
    from collections.abc import Sequence

_COMMANDS = {
    "build": "build",
    "inspect": "inspect",
    "sites": "sites",
    "rewrite": "rewrite",
    "tactics": "tactics",
    "verify-bundle": "inspect",
    "targets": "targets",
    "doctor": "doctor",
    "kernels": "kernels",
    "cache": "cache",
    "lock": "lock",
}
"""Name of a command -> the module of `trtplug.cli` that it is in; no other module is loaded."""


class _Commands(Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"trtplug.cli.{_COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        _add_verbosity(command)
        return command


def _count_verbosity(ctx: click.Context, _: click.Parameter, count: int) -> None:
    if count:
        from trtplug.cli.logs import show_more

        show_more(ctx.find_root(), count)


_VERBOSITY = click.Option(
    ["-v", "--verbose"],
    count=True,
    expose_value=False,
    is_eager=True,
    callback=_count_verbosity,
    help="Log decisions and their reasons to stderr; -vv logs everything.",
)


def _add_verbosity(command: click.Command) -> None:
    """Gives `-v` to a command and to those in it: it may stand before their names, or after."""
    if _VERBOSITY not in command.params:
        command.params.append(_VERBOSITY)
    if isinstance(command, click.Group):
        for each in command.commands.values():
            _add_verbosity(each)


@click.command(
    cls=_Commands,
    params=[_VERBOSITY],
    epilog=epilog(
        "trtplug build det.onnx --target rtx4090 --shape x=1x3x640x640", statuses=range(5)
    ),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(trtplug.__version__, message="%(prog)s %(version)s")
@click.pass_context
def app(ctx: click.Context) -> None:
    """Build tuned TensorRT engines for many GPUs from one ONNX model, with reports."""
    from trtplug.settings import log_file

    if (file := log_file()) is not None:
        from trtplug.cli.logs import log_to_file

        log_to_file(ctx, file)


class _Terminated(BaseException):
    """SIGTERM or SIGHUP, as something that unwinds and so cleans up."""


_CLEANING_S = 10.0
"""What an interrupted command may take to clean up before a second signal is heard."""


class _Interrupts:
    """Turns a signal into an exception that unwinds, once: another one would end the cleaning up.

    A user presses Ctrl-C twice, and `timeout` and service managers repeat SIGTERM.
    """

    def __init__(self) -> None:
        self._deaf_until = 0.0

    def __call__(self, number: int, _: object) -> None:
        """Raises, where it has not done so a moment ago."""
        now = time.monotonic()
        if now < self._deaf_until:
            return
        self._deaf_until = now + _CLEANING_S
        raise KeyboardInterrupt if number == signal.SIGINT else _Terminated


def run() -> NoReturn:
    """Runs the command line of this process, and ends it."""
    # Collecting garbage while modules load takes a tenth of a start, and there is none yet.
    gc.disable()
    try:
        interrupts = _Interrupts()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # `nohup` has it ignored, and that stays.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, interrupts)
        # Not sys.exit: taking apart all that is loaded takes longer than printing a report, and all
        # files are closed by now.
        os._exit(main(sys.argv[1:]))
    except (KeyboardInterrupt, _Terminated):
        os._exit(_interrupted())


def main(arguments: Sequence[str]) -> int:
    """Runs one command line; everything that goes wrong becomes words on stderr and a status."""
    try:
        status = main_inner(arguments)
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:  # closed by who called us
                stream.flush()
        return status
    except errors.TrtplugError as error:
        _say(f"error[{error.code}]: {error.message}", error.hint)
        return error.exit_status
    except (KeyboardInterrupt, _Terminated):
        return _interrupted()
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
    except SystemExit as leave:
        # How click takes a closed pipe. A status of 1 would say that a gate failed.
        raise BrokenPipeError from leave
    except click.Abort as error:
        raise KeyboardInterrupt from error
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "trtplug"
        message = error.format_message()
        advice = f"`{command} --help` lists its options"
        if "No such option" in message:
            from trtplug.cli.removed_options import removed_option_in

            advice = removed_option_in(message) or advice
        raise errors.UsageError(message, advice) from error
    return status if isinstance(status, int) else errors.DONE


def _interrupted() -> int:
    _say("interrupted; nothing was left half-written", "")
    return errors.INTERRUPTED


def _say(message: str, hint: str) -> None:
    # Where stderr is gone too, the exit status has to do.
    with contextlib.suppress(OSError):
        echo(f"{message}\n" + f"hint: {hint}\n" * bool(hint), err=True)


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
    from trtplug.settings import wants_traceback

    if wants_traceback():
        traceback.print_exception(error)
    return errors.FAULT
