"""Engines as files: their digests, the bundle they ship in, the lock that records their choices."""
