"""Every kernel family, one line each; a new one is a module, a file of `plugins/` and a line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.kernels import depthwise, direct, gemm, pair, stem
from trtplug.kernels.family import DEFAULT_SHARED_BYTES, AnyTactic, Exclusion
from trtplug.kernels.source import plugin_headers

if TYPE_CHECKING:
    from trtplug.kernels.problem import AnyProblem
    from trtplug.kernels.source import Headers
    from trtplug.target import Sm


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTactic:
    """A tactic, and whether it may run a problem on an SM."""

    tactic: AnyTactic
    exclusion: Exclusion | None
    """None where it is legal."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """Tactics to choose from."""

    tactics: tuple[AnyTactic, ...]
    """In the order that they are listed."""
    folders: tuple[Path, ...] = ()
    """Where their CUDA files are, beside `plugins/`."""

    def __post_init__(self) -> None:
        """Refuses a name or a number that is given twice.

        Raises:
            ValueError: one of them, or a number that is not positive.
        """
        names, numbers = ({getattr(t, what) for t in self.tactics} for what in ("name", "number"))
        if not len(names) == len(numbers) == len(self.tactics) or min(numbers, default=1) < 1:
            raise ValueError("tactics need names and positive numbers of their own")

    def find(self, name: str) -> AnyTactic | None:
        """The tactic of that name."""
        return next((t for t in self.tactics if t.name == name), None)

    def of(self, problem: AnyProblem) -> tuple[AnyTactic, ...]:
        """All tactics of the problem's op, legal or not."""
        return tuple(t for t in self.tactics if t.op == problem.op)

    def list(
        self, problem: AnyProblem, sm: Sm, shared_bytes: int = DEFAULT_SHARED_BYTES
    ) -> tuple[ListedTactic, ...]:
        """Every tactic of the problem's op, with the first reason against it.

        `shared_bytes` is what a block may take of shared memory.
        """
        return tuple(
            ListedTactic(tactic=t, exclusion=t.exclusion(problem, sm, shared_bytes))
            for t in self.of(problem)
        )

    def legal(
        self, problem: AnyProblem, sm: Sm, shared_bytes: int = DEFAULT_SHARED_BYTES
    ) -> tuple[AnyTactic, ...]:
        """Those that may run; for one convolution in FP32 or FP16 never none on a known SM."""
        listed = self.list(problem, sm, shared_bytes)
        return tuple(each.tactic for each in listed if each.exclusion is None)

    def headers(self) -> Headers:
        """The CUDA files, each read once in the life of the value."""
        return plugin_headers(*self.folders)


CATALOG = Catalog(
    (
        *direct.TACTICS,
        *gemm.TACTICS,
        *stem.TACTICS,
        *depthwise.TACTICS,
        *pair.TACTICS,
    )
)
