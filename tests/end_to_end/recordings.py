"""Bundles that many tests begin with: each is built once a process, and copied."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.doubles.site import Site, make_site
from tests.fork_server import run_forked
from tests.models import conv_chain, save

BUILD = ("build", "m.onnx", "--backend", "trt", "--target", "local")


@dataclass(frozen=True, slots=True)
class Recordings:
    """Bundles `out` of a chain of three convolutions, with the stores that their builds left."""

    factory: pytest.TempPathFactory
    made: dict[tuple[str, ...], Path] = field(default_factory=dict)

    def copy(self, folder: Path, store: Path, *flags: str, version: str = "11.4.0.106") -> Site:
        """A machine of its own with such a bundle, in a folder; its store is copied too.

        Args:
            folder: of the test.
            store: of the test.
            flags: of the build.
            version: of TensorRT.
        """
        key = (version, *flags)
        if key not in self.made:
            self.made[key] = self._make(version, flags)
        site = make_site(folder, version=version)
        shutil.copytree(self.made[key] / "work", site.work, dirs_exist_ok=True)
        shutil.copytree(self.made[key] / "store", store, dirs_exist_ok=True)
        return site

    def _make(self, version: str, flags: tuple[str, ...]) -> Path:
        folder = self.factory.mktemp("recording")
        site = make_site(folder, version=version)
        save(conv_chain(3), site.work / "m.onnx")
        environ = {**site.environ, "TRTPLUG_STORE": str(folder / "store")}
        ran = run_forked(*BUILD, *flags, cwd=site.work, env=environ)
        assert ran.status == 0, ran.err
        return folder
