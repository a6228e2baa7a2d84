"""Probes of the timing cache: plugins in it, pins, misses, keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.gpu.child import StepFailedError
from tests.gpu.plugins import conv, identity_weight, model_of, offer, plugin_node
from tests.gpu.probe_parts import SHAPE, adding, tactic_in
from tests.gpu.session import Built, Session, winners

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gpu.probe_parts import Facts


def plugin_tactics(folder: Path, facts: Facts) -> None:
    """A plugin of two tactics behind a convolution: table, pin, and the flag on a miss."""
    session = Session(folder)
    offer(adding(session, "Adding"))
    nodes = [conv("x", "c", "conv0", "w0"), plugin_node("Adding", ["c"], ["y"], "probe0")]
    model = model_of(nodes, SHAPE, weights={"w0": identity_weight(8)})
    cold = session.build(model)
    if cold.plan is None:
        raise StepFailedError(f"a plugin of two tactics cannot be built: {cold.problem}")
    tables = [t for t in cold.tables if "probe0" in t.op or "probe0" in "".join(t.onnx_layers)]
    facts["table"] = len(tables) > 0
    facts["candidates"] = [[c.kernel, c.tactic_hash] for t in tables for c in t.candidates]
    facts["native_tables"] = len(cold.tables) - len(tables)
    keys = [t.key for t in tables if t.key in cold.keys] or _plugin_keys(cold)
    facts["plugin_keys"] = {k: cold.keys[k] for k in keys}
    facts["tactic_cold"] = tactic_in(session, cold.plan)
    _pin(session, model, cold, keys, facts)
    _miss(session, model, cold, keys, facts)


def _plugin_keys(built: Built) -> list[str]:
    """Keys of the timing cache that belong to no table of a native operation."""
    native = {t.key for t in built.tables if "probe" not in t.op}
    return [k for k in built.keys if k not in native]


def _pin(session: Session, model: Any, cold: Built, keys: list[str], facts: Facts) -> None:
    if len(keys) != 1:
        facts["pin"] = f"{len(keys)} keys of the plugin in the cache"
        return
    (key,) = keys
    taken = cold.keys[key]
    others = {h for _, h in facts["candidates"]} - {taken}
    if not others and taken in ("0x1", "0x2"):  # perhaps the tactic's own number
        others = {"0x1", "0x2"} - {taken}
    if not others:
        facts["pin"] = "the hash of the other tactic stands nowhere"
        return
    edited = session.edit(cold.cache, {key: (int(min(others), 16), 1.0)})
    if edited is None:
        facts["pin"] = "update() refused it"
        return
    pinned = session.build(model, cache=edited)
    facts["pinned_built"] = pinned.problem or "yes"
    facts["pinned_key"] = pinned.keys.get(key)
    facts["pin"] = "built" if pinned.plan else "not built"
    if pinned.plan is not None:
        facts["tactic_pinned"] = tactic_in(session, pinned.plan)


def _miss(session: Session, model: Any, cold: Built, keys: list[str], facts: Facts) -> None:
    strict = ("ERROR_ON_TIMING_CACHE_MISS",)
    facts["strict_full"] = session.build(model, flags=strict, cache=cold.cache).problem or "built"
    natives = [k for k in cold.keys if k not in keys]
    for name, gone in (("strict_no_plugin", keys), ("strict_no_native", natives[:1])):
        edited = session.edit(cold.cache, dict.fromkeys(gone)) if gone else None
        if edited is None:
            facts[name] = "not asked: no key to take away" if not gone else "not asked: refused"
        else:
            facts[name] = session.build(model, flags=strict, cache=edited).problem or "built"
    _no_tactic(session, model, cold, natives, facts)


def _no_tactic(session: Session, model: Any, cold: Built, natives: list[str], facts: Facts) -> None:
    """A cache that asks for a tactic that no operation has."""
    if not natives:
        facts["no_tactic"] = "not asked: no native key"
        return
    edited = session.edit(cold.cache, {natives[0]: (0xBAD, 1.0)})
    if edited is None:
        facts["no_tactic"] = "update() refuses it"
        return
    built = session.build(model, cache=edited)
    facts["no_tactic"] = built.problem or f"built, with {built.keys.get(natives[0])}"


def cache_collision(folder: Path, facts: Facts) -> None:
    """Two stock plugins of one shape that differ in an attribute: one key, or two?"""
    session = Session(folder)
    offer(adding(session, "Tagged", ("tag",)))
    nodes = [
        plugin_node("Tagged", ["x"], ["m"], "probe0", tag=1),
        plugin_node("Tagged", ["m"], ["y"], "probe1", tag=2),
    ]
    built = session.build(model_of(nodes, SHAPE))
    facts["built"] = built.problem or "yes"
    facts["keys"] = sorted(built.keys)


def key_names(folder: Path, facts: Facts) -> None:
    """Keys of native layers: the same network again, with other names, and at another place."""
    session = Session(folder)
    weights = {f"w{i}": identity_weight(8) for i in range(2)}

    def chain(prefix: str) -> Any:
        nodes = [conv("x", "m", f"{prefix}0", "w0"), conv("m", "y", f"{prefix}1", "w1")]
        return model_of(nodes, SHAPE, weights=weights)

    builds = [session.build(chain(name), plugins=False) for name in ("conv", "conv", "other")]
    first, again, renamed = (set(b.keys) for b in builds)
    facts["keys"] = [len(first), len(again), len(renamed)]
    facts["again"] = first == again
    facts["renamed"] = first == renamed
    facts["tables"] = [len(b.tables) for b in builds]
    facts["winners_agree"] = winners(builds[0].tables) == winners(builds[1].tables)
