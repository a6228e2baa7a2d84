"""The main loop of a compiled kernel: its machine code is taken apart once, and counted."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import TYPE_CHECKING

from trtplug.kernels.sass import MainLoop, find_main_loop
from trtplug.kernels.tools import disassemble, find_tool
from trtplug.store import key_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.kernels.compile import Kernel
    from trtplug.store import Store

FORMAT = 1
"""Raised when the count, or what is kept of it, changes."""

_FILE = "loop.json"


def count_loop(kernel: Kernel, store: Store | None) -> MainLoop | None:
    """The main loop; None where there is none, nvdisasm is not installed, or it fails.

    A failure is not kept in the store: nvdisasm is asked again the next time.

    Raises:
        OutputError: the store cannot be written.
    """
    inputs: dict[str, object] = {
        "kind": "main loop",
        "format": FORMAT,
        "source": kernel.digest,
        "sm": str(kernel.sm),
        "compiler": kernel.compiler,
    }
    key = key_of(inputs)
    folder = store.find(key) if store else None
    if folder is not None:
        return _read((folder / _FILE).read_text(encoding="utf-8"))
    if find_tool("nvdisasm") is None:
        return None
    try:
        loop = find_main_loop(disassemble(kernel.cubin))
    except ValueError:
        return None
    if store is not None:
        with store.publishing(key, inputs) as part:
            text = json.dumps(asdict(loop) if loop else None)
            (part / _FILE).write_text(text, encoding="utf-8")
    return loop


def count_loops(
    kernels: Sequence[Kernel], store: Store | None, jobs: int
) -> tuple[MainLoop | None, ...]:
    """The same for many kernels, side by side and in order; equal ones are counted once."""
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        started = {
            key: pool.submit(count_loop, kernel, store)
            for key, kernel in {(k.digest, k.sm): k for k in kernels}.items()
        }
        return tuple(started[k.digest, k.sm].result() for k in kernels)


def _read(text: str) -> MainLoop | None:
    loop = json.loads(text)
    if loop is None:
        return None
    return MainLoop(
        instructions=loop["instructions"],
        counts=tuple((kind, number) for kind, number in loop["counts"]),
    )
