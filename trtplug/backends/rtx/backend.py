"""TensorRT-RTX as a backend, seen from the parent: what it can do, without loading it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.backends.backend import Backend, Capabilities
from trtplug.backends.launch import python_command
from trtplug.backends.options import option_flag
from trtplug.backends.rtx import child
from trtplug.errors import OptionUnsupportedError
from trtplug.settings import installed_version
from trtplug.target import Sm

if TYPE_CHECKING:
    from trtplug.backends.options import BuildOptions


_PACKAGES = ("tensorrt-rtx-cu13", "tensorrt-rtx-cu12", "tensorrt-rtx")

_SMS = (75, 80, 86, 89, 120, 121)
"""`ComputeCapability` of 1.7; a test compares it with the bindings."""


class RtxBackend(Backend):
    """Builds ahead of time for named SMs on a machine with no GPU; knows no plugins."""

    name = "rtx"

    def version(self) -> str | None:
        """Version of the installed package, which is that of the library inside it."""
        return installed_version(*_PACKAGES)

    def capabilities(self) -> Capabilities:
        """All SMs that RTX knows, where it is installed."""
        sms = tuple(Sm(n) for n in _SMS) if self.version() else ()
        return Capabilities(
            sms=sms, needs_gpu=False, plugins=False, timing_cache=False, reproducible=True
        )

    def child_command(self) -> tuple[str, ...]:
        """This interpreter, running the adapter."""
        # Imported above, so that its bytecode is cached: compiling it in the child would leave
        # another heap behind, and another heap is other bytes in the engine.
        return python_command(child.__name__)

    def how_to_get(self) -> str:
        """The package."""
        return "pip install tensorrt-rtx-cu13 (Linux x86-64, no GPU needed)"

    def check_options(self, options: BuildOptions) -> None:
        """Refuses what enterprise TensorRT alone has.

        Raises:
            OptionUnsupportedError: the first such option.
        """
        changed = options.trt.changed()
        if changed:
            raise OptionUnsupportedError(
                option=option_flag(next(iter(changed))),
                backend=self.name,
                version=self.version() or "",
                advice="it is an option of enterprise TensorRT: --backend trt",
            )
