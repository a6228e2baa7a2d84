"""Memory that the library hands out."""

from __future__ import annotations


class IHostMemory(bytearray):
    """A buffer of the library's; readable as any buffer is."""

    @property
    def nbytes(self) -> int:
        return len(self)
