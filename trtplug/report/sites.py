"""Sites and near misses joined with the engine's layers: what became of each convolution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.errors import PluginDroppedError
from trtplug.report.bounds import known_sum
from trtplug.report.data import ReportChoice, ReportNearMiss, ReportSite, SiteOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trtplug.plan import PlannedSite
    from trtplug.plugin.units import PlacedUnit, PluginOffer
    from trtplug.report.data import Report, ReportLayer
    from trtplug.report.model_facts import ModelFacts
    from trtplug.rewrite.site import Site

    Layers = tuple[ReportLayer, ...]
    Held = Mapping[str, tuple[int, ...]]
    """Site of a kit -> numbers of the tactics whose kernels the engine holds."""
    Homes = Mapping[str, list[ReportLayer]]
    """Label of an ONNX node -> the layers that hold it."""


_MOVES = ("reformat", "cast", "copy")
"""What layers that only move a tensor do."""


def replaced_nodes(facts: ModelFacts, offer: PluginOffer | None) -> Mapping[str, tuple[str, ...]]:
    """Name of a plugin node -> labels of the ONNX nodes that it replaces."""
    if offer is None:
        return {}
    nodes = {site.conv: site.nodes for site in facts.sites}
    return {
        unit.node: tuple(label for conv in unit.ready.unit.candidate.convs for label in nodes[conv])
        for unit in offer.placed
    }


def _choice(
    planned: PlannedSite, unit: PlacedUnit | None, layers: Layers, held: Held
) -> ReportChoice:
    layer = next((x for x in layers if planned.site in x.onnx_nodes), None) if unit else None
    tactic = _tactic(unit, layer, held) if unit and layer else None
    kernels = unit.ready.site.kernels if unit else ()
    candidate = unit.ready.unit.candidate if unit else None
    return ReportChoice(
        choice=planned.choice,
        reason=planned.reason,
        pair=candidate.label if candidate and candidate.is_pair else None,
        tactics=tuple(k.tactic for k in kernels),
        tactic=tactic,
        kernel_sha256=next((k.ptx_sha256 for k in kernels if k.tactic == tactic), None),
        kit_sha256=unit.ready.site.digest if unit else None,
        reformats_before=_movers(layer, layers, before=True) if layer else (),
        reformats_after=_movers(layer, layers, before=False) if layer else (),
    )


def _tactic(unit: PlacedUnit, layer: ReportLayer, held: Held) -> str | None:
    """The tactic that the builder took.

    The only one; else the only one whose kernel is in the engine; else the one whose number the
    builder reports.
    """
    tactics = unit.ready.site.tactics
    if len(tactics) == 1:
        return tactics[0].name
    numbers = held.get(unit.ready.site.digest, ())
    inside = [t.name for t in tactics if t.number in numbers]
    if len(inside) == 1:
        return inside[0]
    chosen = next((c.tactic_hash for c in layer.candidates if c.chosen), None)
    by_number = {t.number: t.name for t in tactics}
    try:
        return by_number.get(int(chosen, 16)) if chosen else None
    except ValueError:
        return None


def _movers(layer: ReportLayer, layers: Layers, *, before: bool) -> tuple[str, ...]:
    """Layers right before or after that hold no ONNX node and only move a tensor."""
    border = {t.name for t in (layer.inputs if before else layer.outputs)}
    return tuple(
        other.name
        for other in layers
        if other.added in _MOVES
        and border.intersection(t.name for t in (other.outputs if before else other.inputs))
    )


def dropped_sites(sites: tuple[ReportSite, ...]) -> tuple[str, ...]:
    """Convolutions that were to be run by a plugin, and are by none."""
    return tuple(
        s.conv
        for s in sites
        if s.choice is not None and s.choice.choice == "plugin" and s.outcome != "plugin"
    )


def plugin_warnings(
    sites: tuple[ReportSite, ...], layers: Layers, offer: PluginOffer | None
) -> Iterator[str]:
    """Planned plugins that the engine lacks, or that could not be checked."""
    if offer is None:
        return
    if offer.mode == "always" and not offer.placed:
        yield "--plugin always: no site could use the plugin; see each site's reason."
    if offer.log:
        yield "Some kernels of the plugin did not compile: kernels.log has the compiler's messages."
    dropped = dropped_sites(sites)
    if dropped and not layers:
        yield "Whether the engine holds the plugins is not known: there is no layer listing."
    elif dropped:
        names = ", ".join(map(repr, dropped))
        yield f"The engine has no plugin layer for {names}, for which the plan has one."


def refuse_dropped(report: Report, offer: PluginOffer | None) -> None:
    """`--plugin always` accepts no engine that lacks a planned plugin.

    Raises:
        PluginDroppedError: a plugin of the plan is not in the engine.
    """
    dropped = dropped_sites(report.sites)
    if offer is not None and offer.mode == "always" and report.layers and dropped:
        raise PluginDroppedError(target=report.target, sites=dropped)


def report_sites(
    facts: ModelFacts, layers: Layers, offer: PluginOffer | None = None, held: Held | None = None
) -> tuple[ReportSite, ...]:
    """One row a site; `offer` is None where the backend takes no plugins."""
    homes = _layers_of_nodes(layers)
    planned = {site.site: site for site in offer.sites} if offer else {}
    units = offer.unit_of if offer else {}
    choices = {
        conv: _choice(site, units.get(conv), layers, held or {}) for conv, site in planned.items()
    }
    return tuple(_row(site, facts, homes, choices.get(site.conv)) for site in facts.sites)


def report_near_misses(facts: ModelFacts, layers: Layers) -> tuple[ReportNearMiss, ...]:
    """One row a near miss."""
    homes = _layers_of_nodes(layers)
    return tuple(
        ReportNearMiss(
            conv=miss.conv,
            reason=miss.reason.value,
            node=miss.node,
            layers=tuple(layer.name for layer in homes.get(miss.conv, ())),
        )
        for miss in facts.near_misses
    )


def _layers_of_nodes(layers: Layers) -> Homes:
    homes: dict[str, list[ReportLayer]] = {}
    for layer in layers:
        for label in layer.onnx_nodes:
            homes.setdefault(label, []).append(layer)
    return homes


def _row(site: Site, facts: ModelFacts, homes: Homes, choice: ReportChoice | None) -> ReportSite:
    planned = choice is not None and choice.choice == "plugin"
    outcome, why = (_plugin_outcome if planned else _outcome)(site, homes)
    fell_into = {layer.name: None for label in site.nodes for layer in homes.get(label, ())}
    return ReportSite(
        conv=site.conv,
        nodes=site.nodes,
        activation=site.activation,
        residual=site.residual,
        kernel_shape=site.kernel_shape,
        strides=site.strides,
        group=site.group,
        flops=known_sum(facts.flops(label) for label in site.nodes),
        outcome=outcome,
        layers=tuple(fell_into),
        why=why,
        choice=choice,
    )


def _plugin_outcome(site: Site, homes: Homes) -> tuple[SiteOutcome, str]:
    """Its nodes are not in the model that was built: a layer that replaces them is ours."""
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
    strays = min(([n for n in others if n not in layer.onnx_nodes] for layer in found), key=len)
    if not strays:
        return "native_fused", f"one layer holds all of it: {found[0].name}"
    where = homes[strays[0]][0].name
    more = f" (and {len(strays) - 1} more nodes)" if len(strays) > 1 else ""
    return "native_unfused", f"{strays[0]} fell into {where}{more}"
