"""CUDA sources of the probes: each is one small kernel whose output tells what happened.

Arguments are those of an ahead-of-time plugin: inputs, numbers, outputs.
"""

from __future__ import annotations

import re

from trtplug.kernels.compile import CompiledKernel, compile_kernel
from trtplug.kernels.nvrtc import compile_source
from trtplug.kernels.source import KernelSource
from trtplug.target import Sm

SHARED_BYTES = 64 << 10
"""Above the 48 KiB that a launch gets without asking for more."""

_INDEX = "const int i = blockIdx.x * blockDim.x + threadIdx.x;"


def add(amount: float) -> str:
    """y = x + amount."""
    return f"""
extern "C" __global__ void probe(const float* x, int n, float* y) {{
  {_INDEX}
  if (i < n) y[i] = x[i] + {float(amount)}f;
}}"""


ADD_WEIGHT = f"""
extern "C" __global__ void probe(const float* x, const float* w, int n, float* y) {{
  {_INDEX}
  if (i < n) y[i] = x[i] + w[0];
}}"""
"""y = x + the first weight."""

TWO_OUTPUTS = f"""
extern "C" __global__ void probe(const float* x, int n, float* y, float* z) {{
  {_INDEX}
  if (i < n) {{ y[i] = x[i] + 1.0f; z[i] = x[i] + 2.0f; }}
}}"""

SHARED = f"""
extern "C" __global__ void probe(const float* x, int n, float* y) {{
  extern __shared__ float held[];
  {_INDEX}
  const int last = {SHARED_BYTES} / 4 - 1 - threadIdx.x;
  held[last] = i < n ? x[i] : 0.0f;
  __syncthreads();
  if (i < n) y[i] = held[last] + 1.0f;
}}"""
"""y = x + 1, through the end of `SHARED_BYTES` of dynamic shared memory."""

CLUSTER = f"""
extern "C" __global__ void __cluster_dims__(2, 1, 1) probe(const float* x, int n, float* y) {{
  unsigned blocks;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
  {_INDEX}
  if (i < n) y[i] = x[i] + (float)blocks;
}}"""
"""y = x + blocks of the cluster, which is 2."""

ALIGNMENT = f"""
extern "C" __global__ void probe(const float* x, int n, float* y) {{
  {_INDEX}
  if (i >= n) return;
  const unsigned long long address = (unsigned long long)x;
  y[i] = i == 0 ? (float)(address & 4095) : x[i - 1];
}}"""
"""y[0] = where x lies in its page; then x, moved on by one."""

PADDING = """
extern "C" __global__ void probe(const unsigned short* x, int n, unsigned short* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned short dirty = 0;
  for (int c = 3; c < 8; ++c) dirty |= x[i * 8 + c] & 0x7fff;
  for (int c = 0; c < 8; ++c) y[i * 8 + c] = c < 3 && dirty ? 0x3c00 : 0;
}"""
"""FP16, HWC8, 3 channels, n pixels: 1 where a lane of the padding is not zero, else 0."""


def compile_probe(text: str, sm: int) -> CompiledKernel:
    """The kernel `probe` of a source.

    Raises:
        RuntimeError: NVRTC refuses it.
    """
    source = KernelSource(name="probe", text=text, headers=())
    outcome = compile_kernel(source, Sm(sm), None)
    if not isinstance(outcome, CompiledKernel):
        raise RuntimeError(f"NVRTC: {outcome.log[-300:]}")
    return outcome


FIRST_PTX_OF_ARCH = {90: "8.0", 100: "8.6", 103: "8.8", 120: "8.7", 121: "8.8"}
"""SM -> the first PTX version with the target of that SM alone, `sm_90a` (PTX ISA, `.target`)."""


def compile_for_arch(text: str, arch: str, version: str) -> str:
    """PTX of `probe` for a target such as `sm_90a`, with the version lowered as ours is.

    Raises:
        RuntimeError: NVRTC refuses it.
    """
    source = KernelSource(name="probe", text=text, headers=())
    # The number of an SM is all that trtplug compiles for; NVRTC gets the words as they are.
    compiled = compile_source(source, arch)  # type: ignore[arg-type]
    if compiled.ptx is None:
        raise RuntimeError(f"NVRTC: {compiled.log[-300:]}")
    return re.sub(r"^\.version .*$", f".version {version}", compiled.ptx, count=1, flags=re.M)
