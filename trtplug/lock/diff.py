"""Two locks compared: by field, by layer, by ONNX node, by cache key, by site.

Layers are found again by the ONNX nodes in them, since their names hold counters and positions;
those without nodes by their names without counters. The view by node tells what became of each node
however its layer is called and whatever else was fused into it. Pure.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

from trtplug.timing.identity import Difference, mapping_differences

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

    from trtplug.lock.lock import Lock, LockLayer, LockSite


_COUNTER = re.compile(r"0x[0-9a-f]+|\d+")

_PTX_DIGITS = 16

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
    """Whether the engine's canonical digest must agree: where no tactics say what was chosen."""

    @property
    def choices_differ(self) -> bool:
        """Whether any kernel, tactic or site differs; names do not count."""
        changed = any(change.kind != "renamed" for change in self.layers)
        return changed or bool(self.nodes or self.tactics or self.sites)

    @property
    def differs(self) -> bool:
        """Whether inputs or choices differ, or a digest that stands for them."""
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
    ops = {t.key: t.op for t in lock.tactics or () if t.op}
    found = mapping_differences(lock.winners, winners)
    return tuple(
        Difference(field=_key_words(d.field, ops), wanted=d.wanted, found=d.found) for d in found
    )


def _tactic_changes(before: Lock, after: Lock) -> tuple[Difference, ...]:
    """As `tactic_differences`, without keys that make no choice of this engine another.

    Those are keys that only changed with their operation's name, and keys that one lock has alone
    and that its build did not time: a timing cache serves all models of a machine.
    """
    passed_over = _rekeyed(before, after) | _rekeyed(after, before)
    passed_over |= _untimed_alone(before, after) | _untimed_alone(after, before)
    ops = {t.key: t.op for t in (*(before.tactics or ()), *(after.tactics or ())) if t.op}
    return tuple(
        Difference(field=_key_words(d.field, ops), wanted=d.wanted, found=d.found)
        for d in mapping_differences(before.winners, after.winners)
        if d.field not in passed_over
    )


def _untimed_alone(lock: Lock, other: Lock) -> set[str]:
    """Keys that the other lacks and that no operation of this build is known to have."""
    theirs = other.winners
    return {t.key for t in lock.tactics or () if t.op is None and t.key not in theirs}


def _rekeyed(lock: Lock, other: Lock) -> set[str]:
    """Keys of a lock that the other lacks, but has as another key: same nodes, same tactic."""
    mine, theirs = lock.winners, other.winners
    left = Counter(
        (frozenset(t.onnx_nodes), t.tactic_hash) for t in other.tactics or () if t.key not in mine
    )
    found = set()
    for tactic in lock.tactics or ():
        identity = frozenset(tactic.onnx_nodes), tactic.tactic_hash
        if tactic.key not in theirs and tactic.onnx_nodes and left[identity]:
            left[identity] -= 1
            found.add(tactic.key)
    return found


def _key_words(key: str, ops: Mapping[str, str]) -> str:
    return f"{ops[key]} ({key})" if key in ops else key


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


def _site_words(site: LockSite) -> Iterator[str]:
    yield site.choice
    yield site.tactic or ""
    yield f"ptx {site.ptx_sha256[:_PTX_DIGITS]}" if site.ptx_sha256 else ""
    # All that tells two plugins apart where the builder does not say which tactic it took.
    yield f"offer {site.kit_sha256[:_PTX_DIGITS]}" if site.kit_sha256 else ""


def _layer_changes(
    before: tuple[LockLayer, ...], after: tuple[LockLayer, ...]
) -> Iterator[LayerChange]:
    pairs, removed, added = _matched(before, after)
    for one, two in pairs:
        differences = _choice_differences(one, two)
        if differences or one.name != two.name:
            yield LayerChange(
                kind="changed" if differences else "renamed",
                name=two.name,
                before_name=one.name,
                onnx_nodes=two.onnx_nodes,
                differences=differences,
            )
    for kind, layers in (("removed", removed), ("added", added)):
        for layer in layers:
            yield _alone(layer, "removed" if kind == "removed" else "added")


