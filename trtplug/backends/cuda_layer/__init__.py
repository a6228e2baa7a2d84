"""CUDA itself, as little of it as trtplug calls: one interface, an adapter for each package."""
