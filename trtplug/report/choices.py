"""What was planned for each site against what the engine holds: plugins kept, plugins dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.errors import PluginDroppedError
from trtplug.report.report import ReportChoice

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trtplug.offer.model import PlacedUnit
    from trtplug.offer.offer import PluginOffer
    from trtplug.plan.plan import PlannedSite
    from trtplug.report.model_facts import ModelFacts
    from trtplug.report.report import Report, ReportLayer, ReportSite

    Layers = tuple[ReportLayer, ...]
    Held = Mapping[str, tuple[int, ...]]
    """Site of a kit -> numbers of the tactics whose kernels the engine holds."""

_MOVES = ("reformat", "cast", "copy")
"""What layers that only move a tensor do."""


def stands_for(facts: ModelFacts, offer: PluginOffer | None) -> Mapping[str, tuple[str, ...]]:
    """Name of a plugin node -> labels of the ONNX nodes that it stands for."""
    if offer is None:
        return {}
    nodes = {site.conv: site.nodes for site in facts.sites}
    return {
        unit.node: tuple(label for conv in unit.ready.unit.asked.convs for label in nodes[conv])
        for unit in offer.placed
    }


def report_choices(
    facts: ModelFacts, layers: Layers, offer: PluginOffer | None, held: Held
) -> dict[str, ReportChoice]:
    """Convolution -> what was planned for it, and what stands around its plugin."""
    if offer is None:
        return {}
    planned = {site.site: site for site in offer.choices.sites}
    units = offer.unit_of
    return {
        site.conv: _choice(planned[site.conv], units.get(site.conv), layers, held)
        for site in facts.sites
        if site.conv in planned
    }


def _choice(
    planned: PlannedSite, unit: PlacedUnit | None, layers: Layers, held: Held
) -> ReportChoice:
    layer = next((x for x in layers if planned.site in x.onnx_nodes), None) if unit else None
    tactic = _tactic(unit, layer, held) if unit and layer else None
    kernels = unit.ready.site.kernels if unit else ()
    asked = unit.ready.unit.asked if unit else None
    return ReportChoice(
        choice=planned.choice,
        reason=planned.reason,
        pair=asked.label if asked and asked.is_pair else None,
        tactics=tuple(k.tactic for k in kernels),
        tactic=tactic,
        kernel_sha256=next((k.ptx_sha256 for k in kernels if k.tactic == tactic), None),
        kit_sha256=unit.ready.site.digest if unit else None,
        reformats_before=_movers(layer, layers, before=True) if layer else (),
        reformats_after=_movers(layer, layers, before=False) if layer else (),
    )


def _tactic(unit: PlacedUnit, layer: ReportLayer, held: Held) -> str | None:
    """The tactic that the builder took.

    The only one; else the only one whose kernel lies in the engine; else that whose number the
    builder tells.
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
    """What of the plan did not come about, or could not be checked."""
    if offer is None:
        return
    if offer.mode == "always" and not offer.placed:
        yield "No site got the plugin, whatever --plugin always says: each site tells why."
    if offer.log:
        yield "Some kernels of the plugin did not compile: kernels.log has the compiler's words."
    dropped = dropped_sites(sites)
    if dropped and not layers:
        yield "Whether the engine holds the plugins is not known: there is no layer listing."
    elif dropped:
        names = ", ".join(map(repr, dropped))
        yield f"The engine has no plugin layer for {names}, for which the plan has one."


def refuse_dropped(report: Report, offer: PluginOffer | None) -> None:
    """Whoever says `--plugin always` wants no engine without it, and no surprise in production.

    Raises:
        PluginDroppedError: a plugin of the plan is not in the engine.
    """
    dropped = dropped_sites(report.sites)
    if offer is not None and offer.mode == "always" and report.layers and dropped:
        raise PluginDroppedError(target=report.target, sites=dropped)
