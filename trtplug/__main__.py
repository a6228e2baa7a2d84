"""Entry point of `trtplug` and `python -m trtplug`; it answers signals from the first import on."""

# No more than this: until the handlers are there, Ctrl-C is a traceback of Python's.
import os
import signal

_INTERRUPTED = 130


def run() -> None:
    """Loads the command line and runs it; until that is loaded, a signal just ends the process."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # `nohup` has it ignored, and that stays.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)
    from trtplug.cli.main import run as run_commands

    run_commands()


def _leave(*_: object) -> None:
    os.write(2, b"interrupted; nothing was left half-written\n")
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    run()
