"""Names from a model file cannot steer a terminal: seen on a pty, since a pipe hides it."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import onnx
import pytest

import trtplug.cli
from tests.cli_runner import TRTPLUG
from tests.rewrite.graphs import Builder
from trtplug.cli.options import Format, echo, lines_of


@pytest.fixture
def model(tmp_path):
    """A site, a near miss and a Softmax, each with an escape in its name, as the input has."""
    b = Builder()
    x = "x\x1b[5m"
    y = b.add("Conv", x, b.normal(4, 4, 3, 3), name="site\x1b[31m")
    b.add("Conv", y, "w", name="miss\x1b[2J")
    last = b.add("Softmax", y, name="soft\x1b[1m")
    path = tmp_path / "model.onnx"
    onnx.save(b.model(last, {x: ("N", 4, 9, 7), "w": (4, 4, 3, 3)}), path)
    return path


def on_a_terminal(*arguments, cwd):
    """Status, and all that a terminal gets of stdout and stderr."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*TRTPLUG, *map(str, arguments)], cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        said = b""
        while chunk := _read(ours):
            said += chunk
    os.close(ours)
    return process.returncode, said


def _read(descriptor):
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # How Linux says that the other end is closed.
        return b""


REWRITE = ("rewrite", "model.onnx", "-o", "out.onnx")


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        (("sites", "model.onnx"), 0, rb"miss\x1b[2J"),
        (REWRITE, 0, rb"left: miss\x1b[2J: dynamic_weight"),
        ((*REWRITE, "--precision", "fp16"), 0, rb"fp32: soft\x1b[1m (Softmax)"),
        ((*REWRITE, "--format", "json"), 0, b'"site\\u001b[31m"'),
        ((*REWRITE, "--format", "markdown"), 0, rb"left: miss\x1b[2J: dynamic_weight"),
        ((*REWRITE, "--check"), 2, rb"input 'x\x1b[5m'"),
        (("inspect", "no\x1b[5m.onnx"), 2, rb"cannot read no\x1b[5m.onnx"),
        (("sites", "model.onnx", "--shape", "y\x1b[5m=1"), 2, rb"\x1b[5m"),
    ],
)
def test_no_escape_reaches_the_terminal(model, command, status, words):
    found, said = on_a_terminal(*command, cwd=model.parent)
    assert (found, b"\x1b" in said) == (status, False), said
    assert words in said


HOSTILE = "sm\x1b[31m\x9b@me #1 https://x.y"


@pytest.mark.parametrize("err", [False, True])
def test_what_any_command_prints_has_no_control_characters(err, capsys):
    echo(f"{HOSTILE}\nnext\n", err=err)
    said = capsys.readouterr()[err]
    assert said == "sm\\x1b[31m\\x9b@me #1 https://x.y\nnext\n"


def test_a_line_of_a_name_is_one_line_and_no_markup():
    assert lines_of(["a\nb\x1b"], Format.TEXT) == "a\\nb\\x1b\n"
    shown = lines_of([HOSTILE, "- [x](http://y)"], Format.MARKDOWN)
    first, second = shown.splitlines()
    assert first.startswith("<code>") and "\x1b" not in shown  # noqa: PT018
    assert "](" not in second and "://" not in shown  # noqa: PT018


def test_only_reports_in_colour_are_printed_another_way():
    """A new command that prints with click would bring escapes to the terminal."""
    folder = Path(trtplug.cli.__file__).parent
    found = {f.name for f in folder.glob("*.py") if "click.echo(" in f.read_text()}
    assert found == {"options.py", "show.py"}
