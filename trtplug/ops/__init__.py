"""What our plugins compute: one module an op, with schema, output shapes and NumPy reference."""
