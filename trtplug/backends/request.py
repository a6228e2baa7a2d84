"""What crosses between a build and its child process: a request, and the events of its progress."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from trtplug.backends.child import LINE_BLOCK
from trtplug.backends.options import BuildOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRange:
    """Sizes one input may take, as the builder's optimization profile wants them."""

    name: str
    min: tuple[int, ...]
    opt: tuple[int, ...]
    max: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """One engine to build, as it crosses into the child process."""

    target: str
    sm: int
    model: str
    """Path of the ONNX file; external data is looked for beside it."""
    data: str | None
    """Path of a repaired copy to read in its stead; None where the file itself will do."""
    ranges: tuple[InputRange, ...]
    """Of the dynamic inputs; what it says of others is passed over."""
    options: BuildOptions
    more_profiles: tuple[tuple[InputRange, ...], ...] = ()
    """Optimization profiles beside that of `ranges`."""
    timing_cache: str | None = None
    """Path of a timing cache to begin with; None begins with an empty one."""
    strict_cache: bool = False
    """Whether a tactic that the timing cache lacks ends the build."""
    record: bool = False
    """Whether only what is learned about tactics counts: the engine is not run."""
    folder: str
    """A folder of its own for `engine`, `layers.txt` and `build.log`."""
    cpu: int | None = None
    """Processor to build on; the parent chooses it when the build starts."""
    plugin_kit: str | None = None
    """Folder of the kit with the kernels of the model's plugin nodes; None where it has none."""
    verbose: bool = False
    """Whether the log is kept in full, which takes longer."""

    def to_json(self) -> str:
        """One line, of whole blocks: its length does not depend on the paths in it.

        What a child allocates before it builds shows in the engine: the compiler orders some of its
        work by address.
        """
        line = json.dumps(asdict(self))
        return line.ljust(-(-(len(line) + 1) // LINE_BLOCK) * LINE_BLOCK - 1)


EventKind = Literal[
    "ready", "note", "waiting", "pass", "phase", "step", "end",
    "built", "refused", "failed", "unwritable",
]  # fmt: skip
"""`ready`: the builder is loaded. `note`: a line (`text`) for the parent's log. `waiting`: for the
GPU, which another build holds. `pass`: the build has several, and this one begins (`number`, `of`).
`phase`, `step`, `end`: progress. The last four end a build."""

ENDS = ("built", "refused", "failed", "unwritable")
"""`unwritable`: the system refused a file in the request's folder; a full disk, most often."""

Event = Mapping[str, object]
"""A JSON object with `event` (an EventKind) and, by kind: `name`, `parent`, `steps`, `step`;
`ahead`, whether a phase comes before the builder's own; `reasons`; `error`; or facts of an
`Outcome`."""
