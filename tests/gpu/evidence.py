"""What is sent back: reports, locks, logs of the steps, without paths, names and serial numbers."""

from __future__ import annotations

import getpass
import gzip
import os
import re
import socket
import sys
from typing import TYPE_CHECKING

from tests.gpu.place import REPO

if TYPE_CHECKING:
    from pathlib import Path

KEPT = (
    "build.log",
    "inspector.json",
    "lock.json",
    "manifest.json",
    "probe.json",
    "report.json",
    "step.log",
    "timing.cache.json",
)
"""Names of the files that are kept."""

_GZIP_FROM_BYTES = 200_000
_SHORTEST_NAME = 3
_UUID = re.compile(r"\bGPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)
_UUID_FIELD = re.compile(r'("(?:gpu_)?uuid"\s*:\s*)"[^"]*"')
_PATH = re.compile(
    r"(?<![\w.\]])/(?:home|root|tmp|mnt|media|srv|scratch|work|workspace|var|opt|Users)"
    r"(?:/[^\s'\",:;()\[\]]*)?"
)


def keep_files(work: Path, out: Path) -> list[str]:
    """Copies the kept files of every step; names of the copies, below `out`."""
    clean = Cleaner(work)
    made = []
    for file in sorted(p for p in work.rglob("*") if p.name in KEPT and p.is_file()):
        relative = file.relative_to(work)
        if relative.parts[0] == "store":
            continue
        text = clean(file.read_text(encoding="utf-8", errors="replace"))
        target = out / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        if len(text) >= _GZIP_FROM_BYTES:
            target = target.with_name(f"{target.name}.gz")
            target.write_bytes(gzip.compress(text.encode(), mtime=0))
        else:
            target.write_text(text, encoding="utf-8")
        made.append(str(target.relative_to(out)))
    return made


class Cleaner:
    """Takes out of a text what says whose machine it was."""

    def __init__(self, work: Path) -> None:
        python = (*sys.path, *os.environ.get("PYTHONPATH", "").split(os.pathsep))
        words = {path: "PYTHON" for path in python if len(path) > _SHORTEST_NAME}
        words |= {sys.prefix: "PYTHON", str(REPO): "REPO", str(work): "WORK"}
        words |= {os.path.realpath(path): word for path, word in list(words.items())}
        # The longest first: one may lie in another.
        self._words = sorted(words.items(), key=lambda w: -len(w[0]))
        names = [(_user(), "USER"), (socket.gethostname(), "HOST")]
        self._names = [
            (re.compile(rf"(?<!\w){re.escape(name)}(?!\w)"), word)
            for name, word in names
            if len(name) >= _SHORTEST_NAME
        ]

    def __call__(self, text: str) -> str:
        """The text without them."""
        for path, word in self._words:
            text = text.replace(path, word)
        text = _PATH.sub(lambda m: f"PATH/{m[0].rpartition('/')[2]}", text)
        for name, word in self._names:
            text = name.sub(word, text)
        return _UUID_FIELD.sub(r'\1"UUID"', _UUID.sub("GPU-UUID", text))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
