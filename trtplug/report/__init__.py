"""The report of a build: data first, then one renderer a format."""
