"""TensorRT-RTX: builds ahead of time, without a GPU."""
