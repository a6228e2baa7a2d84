"""What `--precision` and its companions ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trtplug.settings import as_flag


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionOptions:
    """What `--precision` and its companions ask for."""

    target: Literal["keep", "fp16", "bf16"] = "keep"
    io: Literal["keep", "match"] = "keep"
    """Whether inputs and outputs keep their types."""
    keep_fp32: tuple[str, ...] = ()
    """Globs of node labels that stay in float32."""

    def as_flags(self) -> dict[str, str]:
        """By name, as text; nothing where the model keeps its types."""
        if self.target == "keep":
            return {}
        return {"io_precision": self.io, "keep_fp32": as_flag(self.keep_fp32) or "none"}
