"""What a model's own tensors are at each site, by ONNX Runtime: for kernels to be checked with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trtplug.kernels.check import SiteTensors
from trtplug.measure.reference import Reference, random_feeds
from trtplug.rewrite.find import find_pairs
from trtplug.rewrite.weights import read_weights

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from trtplug.model.load import Model
    from trtplug.rewrite.site import Pair
    from trtplug.rewrite.weights import SiteWeights
    from trtplug.tensor import Sizes

    Array = np.ndarray[Any, np.dtype[Any]]


def read_activations(
    model: Model, sizes: Mapping[str, Sizes], seed: int, only: Collection[str] | None = None
) -> dict[str, SiteTensors]:
    """Input, weights, residual and output of each site of the main graph, by its convolution.

    After them those of its pairs, by their label.

    The model runs once, as written, on random inputs. All tensors are in memory at the same time.

    Args:
        model: what runs.
        sizes: of its inputs.
        seed: of its inputs.
        only: labels of convolutions and of pairs; all by default.

    Raises:
        BackendMissingError: ONNX Runtime is not installed.
        ReferenceFailedError: it cannot run the model.
    """
    pairs = [p for p in find_pairs(model)[0] if only is None or p.label in only]
    inside = {s.conv for p in pairs for s in (p.depthwise, p.pointwise)}
    sites = tuple(read_weights(model, None if only is None else {*only, *inside}))
    wanted = [n for s in sites for n in (s.site.input, s.residual, s.site.output) if n]
    fed = {spec.name for spec in model.inputs}
    run = Reference(model.path, reveal=[name for name in wanted if name not in fed]).run
    feeds = random_feeds(model.inputs, sizes, seed)
    found = {**feeds, **run(feeds)}
    of_site = {s.site.conv: _tensors(s, found) for s in sites}
    return {
        **{conv: s for conv, s in of_site.items() if only is None or conv in only},
        **{p.label: both for p in pairs if (both := _pair(p, of_site)) is not None},
    }


def _pair(pair: Pair, of_site: Mapping[str, SiteTensors]) -> SiteTensors | None:
    """Those of a pair; None where it is not of the main graph."""
    first, second = of_site.get(pair.depthwise.conv), of_site.get(pair.pointwise.conv)
    if first is None or second is None:
        return None
    return SiteTensors(
        x=first.x,
        weights=first.weights + second.weights,
        biases=first.biases + second.biases,
        residual=second.residual,
        output=second.output,
    )


def _tensors(site: SiteWeights, found: Mapping[str, Array]) -> SiteTensors:
    return SiteTensors(
        x=_wide(found[site.site.input]),
        weights=(_wide(site.weight),),
        biases=(_wide(site.bias),),
        residual=_wide(found[site.residual]) if site.residual else None,
        output=_wide(found[site.site.output]),
    )


def _wide(array: Array) -> Array:
    return array.astype(np.float32)
