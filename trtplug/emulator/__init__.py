"""PTX on the CPU: what a kernel computes, and what a GPU would hide.

Text goes in (`parse`), a module comes out; `run.launch` executes one of its kernels over NumPy
buffers and reports findings (races, reads of nothing, out-of-bounds access) and counters. It knows
no CUDA, no compiler and no op.

What it does not model:
- Time: blocks run in lockstep. Registers, spills and the schedule are those of the cubin.
- The last bits of tensor-core sums, whose order and truncation are the hardware's own, and the
  error of approximate functions (`ex2.approx` and its like), which are computed to full precision.
- Order between threads but by barriers of a block or a warp: flags in memory, `mbarrier`, named
  barriers apart from the block's own epochs, fences. Races in global memory show as double writes.
- `wgmma`, `tcgen05`, bulk copies, clusters, textures: unknown instructions, and so errors.
"""
