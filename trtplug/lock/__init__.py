"""The recorded choices of a build: written, compared, replayed, and pins that override them."""
