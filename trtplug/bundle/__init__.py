"""Engines as files, and the folder they ship in."""
