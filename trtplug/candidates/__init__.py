"""The tactics that a model's sites could run with: listed, compiled, predicted and checked."""
