"""trtplug: one ONNX model in; one tuned, checked TensorRT engine per GPU out, with a report.

Importing this package loads nothing heavy: no TensorRT, no onnx, no numpy.
"""

__version__ = "0.1.0"
