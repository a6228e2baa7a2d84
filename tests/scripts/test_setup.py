"""The set-up script on machines that lack something; nothing here reaches the network."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent.parent

TOOLS = ("bash", "cat", "dirname", "env", "mkdir", "rm", "touch")


@pytest.fixture
def checkout(tmp_path):
    """A checkout of which only set-up matters, in a folder with a space in its name."""
    folder = tmp_path / "my checkout"
    (folder / "scripts").mkdir(parents=True)
    shutil.copy(REPO / "scripts" / "setup.sh", folder / "scripts")
    shutil.copy(REPO / "pyproject.toml", folder)
    return folder


@pytest.fixture
def machine(tmp_path):
    """The folder that is all of PATH: a few tools, no Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        (folder / tool).symlink_to(shutil.which(tool))
    return folder


def add_python(machine, name, *, fails_on):
    """A Python that fails where its arguments hold the text `fails_on`."""
    script = f'#!{shutil.which("sh")}\ncase "$*" in *{fails_on}*) exit 1 ;; esac\n'
    script += f'exec {sys.executable!r} "$@"\n'.replace("'", '"')
    (machine / name).write_text(script)
    (machine / name).chmod(0o755)


def set_up(checkout, machine, **environ):
    program = f'. "{checkout}/scripts/setup.sh"; set_up_venv .venv ""; echo "$VENV"'
    return subprocess.run(
        [shutil.which("bash"), "-c", program, "scripts/demo"],
        cwd="/",
        env={"PATH": str(machine), "HOME": "/nonexistent", **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_no_python_says_how_to_get_one(checkout, machine):
    done = set_up(checkout, machine)
    assert done.returncode == 4
    assert "no Python 3.10 to 3.14 was found" in done.stderr
    assert "apt-get install python3 python3-venv" in done.stderr


def test_a_python_too_old_or_broken_is_passed_over(checkout, machine):
    add_python(machine, "python3", fails_on="version_info")
    add_python(machine, "python3.12", fails_on="ensurepip")
    done = set_up(checkout, machine)
    assert done.returncode == 4
    assert "python3.12 (Python 3." in done.stderr


def test_a_python_without_venv_says_which_package_has_it(checkout, machine):
    add_python(machine, "python3", fails_on="ensurepip")
    done = set_up(checkout, machine)
    assert done.returncode == 4
    version = "{}.{}".format(*sys.version_info)
    assert f"apt-get install python{version}-venv" in done.stderr


def test_a_wrong_wish_is_refused(checkout, machine):
    done = set_up(checkout, machine, PYTHON="/bin/false")
    assert done.returncode == 4
    assert "PYTHON=/bin/false is not a Python 3.10 to 3.14" in done.stderr


@pytest.mark.long
def test_only_a_half_made_environment_is_made_anew(checkout, machine):
    """pip fails here, for want of a package in the checkout; the last step is done by hand."""
    add_python(machine, "python3", fails_on="nothing")
    for _ in range(2):
        done = set_up(checkout, machine, PIP_NO_INDEX="1")
        assert done.returncode == 4
        assert "making" in done.stderr
        assert "pip could not install" in done.stderr

    venv = checkout / ".venv"
    digest = f'. "{checkout}/scripts/setup.sh"; _digest "{venv}/bin/python" ""'
    stamp = subprocess.run(
        [shutil.which("bash"), "-c", digest], capture_output=True, text=True, check=True
    ).stdout
    (venv / "trtplug-unfinished").unlink()
    (venv / "trtplug-stamp").write_text(stamp)
    done = set_up(checkout, machine, PIP_NO_INDEX="1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == str(venv)

    with (checkout / "pyproject.toml").open("a") as file:
        file.write("# a change\n")
    done = set_up(checkout, machine, PIP_NO_INDEX="1")
    assert "installing" in done.stderr
    assert "making" not in done.stderr
