"""What `--plugin` and its companions ask for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trtplug.settings import as_flag

PluginMode = Literal["auto", "always", "never"]

KERNEL_LOG = "kernels.log"
"""Of a target, beside `build.log`: what the compiler said about kernels that it refused."""

PLUGIN_MODES: tuple[PluginMode, ...] = ("auto", "always", "never")


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginOptions:
    """Which sites the plugin may run, and with which of its tactics."""

    mode: PluginMode = "auto"
    """`auto`: where a measurement says that it wins; `always`: where any tactic is legal."""
    sites: tuple[str, ...] = ()
    """Globs over labels of convolutions and pairs; empty for all of them."""
    tactics: tuple[str, ...] = ()
    """Globs over names of tactics; empty for all of them."""
    pairs: bool = True
    """Whether one kernel may take a depthwise convolution and the pointwise one behind it."""
    evidence: Path | None = None
    """File with measurements."""

    @property
    def may_choose(self) -> bool:
        """Whether any site can get the plugin: without evidence, `auto` leaves all as they are."""
        return self.mode == "always" or (self.mode == "auto" and self.evidence is not None)

    def as_flags(self, evidence_sha256: str | None) -> dict[str, str]:
        """What is not at its default, by name, as text.

        Args:
            evidence_sha256: of the file with measurements; None without one.
        """
        given = {
            "plugin": self.mode if self.mode != "auto" else "",
            "plugin_sites": as_flag(self.sites),
            "plugin_tactics": as_flag(self.tactics),
            "plugin_pairs": "" if self.pairs else "off",
            "evidence": (evidence_sha256 or "")[:16],
        }
        return {name: value for name, value in given.items() if value}
