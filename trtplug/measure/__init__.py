"""Runs models and compares what they give; ONNX Runtime is met in `reference` alone."""
