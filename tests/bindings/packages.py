"""Packages that tests look into and no environment needs: put by pip into a cache of the checkout.

The cache is `.cache/` (ignored by git); a package is fetched once, and again only when it is gone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

ROOT = Path(__file__).resolve().parent.parent.parent
CACHE = ROOT / ".cache" / f"cp{sys.version_info.major}{sys.version_info.minor}"


def installed(requirement: str) -> Path:
    """Folder with the package of a requirement such as `cuda-core==1.2.2`, without dependencies."""
    return _made(requirement, ("install", "--no-deps", "--target"))


def source_of(requirement: str) -> Path:
    """Folder with a package's source distribution, unpacked; nothing of it is built."""
    name = requirement.partition("==")[0]
    folder = _made(
        f"{requirement}.source", ("download", "--no-deps", "--no-binary", name, "-d"), requirement
    )
    unpacked = folder / "unpacked"
    if not unpacked.is_dir():
        (archive,) = folder.glob("*.tar.gz")
        shutil.unpack_archive(archive, unpacked)
    return unpacked


def _made(name: str, action: tuple[str, ...], requirement: str = "") -> Path:
    folder = CACHE / name
    CACHE.mkdir(parents=True, exist_ok=True)
    with FileLock(CACHE / f"{name}.lock"):
        if not folder.is_dir():
            partial = CACHE / f"{name}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            _pip(requirement or name, (*action, str(partial)))
            partial.rename(folder)
    return folder


def _pip(requirement: str, action: tuple[str, ...]) -> None:
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "--no-input")
    done = subprocess.run(
        [*pip, *action, requirement],
        capture_output=True,
        text=True,
        check=False,
        env={k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PIP_TARGET")},
    )
    if done.returncode == 0:
        return
    if "No matching distribution" in done.stderr:
        pytest.skip(f"the index has no {requirement} for Python {sys.version.split()[0]}")
    pytest.fail(f"pip could not get {requirement}:\n{done.stderr}", pytrace=False)
