"""The only code that talks to TensorRT; each heavy package in its one adapter."""
