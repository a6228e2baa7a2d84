"""`trtplug inspect`."""

from __future__ import annotations


def inspect() -> int:
    """Say what a file holds."""
    return 0


def verify_bundle() -> int:
    """Compare every file of a bundle with its manifest."""
    return 0
