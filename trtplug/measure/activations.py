"""What a model's own tensors are at each site, by ONNX Runtime: for kernels to be checked with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trtplug.candidates.check import SiteTensors
from trtplug.measure.reference import Reference, random_feeds
from trtplug.rewrite.weights import read_weights

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from trtplug.model.load import Model
    from trtplug.rewrite.weights import SiteWeights
    from trtplug.tensor import Sizes

    Array = np.ndarray[Any, np.dtype[Any]]


def read_activations(
    model: Model, sizes: Mapping[str, Sizes], seed: int, only: Collection[str] | None = None
) -> dict[str, SiteTensors]:
    """Input, weights, residual and output of each site of the main graph, by its convolution.

    The model runs once, as written, on random inputs. All tensors are in memory at the same time.

    Args:
        model: what runs.
        sizes: of its inputs.
        seed: of its inputs.
        only: labels of the convolutions; all sites by default.

    Raises:
        BackendMissingError: ONNX Runtime is not installed.
        ReferenceFailedError: it cannot run the model.
    """
    sites = tuple(read_weights(model, only))
    wanted = [n for s in sites for n in (s.site.input, s.residual, s.site.output) if n]
    fed = {spec.name for spec in model.inputs}
    run = Reference(model.path, reveal=[name for name in wanted if name not in fed]).run
    feeds = random_feeds(model.inputs, sizes, seed)
    found = {**feeds, **run(feeds)}
    return {s.site.conv: _tensors(s, found) for s in sites}


def _tensors(site: SiteWeights, found: Mapping[str, Array]) -> SiteTensors:
    return SiteTensors(
        x=_wide(found[site.site.input]),
        weights=_wide(site.weight),
        bias=_wide(site.bias),
        residual=_wide(found[site.residual]) if site.residual else None,
        output=_wide(found[site.site.output]),
    )


def _wide(array: Array) -> Array:
    return array.astype(np.float32)
