"""Offers the kernels of a kit to TensorRT: ahead of time where it can, else just in time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from trtplug.backends.trt_plugin_sites import NAMESPACE, PLUGIN_VERSION, PluginSites
from trtplug.errors import BackendMissingError, DocumentError, PluginNameClashError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Form = Literal["ahead-of-time", "just-in-time"]

NEEDS_PYTHON = (
    "this TensorRT has no ahead-of-time plugins, so kernels of trtplug are launched from Python: "
    "wherever the engine runs, trtplug.backends.trt_jit_plugin.register_jit_plugins must be called "
    "before it is loaded"
)


def offer_plugins(
    trt: Any, logger: Any, registries: Sequence[Any], folder: str, sm: int | None = None
) -> Form:
    """Registers the kit in `folder`; all types of nodes that it has sites for.

    Args:
        trt: the bindings.
        logger: told where engines will need Python, and what a plugin refuses.
        registries: those whose creators the parser may find; ours go into the last.
        folder: of the kit.
        sm: number of the SM that is built for; None for whatever the kit is for.

    Raises:
        PluginNameClashError: another creator has one of our names.
        BackendMissingError: just in time is all that is left, and cannot be had either.
        DocumentError: the kit cannot be read, is damaged, or for another SM.
    """
    sites = PluginSites(Path(folder))
    if sm not in (None, sites.kit.sm):
        problem = f"its kernels are for sm_{sites.kit.sm}, and the build is for sm_{sm}"
        raise DocumentError(path=folder, problem=problem, wanted="plugin kit")
    for name in sites.layer_types():
        _refuse_clash(registries, name)
    try:
        return _register(trt, logger, registries[-1], sites)
    except ValueError as error:
        ours = ", ".join(f"{NAMESPACE}::{n}" for n in sites.layer_types())
        raise PluginNameClashError(ours=ours, other=str(error)) from error


def _register(trt: Any, logger: Any, registry: Any, sites: PluginSites) -> Form:
    from trtplug.backends.trt_quick_plugins import has_quick_plugins, register_quick_plugins

    if has_quick_plugins(trt):
        register_quick_plugins(trt, logger, registry, sites)
        return "ahead-of-time"
    from trtplug.backends.trt_jit_plugin import fields_can_be_read, register_jit_plugins

    if not fields_can_be_read(trt):
        raise BackendMissingError(
            backend="trt",
            problem="its bindings misread plugin fields under NumPy 2",
            advice="pip install 'numpy<2', or build with --plugin never",
        )
    logger.log(trt.Logger.WARNING, NEEDS_PYTHON)
    register_jit_plugins(trt, registry, sites)
    return "just-in-time"


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
