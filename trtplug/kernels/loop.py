"""The main loops of compiled kernels: machine code is taken apart once, and counted."""

from __future__ import annotations

import json
import logging
import struct
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import TYPE_CHECKING

from trtplug.kernels.sass import MainLoop, find_main_loop
from trtplug.kernels.tools import disassemble, find_tool
from trtplug.store import key_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trtplug.kernels.compile import Kernel
    from trtplug.store import Store
    from trtplug.target import Sm

_log = logging.getLogger(__name__)


INSTRUCTION_BYTES = 16
"""From sm_70 on."""

_MAGIC = b"\x7fELF\x02\x01"
"""ELF, 64 bits, little-endian: what every cubin is."""
_FILE_HEADER = struct.Struct("<40xQ10xHHH")
"""Of it: where the section headers stand, how long one is, how many, and which has the names."""
_SECTION_HEADER = struct.Struct("<I20xQQ")
"""Of it: where the section's name stands among the names; where its bytes are, and how many."""


def code_of(cubin: bytes) -> bytes:
    """The instructions of the one kernel in a cubin, as they lie in memory.

    Raises:
        ValueError: the bytes are no cubin, or there is not one kernel in it.
    """
    try:
        found = [data for name, data in _sections(cubin) if name.startswith(b".text.")]
    except struct.error as error:
        raise ValueError(f"a cubin that is cut off: {error}") from error
    if len(found) != 1:
        raise ValueError(f"a cubin with {len(found)} kernels; 1 is wanted")
    if not found[0] or len(found[0]) % INSTRUCTION_BYTES:
        raise ValueError("a cubin whose code is cut off")
    return found[0]


def _sections(cubin: bytes) -> Iterator[tuple[bytes, bytes]]:
    if not cubin.startswith(_MAGIC):
        raise ValueError("no cubin: it does not begin as a 64-bit ELF file")
    start, length, count, names = _FILE_HEADER.unpack_from(cubin)
    headers = [_SECTION_HEADER.unpack_from(cubin, start + i * length) for i in range(count)]
    if names >= count:
        raise ValueError("a cubin without the names of its sections")
    base = headers[names][1]
    for name, offset, size in headers:
        yield cubin[base + name :].partition(b"\0")[0], cubin[offset : offset + size]


FORMAT = 1
"""Raised when the count, or what is kept of it, changes."""

_FILE = "loop.json"
_AT_ONCE = 100
"""Kernels in one call of nvdisasm: its start is then a small part of its time."""

_Found = dict[tuple[str, "Sm"], MainLoop | None]


def count_loops(
    kernels: Sequence[Kernel], store: Store | None, jobs: int
) -> tuple[MainLoop | None, ...]:
    """The main loop of each kernel, in order; equal kernels are counted once.

    None where there is none, nvdisasm is not installed, or it fails. A failure is not kept in the
    store: nvdisasm is asked again the next time.

    Args:
        kernels: what was compiled.
        store: where counts are kept.
        jobs: calls of nvdisasm at once.
    """
    distinct = {(k.digest, k.sm): k for k in kernels}
    found: _Found = {}
    for key, kernel in distinct.items():
        if store is not None and (folder := store.find(_key(kernel))):
            found[key] = _read((folder / _FILE).read_text(encoding="utf-8"))
    if find_tool("nvdisasm") is not None:
        groups = _groups([k for key, k in distinct.items() if key not in found], jobs)
        with ThreadPoolExecutor(max_workers=jobs) as pool:
            for new in pool.map(_count, groups):
                found |= new
                for key, loop in new.items():
                    _keep(distinct[key], loop, store)
    return tuple(found.get((k.digest, k.sm)) for k in kernels)


def count_loop(kernel: Kernel, store: Store | None) -> MainLoop | None:
    """The same for one kernel."""
    return count_loops([kernel], store, 1)[0]


def _groups(kernels: Sequence[Kernel], jobs: int) -> Iterator[Sequence[Kernel]]:
    """Kernels of one SM, of each as many groups as can run at once, none too large."""
    for sm in sorted({k.sm for k in kernels}, key=lambda sm: sm.number):
        some = [k for k in kernels if k.sm == sm]
        size = min(_AT_ONCE, -(-len(some) // jobs))
        for start in range(0, len(some), size):
            yield some[start : start + size]


def _count(kernels: Sequence[Kernel]) -> _Found:
    """The loops of kernels of one SM; what nvdisasm does not take is left out."""
    try:
        texts = disassemble([code_of(k.cubin) for k in kernels], kernels[0].sm)
    except ValueError as error:
        if len(kernels) == 1:
            _log.info("no main loop of kernel %s is known: %s", kernels[0].digest[:16], error)
            return {}
        # One of them spoils it for all: each by itself.
        return {key: loop for kernel in kernels for key, loop in _count([kernel]).items()}
    return {(k.digest, k.sm): find_main_loop(text) for k, text in zip(kernels, texts, strict=True)}


def _inputs(kernel: Kernel) -> dict[str, object]:
    return {
        "kind": "main loop",
        "format": FORMAT,
        "source": kernel.digest,
        "sm": str(kernel.sm),
        "compiler": kernel.compiler,
    }


def _key(kernel: Kernel) -> str:
    return key_of(_inputs(kernel))


def _keep(kernel: Kernel, loop: MainLoop | None, store: Store | None) -> None:
    if store is not None:
        text = json.dumps(asdict(loop) if loop else None)
        store.keep(
            _key(kernel),
            _inputs(kernel),
            lambda part: (part / _FILE).write_text(text, encoding="utf-8"),
        )


def _read(text: str) -> MainLoop | None:
    loop = json.loads(text)
    if loop is None:
        return None
    return MainLoop(
        instructions=loop["instructions"],
        counts=tuple((kind, number) for kind, number in loop["counts"]),
    )
