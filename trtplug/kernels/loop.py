"""The main loops of compiled kernels: machine code is taken apart by nvdisasm once, and counted.

nvdisasm comes in a wheel of NVIDIA's (`nvidia/cu13/bin` among the packages) or with a CUDA toolkit.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import logging
import re
import shutil
import struct
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.errors import ToolMissingError
from trtplug.kernels.sass import MainLoop, find_main_loop
from trtplug.store import key_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trtplug.kernels.compile import CompiledKernel
    from trtplug.store import Store
    from trtplug.target import Sm

_log = logging.getLogger(__name__)


INSTRUCTION_BYTES = 16
"""From sm_70 on."""

_MAGIC = b"\x7fELF\x02\x01"
"""ELF, 64 bits, little-endian: what every cubin is."""
_FILE_HEADER = struct.Struct("<40xQ10xHHH")
"""Of it: offset and size of a section header, their number, and which has the names."""
_SECTION_HEADER = struct.Struct("<I20xQQ")
"""Of it: offset of the section's name among the names; offset and size of its bytes."""


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
    kernels: Sequence[CompiledKernel], store: Store | None, jobs: int
) -> tuple[MainLoop | None, ...]:
    """The main loop of each kernel, in order; equal kernels are counted once.

    None where there is none, nvdisasm is not installed, or it fails. A failure is not kept in the
    store: nvdisasm is asked again the next time. `jobs` are the calls of nvdisasm at once.
    """
    distinct = {(k.digest, k.sm): k for k in kernels}
    found: _Found = {}
    for key, kernel in distinct.items():
        if store is not None and (folder := store.find(key_of(_inputs(kernel)))):
            found[key] = _read((folder / _FILE).read_text(encoding="utf-8"))
    if find_tool("nvdisasm") is not None:
        groups = _groups([k for key, k in distinct.items() if key not in found], jobs)
        with ThreadPoolExecutor(max_workers=jobs) as pool:
            for new in pool.map(_count, groups):
                found |= new
                for key, loop in new.items():
                    _keep(distinct[key], loop, store)
    return tuple(found.get((k.digest, k.sm)) for k in kernels)


def _groups(kernels: Sequence[CompiledKernel], jobs: int) -> Iterator[Sequence[CompiledKernel]]:
    """Kernels of one SM, of each as many groups as can run at once, none too large."""
    for sm in sorted({k.sm for k in kernels}, key=lambda sm: sm.number):
        some = [k for k in kernels if k.sm == sm]
        size = min(_AT_ONCE, -(-len(some) // jobs))
        for start in range(0, len(some), size):
            yield some[start : start + size]


def _count(kernels: Sequence[CompiledKernel]) -> _Found:
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


def _inputs(kernel: CompiledKernel) -> dict[str, object]:
    return {
        "kind": "main loop",
        "format": FORMAT,
        "source": kernel.digest,
        "sm": str(kernel.sm),
        "compiler": kernel.compiler,
    }


def _keep(kernel: CompiledKernel, loop: MainLoop | None, store: Store | None) -> None:
    if store is not None:
        text = json.dumps(asdict(loop) if loop else None)
        inputs = _inputs(kernel)
        store.keep(
            key_of(inputs), inputs, lambda part: (part / _FILE).write_text(text, encoding="utf-8")
        )


def _read(text: str) -> MainLoop | None:
    loop = json.loads(text)
    return loop and MainLoop(
        instructions=loop["instructions"], counts=tuple(map(tuple, loop["counts"]))
    )


_LIMIT_S = 120.0
_ADDRESS = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/")


def find_tool(name: str) -> Path | None:
    """A program of CUDA's: from its wheel, else from PATH, else None."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec and spec.submodule_search_locations) or ():
        for found in sorted(Path(folder).glob(f"*/bin/{name}")):
            return found
    on_path = shutil.which(name)
    return Path(on_path) if on_path else None


def disassemble(codes: Sequence[bytes], sm: Sm) -> tuple[str, ...]:
    """Machine code as text, one line an instruction, branches to addresses.

    All of it goes through one call: nvdisasm takes a third of a second to start, and a few
    milliseconds for a kernel. Addresses count from the first code on through all.

    Raises:
        ToolMissingError: nvdisasm is not installed.
        ValueError: nvdisasm does not take the code, or takes longer than two minutes.
    """
    tool = find_tool("nvdisasm")
    if tool is None:
        raise ToolMissingError(tool="nvdisasm", package="nvidia-cuda-nvdisasm")
    with tempfile.TemporaryDirectory(prefix="trtplug-") as folder:
        file = Path(folder) / "code.bin"
        file.write_bytes(b"".join(codes))
        command = [str(tool), "--binary", f"SM{sm.number}", str(file)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_LIMIT_S, errors="replace"
            )
        except subprocess.TimeoutExpired as error:
            raise ValueError(f"nvdisasm took longer than {_LIMIT_S:g} s") from error
    if done.returncode:
        raise ValueError(f"nvdisasm: {done.stderr.strip()}")
    return _parts(done.stdout, codes)


def _parts(text: str, codes: Sequence[bytes]) -> tuple[str, ...]:
    """The lines of each code."""
    ends = list(itertools.accumulate(len(code) for code in codes))
    parts: list[list[str]] = [[] for _ in codes]
    place = 0
    for line in text.splitlines():
        found = _ADDRESS.match(line)
        if found is None:
            continue
        while place < len(ends) and int(found[1], 16) >= ends[place]:
            place += 1
        if place == len(ends):
            raise ValueError(f"nvdisasm: an instruction beyond the end: {line.strip()}")
        parts[place].append(line)
    return tuple("\n".join(lines) for lines in parts)
