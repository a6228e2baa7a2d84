"""A backend whose children are doubles: it plans as RTX does and builds nothing real."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.backends.backend import Backend
from trtplug.backends.rtx.backend import RtxBackend

if TYPE_CHECKING:
    from trtplug.backends.backend import Capabilities
    from trtplug.backends.options import BuildOptions

CHILD = (sys.executable, "-I", "-S", str(Path(__file__).with_name("double_child.py")))


class DoubleBackend(Backend):
    """What its child does is the stem of the model's name, see `double_child`."""

    name = "rtx"

    def version(self) -> str | None:
        return "1.7.1.116"

    def capabilities(self) -> Capabilities:
        return RtxBackend().capabilities()

    def child_command(self) -> tuple[str, ...]:
        return CHILD

    def how_to_get(self) -> str:
        return "it is always there"

    def check_options(self, options: BuildOptions) -> None:
        RtxBackend().check_options(options)
