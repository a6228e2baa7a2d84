"""The passes of a build: what the builder is run for, and what its runs come to."""
