"""A double of pycuda: memory is host memory, streams do all at once."""
