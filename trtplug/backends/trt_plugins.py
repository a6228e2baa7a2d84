"""Registers the kernels of a kit with TensorRT, as ahead-of-time plugins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtplug.backends.trt_capabilities import HOW_TO_GET_PLUGINS
from trtplug.backends.trt_plugin_sites import NAMESPACE, PLUGIN_VERSION, PluginSites
from trtplug.errors import DocumentError, OptionUnsupportedError, PluginNameClashError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def offer_plugins(
    trt: Any, logger: Any, registries: Sequence[Any], folder: str, sm: int | None = None
) -> None:
    """Registers the kit in `folder`; all types of nodes that it has sites for.

    Args:
        trt: the bindings.
        logger: receives what a plugin refuses.
        registries: those whose creators the parser may find; ours go into the last.
        folder: of the kit.
        sm: number of the SM that is built for; None for whatever the kit is for.

    Raises:
        PluginNameClashError: another creator has one of our names.
        OptionUnsupportedError: this TensorRT has no ahead-of-time plugins.
        DocumentError: the kit cannot be read, is damaged, or for another SM.
    """
    from trtplug.backends.trt_quick_plugins import has_quick_plugins, register_quick_plugins

    if not has_quick_plugins(trt):
        raise OptionUnsupportedError(
            option="--plugin",
            backend="trt",
            version=trt.__version__,
            advice=HOW_TO_GET_PLUGINS,
        )
    sites = PluginSites(Path(folder))
    if sm not in (None, sites.kit.sm):
        problem = f"its kernels are for sm_{sites.kit.sm}, and the build is for sm_{sm}"
        raise DocumentError(path=folder, problem=problem, wanted="plugin kit")
    for name in sites.layer_types():
        _refuse_clash(registries, name)
    try:
        register_quick_plugins(trt, logger, registries[-1], sites)
    except ValueError as error:
        ours = ", ".join(f"{NAMESPACE}::{n}" for n in sites.layer_types())
        raise PluginNameClashError(ours=ours, other=str(error)) from error


def _refuse_clash(registries: Iterable[Any], name: str) -> None:
    """Looks through lists: a look-up of a name that is not there is an error in TensorRT's log.

    Raises:
        PluginNameClashError: a creator has our name.
    """
    wanted = (name, PLUGIN_VERSION, NAMESPACE)
    for registry in registries:
        for other in registry.all_creators or ():
            if (other.name, other.plugin_version, other.plugin_namespace) == wanted:
                kind = type(other)
                raise PluginNameClashError(
                    ours=f"{NAMESPACE}::{name} version {PLUGIN_VERSION}",
                    other=f"a creator of class {kind.__module__}.{kind.__qualname__}",
                )