def _alone(layer: LockLayer, kind: LayerChangeKind) -> LayerChange:
    return LayerChange(
        kind=kind,
        name=layer.name,
        before_name=layer.name,
        onnx_nodes=layer.onnx_nodes,
        differences=(),
    )


def _matched(
    before: tuple[LockLayer, ...], after: tuple[LockLayer, ...]
) -> tuple[list[tuple[LockLayer, LockLayer]], list[LockLayer], list[LockLayer]]:
    """Pairs, what only the first has, what only the second has; the surest pairs are made first.

    Several layers of one identity are paired in their order.
    """
    pairs: list[tuple[LockLayer, LockLayer]] = []
    removed, added = list(before), list(after)
    for identity in (_exactly, _by_nodes_and_type, _by_nodes, _by_plain_name):
        found, removed, added = _paired(removed, added, identity)
        pairs += found
    return pairs, removed, added


def _paired(
    before: list[LockLayer], after: list[LockLayer], identity: Callable[[LockLayer], Hashable]
) -> tuple[list[tuple[LockLayer, LockLayer]], list[LockLayer], list[LockLayer]]:
    waiting: dict[Hashable, list[LockLayer]] = defaultdict(list)
    for layer in before:
        waiting[identity(layer)].append(layer)
    pairs, added = [], []
    for layer in after:
        same = waiting[identity(layer)] if identity(layer) is not None else []
        if same:
            pairs.append((same.pop(0), layer))
        else:
            added.append(layer)
    taken = {id(one) for one, _ in pairs}
    return pairs, [layer for layer in before if id(layer) not in taken], added


def _exactly(layer: LockLayer) -> Hashable:
    return layer.name, layer.type, frozenset(layer.onnx_nodes)


def _by_nodes_and_type(layer: LockLayer) -> Hashable:
    return (layer.type, frozenset(layer.onnx_nodes)) if layer.onnx_nodes else None


def _by_nodes(layer: LockLayer) -> Hashable:
    return frozenset(layer.onnx_nodes) if layer.onnx_nodes else None


def _by_plain_name(layer: LockLayer) -> Hashable:
    return None if layer.onnx_nodes else (layer.type, _COUNTER.sub("#", layer.name))


def _choice_differences(one: LockLayer, two: LockLayer) -> tuple[Difference, ...]:
    """A tactic that one of the two does not tell is no difference.

    A hit in the timing cache may tell none; its kernel's name does, and so do the winners by key.
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
        runs, others = one.get(node, Counter()), two.get(node, Counter())
        if not all(tactic for _, _, tactic in (*runs, *others)):
            # As for layers: a tactic that is not told is no difference.
            runs, others = _without_tactics(runs), _without_tactics(others)
        if runs != others:
            yield NodeChange(node=node, before=_words(runs), after=_words(others))


def _by_node(layers: Iterable[LockLayer]) -> dict[str, Counter[tuple[str, str, str]]]:
    """ONNX node -> how it is run: type, kernel and tactic of each layer that holds it."""
    found: dict[str, Counter[tuple[str, str, str]]] = defaultdict(Counter)
    for layer in layers:
        choice = _choice(layer)
        for node in layer.onnx_nodes:
            found[node][choice["type"], choice["kernel"], choice["tactic"]] += 1
    return found


def _without_tactics(runs: Counter[tuple[str, str, str]]) -> Counter[tuple[str, str, str]]:
    plain: Counter[tuple[str, str, str]] = Counter()
    for (kind, kernel, _), count in runs.items():
        plain[kind, kernel, ""] += count
    return plain


def _words(runs: Counter[tuple[str, str, str]]) -> str:
    return " + ".join(" ".join(filter(None, run)) for run in sorted(runs.elements()))
