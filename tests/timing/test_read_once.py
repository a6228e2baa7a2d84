from __future__ import annotations

from tests.timing.cache_stand_in import StandIn, key, value, values
from trtplug.timing.store import ReadOnce


class Counting:
    """Counts reads."""

    def __init__(self):
        self.reads = 0
        self.api = StandIn()

    def read(self, blob):
        self.reads += 1
        return self.api.read(blob)

    def combine(self, base, other):
        return self.api.combine(base, other)

    def update(self, blob, new):
        return self.api.update(blob, new)


def test_each_cache_is_read_once_refused_ones_too():
    counting = Counting()
    api = ReadOnce(counting)
    one, two = counting.api.make(values(1)), counting.api.make(values(2))
    for _ in range(3):
        assert api.read(one) == values(1)
        assert api.read(two) == values(2)
        assert api.read(b"junk") is None
    assert counting.reads == 3


def test_the_other_operations_are_the_builders_own():
    api = ReadOnce(StandIn())
    one, two = StandIn().make(values(1)), StandIn().make(values(2))
    assert api.read(api.combine(one, two)) == values(1, 2)
    assert api.read(api.update(one, {key(1): value(9)})) == {key(1): value(9)}
    assert api.update(one, {key(2): value(9)}) is None
