"""Enterprise TensorRT: builds for the local GPU by timing kernels on it."""
