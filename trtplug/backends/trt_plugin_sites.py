"""The sites of a kit as plugins ask for them: by digest, with the text of their kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtplug.ops.plugin_layer import KEY_ATTRIBUTES, layer_type, site_key
from trtplug.tactics.formats import formats_of
from trtplug.tactics.kernel_mark import mark_ptx
from trtplug.tactics.kit import read_kit, read_ptx

if TYPE_CHECKING:
    from pathlib import Path

    from trtplug.tactics.formats import TensorFormat
    from trtplug.tactics.kit import KitSite
    from trtplug.tactics.pair.catalog import PairTactic
    from trtplug.tactics.tactic import Tactic

NAMESPACE = "trtplug"
PLUGIN_VERSION = "1"

TYPE_NAMES = {"float": "FLOAT", "float16": "HALF", "bfloat16": "BF16"}
"""Types of the op -> names of TensorRT's `DataType`."""


class PluginSites:
    """A kit and its kernels, read at once: what TensorRT asks for later is there."""

    def __init__(self, folder: Path) -> None:
        """Reads it.

        Raises:
            DocumentError: it is damaged.
        """
        self.kit = read_kit(folder)
        self._by_key = {site_key(d): s for d, s in self.kit.sites.items()}
        digests = {k.ptx_sha256 for s in self.kit.sites.values() for k in s.kernels}
        self._ptx = {digest: read_ptx(folder, digest) for digest in digests}

    def find(self, high: int, low: int) -> KitSite:
        """The site of a node's attributes `KEY_ATTRIBUTES`.

        Raises:
            ValueError: the kit has no such site.
        """
        found = self._by_key.get((high, low))
        if found is None:
            raise ValueError(f"the plugin kit has no site with the key {high}, {low}")
        return found

    def ptx(self, site: KitSite, number: int) -> str:
        """The kernel of a tactic, with a line on top that says so.

        Raises:
            ValueError: the site offers no such tactic.
        """
        tactic = tactic_of(site, number)
        (digest,) = (k.ptx_sha256 for k in site.kernels if k.tactic == tactic.name)
        return mark_ptx(self._ptx[digest], site.digest, number)

    def layer_types(self) -> tuple[str, ...]:
        """Types of the nodes that the sites stand for, each once."""
        sites = self.kit.sites.values()
        return tuple(sorted({layer_type(s.op, residual=s.problem.has_residual) for s in sites}))


def read_key(fields: Any) -> tuple[int, int]:
    """A site's key, from the fields that a creator is given: arrays of one number each.

    Raises:
        ValueError: a number is missing.
    """
    found = {f.name: f.data for f in fields}
    missing = [name for name in KEY_ATTRIBUTES if name not in found]
    if missing:
        raise ValueError(f"a plugin node lacks {', '.join(missing)}")
    high, low = (int(found[name][0]) for name in KEY_ATTRIBUTES)
    return high, low


def tactic_of(site: KitSite, number: int) -> Tactic | PairTactic:
    """The tactic that TensorRT knows by a number.

    Raises:
        ValueError: the site offers no such tactic.
    """
    found = next((t for t in site.tactics if t.number == number), None)
    if found is None:
        numbers = ", ".join(str(t.number) for t in site.tactics)
        raise ValueError(f"site {site.digest} has no tactic {number}; it has {numbers}")
    return found


def tactics_by_formats(site: KitSite) -> dict[tuple[TensorFormat, ...], list[int]]:
    """For each combination of formats the numbers of the tactics that take it."""
    found: dict[tuple[TensorFormat, ...], list[int]] = {}
    for tactic in site.tactics:
        found.setdefault(formats_of(tactic, site.problem), []).append(tactic.number)
    return found


def describe_site(site: KitSite) -> str:
    """What a layer's metadata says of it."""
    return f"trtplug site={site.digest} op={site.op} packing={site.packing}"
