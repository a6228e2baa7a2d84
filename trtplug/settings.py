"""The only reader of environment variables."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the environment may set; each variable is listed in docs/errors.md."""

    store: Path
    """`TRTPLUG_STORE`: folder of the store; the user's cache folder by default."""
    profiles: Path | None
    """`TRTPLUG_PROFILES`: folder of further GPU profiles, read after those that ship."""


def read_settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """Settings from the environment; an empty value counts as unset."""
    store = environ.get("TRTPLUG_STORE", "")
    profiles = environ.get("TRTPLUG_PROFILES", "")
    return Settings(
        store=Path(store) if store else _default_store(),
        profiles=Path(profiles) if profiles else None,
    )


def _default_store() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("trtplug", appauthor=False)) / "store"
