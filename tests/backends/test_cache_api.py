from __future__ import annotations

import pytest

from tests.backends.double import DoubleBackend
from tests.timing.cache_stand_in import StandIn
from trtplug.backends import find
from trtplug.backends.find import NullBackend, timing_cache_api
from trtplug.errors import BackendMissingError


class Caching(DoubleBackend):
    def timing_caches(self):
        return StandIn()


def test_the_backend_that_has_caches_is_asked(monkeypatch):
    monkeypatch.setattr(find, "BACKENDS", (NullBackend(), DoubleBackend(), Caching()))
    assert timing_cache_api() == StandIn()


def test_without_one_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(find, "BACKENDS", (NullBackend(), DoubleBackend()))
    with pytest.raises(BackendMissingError, match="TensorRT itself"):
        timing_cache_api()


def test_one_that_is_not_installed_is_not_asked(monkeypatch):
    absent = Caching()
    monkeypatch.setattr(Caching, "version", lambda self: None)
    monkeypatch.setattr(find, "BACKENDS", (absent,))
    with pytest.raises(BackendMissingError):
        timing_cache_api()
