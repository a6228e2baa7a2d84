"""PTX on the CPU: what a kernel computes, and what a GPU would hide.

Text goes in (`parse`), a module comes out; `run.launch` executes one of its kernels over NumPy
buffers and reports findings (races, reads of nothing, out-of-bounds access) and counters. It knows
no CUDA, no compiler and no op.
"""
