"""The backend that builds nothing: a plan can be made where no builder is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trtplug
from trtplug.backends.backend import Capabilities
from trtplug.errors import UsageError
from trtplug.target import Sm

if TYPE_CHECKING:
    from trtplug.backends.options import BuildOptions

_SMS = (75, 80, 86, 87, 89, 90, 100, 103, 120, 121)


class NullBackend:
    """Plans for any SM; says what would be done."""

    name = "null"

    def version(self) -> str | None:
        """That of trtplug."""
        return trtplug.__version__

    def capabilities(self) -> Capabilities:
        """Every SM that TensorRT knows, and nothing else."""
        sms = tuple(Sm(n) for n in _SMS)
        return Capabilities(
            sms=sms, needs_gpu=False, plugins=False, timing_cache=False, reproducible=True
        )

    def child_command(self) -> tuple[str, ...]:
        """There is no child.

        Raises:
            UsageError: always.
        """
        raise UsageError("backend null builds nothing", "it is there for --dry-run")

    def how_to_get(self) -> str:
        """Nothing is needed."""
        return "it is always there"

    def problem(self) -> str:
        """None."""
        return ""

    def check_options(self, options: BuildOptions) -> None:
        """Takes all of them."""

    def place(self) -> str:
        """Nothing."""
        return ""

    def passed_on(self) -> tuple[str, ...]:
        """Nothing."""
        return ()
