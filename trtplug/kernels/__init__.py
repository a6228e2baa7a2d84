"""CUDA kernels: sources to PTX and machine code, their resources, and what is in their loops."""
