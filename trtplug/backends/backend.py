"""What a backend can do, and how one build with it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from trtplug.target import Sm

if TYPE_CHECKING:
    from trtplug.backends.options import BuildOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a backend can do; callers ask this, never its name."""

    sms: tuple[Sm, ...]
    """SMs it can build for here; empty where it cannot build at all."""
    needs_gpu: bool
    """Whether it builds only for the local GPU."""
    plugins: bool
    """Whether kernels of ours can be part of its engines."""
    timing_cache: bool
    reproducible: bool
    """Whether a build repeated has the same bytes; not where kernels are chosen by timing them."""
    how_to_get_plugins: str = "only enterprise TensorRT takes plugins: --backend trt, on a machine \
with that GPU; --plugin auto builds here without any"
    """Advice where it takes none."""


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
    builder_version: str = ""
    library: str = ""
    """File name of the builder's library, as loaded."""
    engine_sha256: str = ""
    """Of the builder's buffer, before it was written."""
    aslr_off: bool = False
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
        return "" if self.version() else "it is not installed"

    def check_options(self, options: BuildOptions) -> None:
        """Refuses what the installed builder does not have.

        Raises:
            OptionUnsupportedError: an option, or a name given to one, that it lacks.
        """

    def device_fingerprint(self) -> str:
        """What an engine depends on beside its SM, such as GPU and driver; empty for nothing."""
        return ""

    def passed_on(self) -> tuple[str, ...]:
        """Environment variables that its child gets too; any of them may change the engine."""
        return ()
