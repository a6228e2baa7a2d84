"""Two locks compared: by field, by layer, by ONNX node, by cache key, by site.

Layers are found again by the ONNX nodes in them, since their names hold counters and positions;
those without nodes by their names without counters. The view by node shows how each node is
run, independent of layer names and of what else was fused into the layer. Pure.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Literal

from trtplug.timing.identity import Difference, mapping_differences

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from trtplug.lock.lock import Lock, LockLayer, LockSite


_COUNTER = re.compile(r"0x[0-9a-f]+|\d+")

_DIGEST_SHOWN = 16

LayerChangeKind = Literal["added", "removed", "changed", "renamed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerChange:
    """One layer that only one lock has, or that differs."""

    kind: LayerChangeKind
    name: str
    """In the second lock; in the first where it was removed."""
    before_name: str
    onnx_nodes: tuple[str, ...]
    differences: tuple[Difference, ...]
    """Kernel, tactic or type; empty where it was only renamed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChange:
    """One ONNX node that other kernels run."""

    node: str
    before: str
    """Type and kernel of each layer that holds it; empty where none does."""
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LockDiff:
    """All in which two locks differ."""

    inputs: tuple[Difference, ...]
    """Model, target, GPU, driver, versions, shapes, precision, flags."""
    outputs: tuple[Difference, ...]
    """Digests of engine and cache; equal choices can give other bytes."""
    layers: tuple[LayerChange, ...]
    nodes: tuple[NodeChange, ...]
    tactics: tuple[Difference, ...]
    """By cache key."""
    sites: tuple[Difference, ...]
    """By convolution."""
    bytes_count: bool
    """Whether the engine's canonical digest must agree: where no tactics are recorded."""

    @property
    def choices_differ(self) -> bool:
        """Whether any kernel, tactic or site differs; names do not count."""
        changed = any(change.kind != "renamed" for change in self.layers)
        return changed or bool(self.nodes or self.tactics or self.sites)

    @property
    def differs(self) -> bool:
        """Whether inputs or choices differ, or a digest that covers them."""
        digest = any(d.field == "engine canonical sha256" for d in self.outputs)
        return bool(self.inputs) or self.choices_differ or (digest and self.bytes_count)


def diff_locks(before: Lock, after: Lock) -> LockDiff:
    """What changed from one lock to the other."""
    return LockDiff(
        inputs=input_differences(before, after),
        outputs=mapping_differences(_outputs(before), _outputs(after)),
        layers=tuple(_layer_changes(before.layers, after.layers)),
        nodes=tuple(_node_changes(before.layers, after.layers)),
        tactics=_tactic_changes(before, after),
        sites=mapping_differences(_sites(before.sites), _sites(after.sites)),
        bytes_count=before.tactics is None and after.tactics is None,
    )


def input_differences(before: Lock, after: Lock) -> tuple[Difference, ...]:
    """Fields of what went in, flags one by one."""
    plain = mapping_differences(_inputs(before), _inputs(after))
    return plain + mapping_differences(before.flags, after.flags, "flag ")


def tactic_differences(lock: Lock, winners: Mapping[str, str]) -> tuple[Difference, ...]:
    """Keys of a cache that differ from a lock's, named by their operation where the lock has it."""
    return _by_operation(mapping_differences(lock.winners, winners), lock)


def _tactic_changes(before: Lock, after: Lock) -> tuple[Difference, ...]:
    """As `tactic_differences`, without keys that make no choice of this engine another.

    Those are keys that only changed with their operation's name, and keys that one lock has alone
    and that its build did not time: a timing cache serves all models of a machine.
    """
    passed_over = _rekeyed(before, after) | _rekeyed(after, before)
    passed_over |= _untimed_alone(before, after) | _untimed_alone(after, before)
    found = mapping_differences(before.winners, after.winners)
    return _by_operation((d for d in found if d.field not in passed_over), before, after)


def _by_operation(found: Iterable[Difference], *locks: Lock) -> tuple[Difference, ...]:
    """Differences of keys, each with the name of its operation where a lock has it."""
    ops = {t.key: f"{t.op} ({t.key})" for lock in locks for t in lock.tactics or () if t.op}
    return tuple(replace(d, field=ops.get(d.field, d.field)) for d in found)


def _untimed_alone(lock: Lock, other: Lock) -> set[str]:
    """Keys that the other lacks and that no operation of this build is known to have."""
    others = other.winners
    return {t.key for t in lock.tactics or () if t.op is None and t.key not in others}


def _rekeyed(lock: Lock, other: Lock) -> set[str]:
    """Keys of a lock that the other lacks, but has as another key: same nodes, same tactic."""
    mine, others = lock.winners, other.winners
    left = Counter(
        (frozenset(t.onnx_nodes), t.tactic_hash) for t in other.tactics or () if t.key not in mine
    )
    found = set()
    for tactic in lock.tactics or ():
        identity = frozenset(tactic.onnx_nodes), tactic.tactic_hash
        if tactic.key not in others and tactic.onnx_nodes and left[identity]:
            left[identity] -= 1
            found.add(tactic.key)
    return found


