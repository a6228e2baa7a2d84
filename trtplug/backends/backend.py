"""What every backend is asked and what it answers; plain values that cross a process border."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal, Protocol

from trtplug.backends.child import LINE_BLOCK
from trtplug.backends.options import BuildOptions
from trtplug.target import Sm


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a backend can do; callers ask this, never its name."""

    sms: tuple[Sm, ...]
    """SMs it can build for here; empty where it cannot build at all."""
    needs_gpu: bool
    """Whether it builds only for the GPU at hand."""
    plugins: bool
    """Whether kernels of ours can be part of its engines."""
    timing_cache: bool
    reproducible: bool
    """Whether a build repeated has the same bytes; not where kernels are chosen by timing them."""
    how_to_get_plugins: str = "only enterprise TensorRT takes plugins: --backend trt, on a machine \
with that GPU; --plugin auto builds here without any"
    """Advice where it takes none."""


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
    """Path of a mended copy to read in its stead; None where the file itself will do."""
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
        """One line."""
        return _padded(json.dumps(asdict(self)))


def _padded(line: str) -> str:
    """A line of whole blocks, so that its length does not tell how long the paths in it are.

    What a child allocates before it builds shows in the engine: the compiler orders some of its
    work by address.
    """
    return line.ljust(-(-(len(line) + 1) // LINE_BLOCK) * LINE_BLOCK - 1)


EventKind = Literal[
    "ready", "waiting", "pass", "phase", "step", "end", "built", "refused", "failed", "unwritable"
]
"""`ready`: the builder is loaded. `waiting`: for the GPU, which another build holds. `pass`: the
build has several, and this one begins (`number`, `of`). `phase`, `step`, `end`: progress. The last
four end a build."""

ENDS = ("built", "refused", "failed", "unwritable")
"""`unwritable`: the system refused a file in the request's folder; a full disk, most often."""

Event = Mapping[str, object]
"""A JSON object with `event` (an EventKind) and, by kind: `name`, `parent`, `steps`, `step`;
`ahead`, whether a phase comes before the builder's own; `reasons`; `error`; or facts of an
`Outcome`."""


OutcomeStatus = Literal["built", "refused", "failed", "unwritable", "crashed", "timeout", "memory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one build ended; a failure is a value here, so that other targets go on."""

    target: str
    folder: str
    """That of the request."""
    status: OutcomeStatus
    reasons: tuple[str, ...]
    """The builder's own errors; for a crash, the last lines of its log."""
    how: str
    """For a crash: signal or exit status, in words."""
    warnings: tuple[str, ...]
    seconds: float
    peak_bytes: int
    """Largest resident size of the child."""
    builder_version: str
    library: str
    """File name of the builder's library, as loaded."""
    engine_sha256: str
    """Of the builder's buffer, before it was written."""
    aslr_off: bool
    """Whether address-space randomisation was off in the child."""
    error: Mapping[str, object] | None = None
    """What the child itself found wrong, as `errors.error_to_plain` has it."""
    trial: str = ""
    """How the finished engine was run where it was built, in a sentence; empty where it was not."""


class Backend(Protocol):
    """A builder that can be asked what it can do, without being loaded.

    `version` and `capabilities` never raise and load nothing heavy; a builder that is not installed
    has version None.
    """

    name: str

    def version(self) -> str | None:
        """Full version of the installed builder, such as `1.7.1.116`."""

    def capabilities(self) -> Capabilities:
        """What it can do here."""

    def child_command(self) -> tuple[str, ...]:
        """Command line of the child process that builds."""

    def how_to_get(self) -> str:
        """What to install, or which machine to use, where it cannot build."""

    def problem(self) -> str:
        """Why it cannot build here; empty where it can."""

    def check_options(self, options: BuildOptions) -> None:
        """Refuses what the installed builder does not have.

        Raises:
            OptionUnsupportedError: an option, or a name given to one, that it lacks.
        """

    def place(self) -> str:
        """What an engine depends on beside its SM, such as GPU and driver; empty for nothing."""

    def passed_on(self) -> tuple[str, ...]:
        """Environment variables that its child is given beside the usual ones."""
