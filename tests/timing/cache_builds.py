"""What builds do with the store of timing caches; light, since processes start with it alone."""

from __future__ import annotations

from tests.timing.cache_stand_in import StandIn, identity, key, values
from trtplug.timing.store import TimingCacheStore

API = StandIn()
MODEL = "0" * 64


def build(store, numbers, api=API, who=None):
    """What a build does: attaches, times what is missing, publishes."""
    who = who or identity()
    attached = store.attach(who, api)
    held = dict(api.read(attached.blob)) if attached.blob else {}
    made = api.make({**values(*numbers), **held})
    asked = [key(n) for n in numbers]
    return store.publish(attached, api, made, model_sha256=MODEL, asked=asked)


def add_entries(root, number, count, barrier):
    """Publishes its own keys one by one; each build starts from what it finds."""
    store = TimingCacheStore(root=root)
    barrier.wait()
    for n in range(count):
        build(store, [1000 * number + n])


def publish_for_ever(root, number, done):
    store = TimingCacheStore(root=root)
    for n in range(10_000):
        build(store, [1000 * number + n])
        done.send(1000 * number + n)
