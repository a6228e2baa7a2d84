"""The plugin registry."""

from __future__ import annotations

from pathlib import Path

from tensorrt.release import Native


class IPluginRegistry(Native):
    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError("tensorrt.IPluginRegistry: No constructor defined!")

    @property
    def all_creators(self) -> list[object]:
        return list(self._creators.values())

    def register_creator(self, creator: object, plugin_namespace: str = "") -> bool:
        key = (creator.name, creator.plugin_version, plugin_namespace)
        if key in self._creators:
            return False
        self._creators[key] = creator
        return True

    def deregister_creator(self, creator: object) -> bool:
        keys = [k for k, c in self._creators.items() if c is creator]
        for key in keys:
            del self._creators[key]
        return bool(keys)

    def get_creator(self, type: str, version: str, plugin_namespace: str = "") -> object | None:
        return self._creators.get((type, version, plugin_namespace))

    def load_library(self, plugin_path: str) -> object | None:
        """A handle; None for what is no library. (Here: no ELF file.)"""
        path = Path(plugin_path)
        return object() if path.is_file() and path.read_bytes()[:4] == b"\x7fELF" else None


_REGISTRY = object.__new__(IPluginRegistry)
_REGISTRY._creators = {}


def get_plugin_registry() -> IPluginRegistry:
    return _REGISTRY


def init_libnvinfer_plugins(logger: object, namespace: str) -> bool:
    return True
