"""What came in: the ONNX model, loaded, checked, and made ready for a builder."""
