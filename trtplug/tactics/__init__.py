"""Ways to run an op: which are legal, how each has its weights, how long it should take."""
