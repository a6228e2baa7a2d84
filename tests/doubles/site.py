"""A place that looks like a machine with enterprise TensorRT, pycuda and one GPU."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bindings.packages import installed
from tests.bindings.versions import VERSIONS
from tests.cli_runner import Ran, start
from tests.doubles.libcuda import write_libcuda, write_nvml
from tests.fork_server import run_forked

if TYPE_CHECKING:
    import subprocess

_DOUBLES = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Site:
    """Packages on PYTHONPATH, libraries on LD_LIBRARY_PATH, and a folder to work in."""

    folder: Path
    work: Path

    @property
    def environ(self) -> dict[str, str]:
        """That of a command on this machine."""
        # Locks of GPUs lie in the system's temporary folder; these GPUs are the test's own.
        (self.folder / "tmp").mkdir(exist_ok=True)
        return {
            **os.environ,
            "PYTHONPATH": str(self.folder),
            "LD_LIBRARY_PATH": str(self.folder / "lib"),
            "TMPDIR": str(self.folder / "tmp"),
        }

    def script(self, **words: object) -> None:
        """How the double is to misbehave from now on, see `tensorrt.release`."""
        (self.folder / "double.json").write_text(json.dumps(words))

    def trtplug(self, *arguments: object) -> Ran:
        """One command line, to its end."""
        return run_forked(*map(str, arguments), cwd=self.work, env=self.environ)

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        """One command line, under way."""
        return start(*map(str, arguments), cwd=self.work, env=self.environ)


def make_site(
    folder: Path,
    *,
    version: str = "11.4.0.106",
    cuda_package: str | None = "pycuda",
    driver: str | None = "580.95.05",
    quick_plugins: bool = False,
    **gpu: object,
) -> Site:
    """A machine of one release.

    Args:
        folder: where.
        version: of TensorRT.
        cuda_package: None leaves CUDA's package out.
        driver: None leaves out what tells its version.
        quick_plugins: whether `tensorrt.plugin` is there: NVIDIA's own, out of the release's wheel.
        gpu: see `write_libcuda`.
    """
    site, work = folder / "site", folder / "work"
    for place in (site / "lib", work):
        place.mkdir(parents=True)
    (site / "tensorrt").symlink_to(_DOUBLES / "tensorrt")
    install(site, "tensorrt", version)
    if quick_plugins:
        (requirement,) = (r for r in VERSIONS.values() if r.endswith(f"=={version}"))
        more = site / "tensorrt_bindings"
        more.mkdir()
        (more / "plugin").symlink_to(installed(requirement) / "tensorrt_bindings/plugin")
    if cuda_package == "pycuda":
        (site / "pycuda").symlink_to(_DOUBLES / "pycuda")
        install(site, "pycuda", "2026.1")
    write_libcuda(site / "lib", **gpu)  # type: ignore[arg-type]
    if driver is not None:
        write_nvml(site / "lib", driver=driver)
    return Site(folder=site, work=work)


def install(site: Path, name: str, version: str) -> None:
    """Leaves the metadata of a package, as pip would."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
