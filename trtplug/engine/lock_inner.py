"""Whether a lock agrees with itself: what it says twice must be said alike. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from trtplug.engine.pins import ban_problems, is_tactic, parse_pin
from trtplug.engine.tactic_policy import WISH_SEPARATOR
from trtplug.errors import UsageError
from trtplug.globs import from_flag

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trtplug.engine.lock import Lock, LockTactic


def inner_problems(lock: Lock) -> tuple[str, ...]:
    """All in which a lock contradicts itself: keys, layers, and the wishes that it was made by."""
    if lock.tactics is None:
        return ()
    return (*_key_problems(lock), *_layer_problems(lock), *_wish_problems(lock))


def _key_problems(lock: Lock) -> Iterator[str]:
    tactics = lock.tactics or ()
    for key, count in Counter(t.key for t in tactics).items():
        if count > 1:
            yield f"{key}: it is there {count} times"
    keys = lock.timing_cache.keys if lock.timing_cache is not None else len(tactics)
    if keys != len(tactics):
        # A number may have any length; its digits help nobody.
        yield f"timing_cache.keys is not {len(tactics)}, the number of tactics"


def _layer_problems(lock: Lock) -> Iterator[str]:
    """Layers whose tactic is not the one of their key."""
    winners = lock.winners
    for layer in lock.layers:
        if layer.cache_key is not None and winners.get(layer.cache_key) != layer.tactic_hash:
            theirs = winners.get(layer.cache_key)
            yield f"{layer.name}: tactic {layer.tactic_hash}, its key has {theirs}"


def _wish_problems(lock: Lock) -> Iterator[str]:
    """Flags of `--pin` and `--ban` that the tactics and layers of the lock do not fulfil."""
    try:
        pins = tuple(map(parse_pin, _wishes(lock, "pin")))
        bans = _wishes(lock, "ban")
    except (UsageError, ValueError) as error:
        yield f"flags: {error}"
        return
    for pin in pins:
        here = [t for t in lock.tactics or () if pin.layer in _names(lock, t)]
        if not here or not all(is_tactic(pin.tactic, t.kernel, t.tactic_hash) for t in here):
            yield f"flag pin: {pin.layer}={pin.tactic} is not what the tactics have"
    yield from ban_problems(bans, {x.name: x.kernel for x in lock.layers if x.kernel is not None})


def _wishes(lock: Lock, name: str) -> tuple[str, ...]:
    return from_flag(lock.flags.get(name, ""), WISH_SEPARATOR)


def _names(lock: Lock, tactic: LockTactic) -> set[str]:
    """What a pin may call the operation of a key."""
    layers = {x.name for x in lock.layers if x.cache_key == tactic.key}
    return {*layers, *tactic.onnx_nodes, *([tactic.op] if tactic.op is not None else [])}
