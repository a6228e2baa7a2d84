"""Tactics of `trtplug::CBRPair`; they build on those of its two convolutions."""