def _inputs(lock: Lock) -> dict[str, str]:
    gpu = {f"gpu {f.name}": getattr(lock.gpu, f.name) for f in fields(lock.gpu)} if lock.gpu else {}
    return {
        "model sha256": lock.model.sha256,
        "target": lock.target,
        "backend": lock.backend,
        "backend version": lock.backend_version,
        **gpu,
        "shapes": " ".join(lock.shapes),
        "precision": lock.precision,
    }


def _outputs(lock: Lock) -> dict[str, str]:
    return {
        "tool version": lock.tool_version,
        "library": lock.library,
        "engine sha256": lock.engine.sha256,
        "engine canonical sha256": lock.engine.canonical_sha256,
        "timing cache sha256": lock.timing_cache.sha256 if lock.timing_cache else "",
    }


def _sites(sites: Iterable[LockSite] | None) -> dict[str, str]:
    return {site.conv: " ".join(filter(None, _site_words(site))) for site in sites or ()}


def _site_words(site: LockSite) -> tuple[str | None, ...]:
    ptx, kit = site.ptx_sha256, site.kit_sha256
    return (
        site.choice,
        site.tactic,
        ptx and f"ptx {ptx[:_DIGEST_SHOWN]}",
        # All that distinguishes two plugins where the builder does not report its tactic.
        kit and f"offer {kit[:_DIGEST_SHOWN]}",
    )


def _layer_changes(
    before: tuple[LockLayer, ...], after: tuple[LockLayer, ...]
) -> Iterator[LayerChange]:
    pairs, removed, added = _matched(before, after)
    for one, two in pairs:
        differences = _choice_differences(one, two)
        if differences or one.name != two.name:
            yield _change("changed" if differences else "renamed", one, two, differences)
    yield from (_change("removed", layer, layer) for layer in removed)
    yield from (_change("added", layer, layer) for layer in added)


def _change(
    kind: LayerChangeKind,
    before: LockLayer,
    after: LockLayer,
    differences: tuple[Difference, ...] = (),
) -> LayerChange:
    return LayerChange(
        kind=kind,
        name=after.name,
        before_name=before.name,
        onnx_nodes=after.onnx_nodes,
        differences=differences,
    )


def _matched(
    before: Iterable[LockLayer], after: Iterable[LockLayer]
) -> tuple[list[tuple[LockLayer, LockLayer]], list[LockLayer], list[LockLayer]]:
    """Pairs, what only the first has, what only the second has; the surest pairs are made first.

    Several layers of one identity are paired in their order.
    """
    pairs: list[tuple[LockLayer, LockLayer]] = []
    removed, added = ([(x, _identities(x)) for x in layers] for layers in (before, after))
    for surest in range(4):
        waiting: dict[Hashable, deque[LockLayer]] = defaultdict(deque)
        for layer, identities in removed:
            waiting[identities[surest]].append(layer)
        waiting.pop(None, None)
        rest = []
        for layer, identities in added:
            if same := waiting.get(identities[surest]):
                pairs.append((same.popleft(), layer))
            else:
                rest.append((layer, identities))
        taken = {id(one) for one, _ in pairs}
        removed, added = [pair for pair in removed if id(pair[0]) not in taken], rest
    return pairs, [layer for layer, _ in removed], [layer for layer, _ in added]


def _identities(layer: LockLayer) -> tuple[Hashable, ...]:
    """What a layer may be found again by, the surest first; None where it does not apply."""
    nodes = frozenset(layer.onnx_nodes)
    exact = layer.name, layer.type, nodes
    if nodes:
        return exact, (layer.type, nodes), nodes, None
    return exact, None, None, (layer.type, _COUNTER.sub("#", layer.name))


def _choice_differences(one: LockLayer, two: LockLayer) -> tuple[Difference, ...]:
    """A tactic that one of the two does not have is no difference.

    A hit in the timing cache reports none; its kernel's name does, and so do the winners by key.
    """
    before, after = _choice(one), _choice(two)
    if not (one.tactic_hash and two.tactic_hash):
        before, after = before | {"tactic": ""}, after | {"tactic": ""}
    return mapping_differences(before, after)


def _choice(layer: LockLayer) -> dict[str, str]:
    return {
        "type": layer.type,
        "kernel": layer.kernel or layer.kernel_status,
        "tactic": layer.tactic_hash or "",
    }


def _node_changes(
    before: tuple[LockLayer, ...], after: tuple[LockLayer, ...]
) -> Iterator[NodeChange]:
    one, two = _by_node(before), _by_node(after)
    for node in dict.fromkeys((*one, *two)):
        runs, others = one.get(node, []), two.get(node, [])
        if not all(run[-1] for run in (*runs, *others)):
            # As for layers: a tactic that is not reported is no difference.
            runs, others = ([(*run[:2], "") for run in found] for found in (runs, others))
        if sorted(runs) != sorted(others):
            yield NodeChange(node=node, before=_words(runs), after=_words(others))


def _by_node(layers: Iterable[LockLayer]) -> dict[str, list[tuple[str, ...]]]:
    """ONNX node -> how it is run: type, kernel and tactic of each layer that holds it."""
    found: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for layer in layers:
        for node in layer.onnx_nodes:
            found[node].append(tuple(_choice(layer).values()))
    return found


def _words(runs: Iterable[tuple[str, ...]]) -> str:
    return " + ".join(" ".join(filter(None, run)) for run in sorted(runs))
