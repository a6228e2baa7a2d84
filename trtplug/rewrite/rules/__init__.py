"""How each op is recognised: one module an op."""
