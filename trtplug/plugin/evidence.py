"""Measurements of single sites, from a file of JSON lines: what `--plugin auto` decides by.

Each line is a document `trtplug.site-measurement/1`. A site is known by the digest of its problem,
so that a measurement holds for every convolution that is alike, in any model. Measures nothing.
"""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.document import Reader
from trtplug.errors import DocumentError
from trtplug.files import read_text
from trtplug.kernels.kit import problem_to_plain
from trtplug.store import key_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trtplug.kernels.problem import AnyProblem


SCHEMA = "trtplug.site-measurement/1"

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteMeasurement:
    """One line: the plugin and what TensorRT has of its own, for one problem on one GPU.

    All samples are times of one run on the device, in microseconds, at the problem's opt sizes.
    """

    schema: str
    """`trtplug.site-measurement/1`."""
    problem_sha256: str
    """Digest of the site or pair, as in `trtplug build --dry-run --format json`."""
    gpu: str
    """Name of the GPU, as reported by the driver."""
    driver: str
    """Driver version, such as `580.95.05`."""
    backend_version: str
    """Version of TensorRT, such as `11.4.0.106`."""
    plugin_us: tuple[float, ...]
    """Samples of the plugin's layer."""
    reformat_us: tuple[float, ...]
    """Samples of the reformats added for the plugin, summed; empty if there are none."""
    native_us: tuple[float, ...]
    """Samples of TensorRT's own layers for the same nodes."""
    tactic: str | None = None
    """The measured tactic of the plugin; decides the packing. Optional."""

    @property
    def samples(self) -> tuple[int, int]:
        """Number of samples with and without the plugin."""
        return len(self.plugin_us), len(self.native_us)

    @property
    def with_plugin_us(self) -> float:
        """Median of the plugin, and that of its reformats where there are any."""
        reformats = _quartile(self.reformat_us, 0.5) if self.reformat_us else 0.0
        return _quartile(self.plugin_us, 0.5) + reformats

    @property
    def without_us(self) -> float:
        """Median without the plugin."""
        return _quartile(self.native_us, 0.5)

    @property
    def plugin_wins(self) -> bool:
        """Whether the plugin is faster beyond the spread of the samples.

        The upper quartiles of plugin and reformats together lie below the lower quartile without
        it. A single sample is its own quartile.
        """
        upper = _quartile(self.plugin_us, 0.75)
        upper += _quartile(self.reformat_us, 0.75) if self.reformat_us else 0.0
        return upper < _quartile(self.native_us, 0.25)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All measurements of a file."""

    measurements: tuple[SiteMeasurement, ...]
    """The last of each problem and GPU, as far as they come from a file."""
    sha256: str | None
    """Of the file; None where there is none."""

    def find(self, problem: AnyProblem, gpu: str) -> SiteMeasurement | None:
        """The measurement of this very problem on a GPU of that name; the last line counts."""
        wanted = problem_digest(problem)
        found = (m for m in reversed(self.measurements) if m.problem_sha256 == wanted)
        return next((m for m in found if m.gpu == gpu), None)


NO_EVIDENCE = Evidence(measurements=(), sha256=None)


def problem_digest(problem: AnyProblem) -> str:
    """What a problem is known by: all that a kernel is generated from, sizes of its input too."""
    return key_of({"op": type(problem).__name__, **problem_to_plain(problem)})


def read_evidence(file: Path | None) -> Evidence:
    """The measurements of a file; none where no file is given. Empty lines are passed over.

    Raises:
        FileUnreadableError: it cannot be read.
        DocumentError: a line is no measurement; it is named by its number.
    """
    if file is None:
        return NO_EVIDENCE
    text = read_text(file)
    return Evidence(
        measurements=_read_lines(text, file), sha256=hashlib.sha256(text.encode()).hexdigest()
    )


def _read_lines(text: str, file: Path) -> tuple[SiteMeasurement, ...]:
    """The last one of each problem and GPU; a file that only ever grows may have any length."""
    reader = Reader(SiteMeasurement, SCHEMA)
    last: dict[tuple[str, str], SiteMeasurement] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            read = reader.read(line, f"{file}:{number}")
            if problem := _problem(read):
                raise DocumentError(path=f"{file}:{number}", wanted=SCHEMA, problem=problem)
            last[read.problem_sha256, read.gpu] = read
    return tuple(last.values())


def _problem(read: SiteMeasurement) -> str:
    if not _SHA256.fullmatch(read.problem_sha256):
        return f"problem_sha256 {read.problem_sha256[:80]!r} is no SHA-256 in lower-case hex"
    for name in ("gpu", "driver", "backend_version"):
        if not getattr(read, name).strip():
            return f"{name} is empty"
    for name in ("plugin_us", "reformat_us", "native_us"):
        values = getattr(read, name)
        if not values and name != "reformat_us":
            return f"{name} has no samples"
        if not all(math.isfinite(v) and v > 0 for v in values):
            return f"{name} holds a sample that is not above 0"
    return ""


def _quartile(values: Sequence[float], share: float) -> float:
    """By linear interpolation between the ordered samples (type 7 of Hyndman and Fan, 1996)."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
