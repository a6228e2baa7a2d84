"""Sources to kernels, from the store where they were compiled before.

A source that the compiler refuses is an outcome with the compiler's log, never an exception: the
other kernels go on.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from trtplug.kernels import nvrtc
from trtplug.kernels.ptx import drop_unread_variables, lower_version
from trtplug.kernels.sm import Usage, read_usage
from trtplug.kernels.source import MIN_BLOCKS
from trtplug.store import key_of
from trtplug.target import Sm

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from trtplug.kernels.source import KernelSource
    from trtplug.store import Store

FORMAT = 1
"""Raised when what is kept of a kernel changes; part of its key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledKernel:
    """One compiled kernel."""

    name: str
    sm: Sm
    digest: str
    """Of the source."""
    compiler: str
    """Such as `nvrtc 13.5`."""
    ptx: str
    ptx_version: str
    """As lowered."""
    cubin: bytes
    usage: Usage
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A source that did not become a kernel."""

    name: str
    sm: Sm
    digest: str
    status: str
    """`unsupported-sm` or `refused`."""
    log: str
    """The compiler's words, whole."""


Outcome = CompiledKernel | Refused


def compile_kernel(source: KernelSource, sm: Sm, store: Store | None) -> Outcome:
    """Compiles one kernel, or takes it from the store.

    Raises:
        CompilerMissingError: NVRTC is not installed.
    """
    if sm.number not in nvrtc.supported_sms():
        known = ", ".join(f"sm_{n}" for n in sorted(nvrtc.supported_sms()))
        log = f"NVRTC {nvrtc.version()} compiles for {known}"
        return Refused(**_identity(source, sm), status="unsupported-sm", log=log)
    inputs = _inputs(source, sm)
    key = key_of(inputs)
    folder = store.find(key) if store else None
    if folder is not None:
        return _read(folder, source, sm)
    outcome = _compile(source, sm)
    if store is not None and isinstance(outcome, CompiledKernel):
        store.keep(key, inputs, partial(_write, kernel=outcome))
    return outcome


def compile_many(
    wanted: Sequence[tuple[KernelSource, Sm]],
    store: Store | None,
    jobs: int,
    done: Callable[[Outcome], None] = lambda _: None,
) -> tuple[Outcome, ...]:
    """Compiles kernels side by side, in order of `wanted`; equal ones are compiled once.

    `done` is called for each, from this thread, as soon as those before it are done as well.
    """
    distinct = {(source.digest, sm): (source, sm) for source, sm in wanted}
    outcomes: list[Outcome] = []
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        started = {key: pool.submit(compile_kernel, *each, store) for key, each in distinct.items()}
        for source, sm in wanted:
            outcomes.append(started[source.digest, sm].result())
            done(outcomes[-1])
    return tuple(outcomes)


def _identity(source: KernelSource, sm: Sm) -> dict[str, Any]:
    """The fields that every outcome has."""
    return {"name": source.name, "sm": sm, "digest": source.digest}


def _inputs(source: KernelSource, sm: Sm) -> dict[str, object]:
    """All that decides what a kernel becomes."""
    return {
        "kind": "kernel",
        "format": FORMAT,
        "source": source.digest,
        "sm": str(sm),
        "options": list(nvrtc.OPTIONS),
        "compiler": f"nvrtc {nvrtc.version()}",
    }


def _compile(source: KernelSource, sm: Sm) -> Outcome:
    """The first kernel that spills nothing, else that which spills least."""
    if not source.min_blocks:
        return _outcome(source, sm, nvrtc.compile_source(source, sm))
    spilt: list[CompiledKernel] = []
    for number in source.min_blocks:
        compiled = nvrtc.compile_source(source, sm, f"{MIN_BLOCKS}={number}")
        outcome = _outcome(source, sm, compiled)
        if isinstance(outcome, Refused) or not outcome.usage.spill_bytes:
            return outcome
        spilt.append(outcome)
    return min(spilt, key=lambda kernel: kernel.usage.spill_bytes)


def _outcome(source: KernelSource, sm: Sm, compiled: nvrtc.Compiled) -> Outcome:
    usage = read_usage(compiled.log)
    if compiled.ptx is None or not compiled.cubin or usage is None:
        return Refused(**_identity(source, sm), status="refused", log=compiled.log)
    ptx, version = lower_version(drop_unread_variables(compiled.ptx))
    return CompiledKernel(
        **_identity(source, sm),
        compiler=f"nvrtc {nvrtc.version()}",
        ptx=ptx,
        ptx_version=version,
        cubin=compiled.cubin,
        usage=usage,
        log=compiled.log,
    )


def _write(folder: Path, kernel: CompiledKernel) -> None:
    (folder / "kernel.ptx").write_text(kernel.ptx, encoding="utf-8")
    (folder / "kernel.cubin").write_bytes(kernel.cubin)
    (folder / "compiler.log").write_text(kernel.log, encoding="utf-8")
    facts = {
        "compiler": kernel.compiler,
        "ptx_version": kernel.ptx_version,
        "usage": asdict(kernel.usage),
    }
    (folder / "kernel.json").write_text(json.dumps(facts, indent=2), encoding="utf-8")


def _read(folder: Path, source: KernelSource, sm: Sm) -> CompiledKernel:
    facts = json.loads((folder / "kernel.json").read_text(encoding="utf-8"))
    facts["usage"] = Usage(**facts["usage"])
    return CompiledKernel(
        **_identity(source, sm),
        **facts,
        ptx=(folder / "kernel.ptx").read_text(encoding="utf-8"),
        cubin=(folder / "kernel.cubin").read_bytes(),
        log=(folder / "compiler.log").read_text(encoding="utf-8"),
    )
