"""Finds where in a model an op of ours can stand, and puts it there without changing an output."""

from trtplug.rewrite.find import find_sites
from trtplug.rewrite.site import NearMiss, NearMissReason, Site

__all__ = ["NearMiss", "NearMissReason", "Site", "find_sites"]
