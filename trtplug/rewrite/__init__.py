"""Finds where in a model an op of ours can stand, and puts it there without changing an output."""
