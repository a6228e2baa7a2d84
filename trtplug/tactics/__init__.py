"""Ways to run an op: which are legal, how weights are packed for each, how long each should take."""
