"""Which sites get a kernel of ours, and what TensorRT's builder is offered for them."""
