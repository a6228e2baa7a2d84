"""What tests of whole builds share."""

from __future__ import annotations

import pytest

from tests.end_to_end.recordings import Recordings


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Recordings:
    """Bundles to begin with."""
    return Recordings(tmp_path_factory)
