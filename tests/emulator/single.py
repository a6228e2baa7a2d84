"""A few lines of PTX over arrays: inputs in %a0, %a1, ..., the result in %d."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from hypothesis import settings

from trtplug.emulator.checks import Checks
from trtplug.emulator.parse import parse_module
from trtplug.emulator.run import Buffer, Run, launch

if TYPE_CHECKING:
    from collections.abc import Sequence

Array = npt.NDArray[np.generic]

few = settings(max_examples=12, deadline=None)
"""An example is a launch over dozens of values: a dozen of them say enough."""

HEADER = """.version 7.0
.target sm_80
.address_size 64
"""
_KINDS = {1: "b16", 2: "b16", 4: "b32", 8: "b64"}


def kernel_text(body: str, parameters: int, registers: str = "", variables: str = "") -> str:
    """A kernel with pointer parameters p0, p1, ...; %tid, %gid and %at0.. ready to use."""
    listed = ",\n".join(f"  .param .u64 p{i}" for i in range(parameters))
    pointers = "\n".join(
        f"ld.param.u64 %ptr{i}, [p{i}];\ncvta.to.global.u64 %ptr{i}, %ptr{i};"
        for i in range(parameters)
    )
    return f"""{HEADER}
{variables}
.visible .entry k(
{listed}
)
{{
.reg .b64 %ptr<16>;
.reg .b64 %at<16>;
.reg .b32 %tid;
.reg .b32 %gid;
.reg .b32 %t<16>;
.reg .pred %p<16>;
.reg .b64 %w<16>;
{registers}
{pointers}
mov.u32 %tid, %tid.x;
mov.u32 %t0, %ctaid.x;
mov.u32 %t1, %ntid.x;
mad.lo.s32 %gid, %t0, %t1, %tid;
{body}
ret;
}}
"""


def run_text(
    text: str,
    buffers: Sequence[Buffer],
    *,
    threads: int = 32,
    blocks: int = 1,
    shared_bytes: int = 0,
    checks: Checks | None = Checks(),  # noqa: B008
) -> Run:
    args = list(buffers)
    module = parse_module(text)
    return launch(module, "k", (blocks, 1, 1), (threads, 1, 1), shared_bytes, args, checks)


def compute(
    lines: str, inputs: Sequence[Array], result: np.dtype | type, *, wide: int = 0
) -> Array:
    """Run `lines` once a lane. `wide`: bytes of %d, where not those of the result's dtype."""
    dtype = np.dtype(result)
    count = len(inputs[0])
    registers, loads = [], []
    for i, x in enumerate(inputs):
        kind = _KINDS[x.dtype.itemsize]
        registers.append(f".reg .{kind} %a{i};")
        memory = f"b{8 * x.dtype.itemsize}"
        loads.append(
            f"mad.wide.s32 %at{i}, %gid, {x.dtype.itemsize}, %ptr{i};\n"
            f"ld.global.{memory} %a{i}, [%at{i}];"
        )
    registers.append(f".reg .{_KINDS[wide or dtype.itemsize]} %d;")
    n = len(inputs)
    store = (
        f"mad.wide.s32 %at{n}, %gid, {dtype.itemsize}, %ptr{n};\n"
        f"st.global.b{8 * dtype.itemsize} [%at{n}], %d;"
    )
    limit = f"setp.ge.s32 %p0, %gid, {count};\n@%p0 bra DONE;"
    body = "\n".join([limit, *loads, lines, store, "DONE:"])
    out = np.zeros(count, dtype)
    buffers = [Buffer(name=f"a{i}", data=np.ascontiguousarray(x)) for i, x in enumerate(inputs)]
    buffers.append(Buffer(name="out", data=out, role="output"))
    blocks = -(-count // 64)
    run = run_text(
        kernel_text(body, n + 1, "\n".join(registers)), buffers, threads=64, blocks=blocks
    )
    assert run.findings == ()
    return out
