"""What the op of each site would be given beside its input: folded weights, bias and residual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trtplug.model.convolution import read_convolution
from trtplug.model.graph import index_graph
from trtplug.rewrite.find import search
from trtplug.rewrite.fold import fold_bias, fold_weight
from trtplug.rewrite.site import Site

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from trtplug.model.constants import Constant
    from trtplug.model.convolution import Convolution
    from trtplug.model.load import Model
    from trtplug.rewrite.cbr_rule import Match
    from trtplug.rewrite.scope import Scope

    Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SiteWeights:
    """A site of the main graph and its constants."""

    site: Site
    weight: Array
    """[outputs, channels / group, kernel height, kernel width], in the model's type."""
    bias: Array
    """[outputs]."""
    residual: str
    """Tensor that is added; empty where there is none."""


def read_weights(model: Model, only: Collection[str] | None = None) -> Iterator[SiteWeights]:
    """The sites of the main graph, with what folds into them folded.

    Args:
        model: never changed.
        only: labels of the convolutions to take; all by default.

    Raises:
        NodeInvalidError: a convolution that contradicts itself.
    """
    root = index_graph(model.proto.graph)
    found, _ = search(model, root, None)
    for scope, matches in found:
        for match in matches if scope.graph is root else ():
            if only is None or match.site.conv in only:
                yield weights_of(match, scope)


def weights_of(match: Match, scope: Scope) -> SiteWeights:
    """The constants of one site."""
    return SiteWeights(
        site=match.site,
        weight=weight_of(match, scope),
        bias=bias_of(match, scope),
        residual=match.residual,
    )


def weight_of(match: Match, scope: Scope) -> Array:
    """The weight alone: [outputs, channels / group, kernel height, kernel width]."""
    weight, geometry = constant_of(match, scope)
    if not is_scaled(match):
        return weight.read()
    return fold_weight(weight, geometry, match.before, match.after)


def bias_of(match: Match, scope: Scope, dtype: np.dtype[Any] | None = None) -> Array:
    """The bias alone, [outputs], in its own type or in that given."""
    weight, geometry = constant_of(match, scope)
    bias = scope.constants.get(match.bias)
    return fold_bias(weight, bias, geometry, match.before, match.after, dtype)


def is_scaled(match: Match) -> bool:
    """Whether a scale folds into the weight."""
    return bool(np.any(match.before.scale != 1) or np.any(match.after.scale != 1))


def constant_of(match: Match, scope: Scope) -> tuple[Constant, Convolution]:
    """The weight as it is stored, and what its convolution does with it.

    Raises:
        NodeInvalidError: the convolution contradicts itself.
    """
    weight = scope.constants.get(match.weight)
    assert weight is not None  # A site has a constant weight.
    return weight, read_convolution(match.conv, weight.dims, scope.path)
