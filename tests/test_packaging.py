"""The wheel and the sdist, built from this checkout, installed elsewhere and run there."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent


def python_module(*argv, cwd="/"):
    command = [sys.executable, "-m", *map(str, argv)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr


def pip(command, *argv):
    python_module("pip", "--disable-pip-version-check", command, "--no-deps", "--no-index", *argv)


def build_wheel(source, folder):
    pip("wheel", "--no-build-isolation", "--wheel-dir", folder, source)
    (wheel,) = folder.glob("trtplug-*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(REPO, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A folder, with a space in its name, that holds the wheel's contents and nothing else."""
    folder = tmp_path_factory.mktemp("installed here") / "site packages"
    pip("install", "--target", folder, wheel)
    return folder


@pytest.fixture
def run(installed, own_store, tmp_path):
    """Runs Python on the installed copy: PYTHONPATH stands before the link to the checkout."""

    def run_python(*argv):
        environ = {**os.environ, "PYTHONPATH": str(installed)}
        command = [sys.executable, *argv]
        return subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60
        )

    return run_python


def files_of(name):
    """What git would keep of a top-level folder, as paths relative to it."""
    paths = (p for p in (REPO / name).rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    return {p.relative_to(REPO / name).as_posix() for p in paths}


@pytest.mark.parametrize("name", ["profiles", "plugins"])
def test_the_wheel_holds_the_folder(name, wheel):
    prefix = f"trtplug/_resources/{name}/"
    shipped = {n.removeprefix(prefix) for n in zipfile.ZipFile(wheel).namelist() if prefix in n}
    assert files_of(name)
    assert shipped == files_of(name)


def test_the_wheel_holds_the_package_and_nothing_beside_it(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {n.split("/")[0].split("-")[0] for n in names} == {"trtplug"}
    assert {n.removeprefix("trtplug/") for n in names if n.startswith("trtplug/")} >= files_of(
        "trtplug"
    )
    assert any(n.endswith("licenses/LICENSE") for n in names)


def test_it_is_the_installed_copy_that_runs(run, installed):
    done = run("-c", "import trtplug; print(trtplug.__file__)")
    assert Path(done.stdout.strip()).is_relative_to(installed), done.stdout + done.stderr


def test_the_installed_copy_finds_what_it_ships(run, installed):
    program = "from trtplug.settings import resource_folder as f; print(f('{}'))"
    folders = [
        Path(run("-c", program.format(name)).stdout.strip()) for name in ("profiles", "plugins")
    ]
    assert folders == [installed / "trtplug" / "_resources" / n for n in ("profiles", "plugins")]


def test_version(run):
    import trtplug

    done = run("-m", "trtplug", "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert trtplug.__version__ in done.stdout


def test_help(run):
    done = run("-m", "trtplug", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "build" in done.stdout


def test_targets_lists_every_profile(run):
    done = run("-m", "trtplug", "targets")
    assert done.returncode == 0, done.stderr
    for profile in (REPO / "profiles").glob("*.toml"):
        assert profile.stem in done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sdist")
    python_module("hatchling", "build", "--target", "sdist", "--directory", folder, cwd=REPO)
    (sdist,) = folder.glob("trtplug-*.tar.gz")
    return sdist


def test_the_sdist_has_the_documentation(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    pages = {f"docs/{page.name}" for page in (REPO / "docs").iterdir()}
    assert pages | {"README.md", "CHANGELOG.md"} <= names


def test_the_sdist_gives_the_same_wheel(wheel, sdist, tmp_path):
    again = build_wheel(sdist, tmp_path / "wheel")

    def contents(path):
        archive = zipfile.ZipFile(path)
        return {name: archive.read(name) for name in archive.namelist()}

    assert contents(again) == contents(wheel)
