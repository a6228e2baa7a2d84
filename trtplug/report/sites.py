"""Sites and near misses joined with the engine's layers: what became of each convolution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.report.choices import report_choices
from trtplug.report.report import ReportNearMiss, ReportSite, SiteOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trtplug.offer.offer import PluginOffer
    from trtplug.report.model_facts import ModelFacts
    from trtplug.report.report import ReportChoice, ReportLayer
    from trtplug.rewrite.site import Site

    Homes = Mapping[str, tuple[ReportLayer, ...]]


def report_sites(
    facts: ModelFacts,
    layers: tuple[ReportLayer, ...],
    offer: PluginOffer | None = None,
    held: Mapping[str, tuple[int, ...]] | None = None,
) -> tuple[ReportSite, ...]:
    """One row a site.

    Args:
        facts: of the model.
        layers: of the engine.
        offer: None where the backend takes no plugins.
        held: site of a kit -> numbers of the tactics whose kernels the engine holds.
    """
    homes = layers_of_nodes(layers)
    choices = report_choices(facts, layers, offer, held or {})
    return tuple(_row(site, facts, homes, choices.get(site.conv)) for site in facts.sites)


def report_near_misses(
    facts: ModelFacts, layers: tuple[ReportLayer, ...]
) -> tuple[ReportNearMiss, ...]:
    """One row a near miss."""
    homes = layers_of_nodes(layers)
    return tuple(
        ReportNearMiss(
            conv=miss.conv,
            reason=miss.reason.value,
            node=miss.node,
            layers=tuple(layer.name for layer in homes.get(miss.conv, ())),
        )
        for miss in facts.near_misses
    )


def layers_of_nodes(layers: tuple[ReportLayer, ...]) -> dict[str, tuple[ReportLayer, ...]]:
    """Label of an ONNX node -> the layers that hold it."""
    homes: dict[str, tuple[ReportLayer, ...]] = {}
    for layer in layers:
        for label in layer.onnx_nodes:
            homes[label] = (*homes.get(label, ()), layer)
    return homes


def _row(site: Site, facts: ModelFacts, homes: Homes, choice: ReportChoice | None) -> ReportSite:
    if choice is not None and choice.choice == "plugin":
        outcome, why = _plugin_outcome(site, homes)
    else:
        outcome, why = _outcome(site, homes)
    flops = [facts.flops(label) for label in site.nodes]
    fell_into = {layer.name: None for label in site.nodes for layer in homes.get(label, ())}
    return ReportSite(
        conv=site.conv,
        nodes=site.nodes,
        activation=site.activation,
        residual=site.residual,
        kernel_shape=site.kernel_shape,
        strides=site.strides,
        group=site.group,
        flops=None if None in flops else sum(f or 0 for f in flops),
        outcome=outcome,
        layers=tuple(fell_into),
        why=why,
        choice=choice,
    )


def _plugin_outcome(site: Site, homes: Homes) -> tuple[SiteOutcome, str]:
    """Its nodes are not in the model that was built: whatever layer stands for them is ours."""
    found = homes.get(site.conv, ())
    if not found:
        return "unknown", "the builder was given a plugin, and no layer of the engine is it"
    return "plugin", f"a plugin's layer: {found[0].name}"


def _outcome(site: Site, homes: Homes) -> tuple[SiteOutcome, str]:
    """Fused where one layer holds the convolution and all else of the site that is in any layer.

    Nodes in no layer were folded into weights, or became part of another node. Nodes before the
    convolution, such as a scale that a kernel of ours would fold into the weights, do not count.
    """
    found = homes.get(site.conv, ())
    if not found:
        return "unknown", "no layer names the convolution"
    after = site.nodes[site.nodes.index(site.conv) + 1 :]
    others = [label for label in after if label in homes]
    strays = min((list(_strays(others, layer)) for layer in found), key=len)
    if not strays:
        return "native_fused", f"one layer holds all of it: {found[0].name}"
    where = homes[strays[0]][0].name
    more = f" (and {len(strays) - 1} more nodes)" if len(strays) > 1 else ""
    return "native_unfused", f"{strays[0]} fell into {where}{more}"


def _strays(labels: list[str], layer: ReportLayer) -> Iterator[str]:
    inside = set(layer.onnx_nodes)
    return (label for label in labels if label not in inside)
