"""`trtplug doctor`."""

from __future__ import annotations


def doctor() -> int:
    """Say what this machine can do, and how to get the rest."""
    return 0
