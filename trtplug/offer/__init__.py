"""What TensorRT's builder is offered: kernels of ours, and the model with plugin nodes for them."""
