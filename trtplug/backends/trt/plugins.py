"""The sites of a kit as plugins ask for them: by digest, with the text of their kernels."""

from __future__ import annotations

import inspect
import types
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trtplug.backends.trt.capabilities import HOW_TO_GET_PLUGINS
from trtplug.errors import DocumentError, OptionUnsupportedError, PluginNameClashError
from trtplug.kernels.kit import mark_ptx, read_kit, read_ptx
from trtplug.kernels.problem import check_range
from trtplug.ops.plugin_layer import KEY_ATTRIBUTES, LAYER_INPUTS, layer_type, site_key
from trtplug.tensor import FLOATS, element_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from trtplug.kernels.family import AnyTactic, TensorFormat
    from trtplug.kernels.kit import KitSite


NAMESPACE = "trtplug"
PLUGIN_VERSION = "1"

TYPE_NAMES = {element.name: element.tensorrt for element in FLOATS}
"""Types of the op -> names of TensorRT's `DataType`."""


class PluginSites:
    """A kit and its kernels, read at once: what TensorRT asks for later is there."""

    def __init__(self, folder: Path) -> None:
        """Reads it.

        Raises:
            DocumentError: it is damaged.
        """
        self.kit = read_kit(folder)
        self._by_key = {site_key(d): s for d, s in self.kit.sites.items()}
        digests = {k.ptx_sha256 for s in self.kit.sites.values() for k in s.kernels}
        self._ptx = {digest: read_ptx(folder, digest) for digest in digests}

    def find(self, high: int, low: int) -> KitSite:
        """The site of a node's attributes `KEY_ATTRIBUTES`.

        Raises:
            ValueError: the kit has no such site.
        """
        found = self._by_key.get((high, low))
        if found is None:
            raise ValueError(f"the plugin kit has no site with the key {high}, {low}")
        return found

    def ptx(self, site: KitSite, number: int) -> str:
        """The kernel of a tactic, with a line on top that says so.

        Raises:
            ValueError: the site offers no such tactic.
        """
        tactic = tactic_of(site, number)
        (digest,) = (k.ptx_sha256 for k in site.kernels if k.tactic == tactic.name)
        return mark_ptx(self._ptx[digest], site.digest, number)

    def layer_types(self) -> tuple[str, ...]:
        """Types of the nodes of the sites, each once."""
        sites = self.kit.sites.values()
        return tuple(sorted({layer_type(s.op, residual=s.problem.has_residual) for s in sites}))


def read_key(fields: Any) -> tuple[int, int]:
    """A site's key, from the fields that a creator is given: arrays of one number each.

    Raises:
        ValueError: a number is missing.
    """
    found = {f.name: f.data for f in fields}
    missing = [name for name in KEY_ATTRIBUTES if name not in found]
    if missing:
        raise ValueError(f"a plugin node lacks {', '.join(missing)}")
    high, low = (int(found[name][0]) for name in KEY_ATTRIBUTES)
    return high, low


def tactic_of(site: KitSite, number: int) -> AnyTactic:
    """The tactic that TensorRT knows by a number.

    Raises:
        ValueError: the site offers no such tactic.
    """
    found = next((t for t in site.tactics if t.number == number), None)
    if found is None:
        numbers = ", ".join(str(t.number) for t in site.tactics)
        raise ValueError(f"site {site.digest} has no tactic {number}; it has {numbers}")
    return found


def tactics_by_formats(site: KitSite) -> dict[tuple[TensorFormat, ...], list[int]]:
    """For each combination of formats the numbers of the tactics that take it."""
    found: dict[tuple[TensorFormat, ...], list[int]] = {}
    for tactic in site.tactics:
        found.setdefault(tactic.formats(site.problem), []).append(tactic.number)
    return found


def describe_site(site: KitSite) -> str:
    """What a layer's metadata says of it."""
    return f"trtplug site={site.digest} op={site.op} packing={site.packing}"


def has_quick_plugins(trt: Any) -> bool:
    """Whether this TensorRT has ahead-of-time plugins, in its library and in Python."""
    there = hasattr(trt, "QuickPluginCreationRequest")
    return there and find_spec(f"{_root(trt)}.plugin") is not None


def plugin_package(trt: Any) -> Any:
    """NVIDIA's `tensorrt.plugin`, where it really is.

    The package `tensorrt` that pip installs hands on names of `tensorrt_bindings`: those of its
    `plugin`, where it has one at all (from 10.16 on), without what begins with an underscore.
    """
    return import_module(f"{_root(trt)}.plugin")


def _root(trt: Any) -> str:
    """The package that the classes are from."""
    interface = trt.IPluginV3
    return str(interface.__module__).partition(".")[0]


def register_quick_plugins(trt: Any, logger: Any, registry: Any, sites: PluginSites) -> None:
    """Registers the type of every node that the kit has sites for.

    Raises:
        ValueError: `tensorrt.plugin` knows one of the names already, or the registry does.
    """
    trtp = plugin_package(trt)
    functions = _Functions(trt, trtp, sites)
    described = types.GenericAlias(list, (trtp.AutoTuneCombination,))
    made = types.GenericAlias(tuple, (str, str, trtp.KernelLaunchParams, trtp.SymIntExprs))
    for name in sites.layer_types():
        plugin_id = f"{NAMESPACE}::{name}"
        sign = _Signer(trt, trtp, logger, LAYER_INPUTS[name])
        # Lazily: the creator that is registered is ours, below.
        register = trtp.register(plugin_id, lazy_register=True)
        register(sign(functions.describe, (), trtp.TensorDesc))
        trtp.autotune(plugin_id)(sign(functions.autotune, ("outputs",), described))
        trtp.aot_impl(plugin_id)(sign(functions.implement, ("outputs", "tactic"), made))
        _register_creator(trtp, registry, plugin_id, sites)


class _Signer:
    """Gives functions a signature of named tensors, a site's key, and more."""

    def __init__(self, trt: Any, trtp: Any, logger: Any, tensors: Sequence[str]) -> None:
        self._trt, self._logger, self._tensor = trt, logger, trtp.TensorDesc
        self._types = dict.fromkeys(tensors, trtp.TensorDesc) | dict.fromkeys(KEY_ATTRIBUTES, int)

    def __call__(
        self, function: Callable[..., Any], more: Sequence[str], result: object
    ) -> Callable[..., Any]:
        """The function with its signature; what it raises is an error in TensorRT's log."""
        trt, logger = self._trt, self._logger

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                # The bindings print it, and go on: the builder only says that it found no kernel.
                message = f"trtplug: {error}"
                logger.log(trt.Logger.ERROR, message)
                raise

        outputs = types.GenericAlias(tuple, (self._tensor,))
        further = {"outputs": outputs, "tactic": int}
        kinds = self._types | {name: further[name] for name in more}
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(n, kind, annotation=t) for n, t in kinds.items()]
        signature = inspect.Signature(parameters, return_annotation=result)
        call.__signature__ = signature  # type: ignore[attr-defined]
        return call


class _Functions:
    """What TensorRT asks of a quick plugin; tensors come first, then the site's key."""

    def __init__(self, trt: Any, trtp: Any, sites: PluginSites) -> None:
        self._trt, self._trtp, self._sites = trt, trtp, sites

    def describe(self, *tensors: Any, **key: int) -> Any:
        """Shape and type of y."""
        high, low = (key[name] for name in KEY_ATTRIBUTES)
        found = self._sites.find(high, low)
        x = tensors[0].shape_expr
        _check_fixed(found, x)
        dtype = getattr(self._trt.DataType, TYPE_NAMES[found.problem.dtype])
        return self._trtp.from_shape_expr(found.problem.output(tuple(x)), dtype)

    def autotune(self, *given: Any) -> list[Any]:
        """One entry for each combination of formats, with tactics of its own."""
        *tensors, high, low, _ = given
        found = self._sites.find(high, low)
        _check_sizes(found, tensors[0].shape)
        return [
            self._trtp.AutoTuneCombination(
                ", ".join(element_type(f.dtype).word.upper() for f in formats),
                ", ".join(f.layout for f in formats),
                numbers,
            )
            for formats, numbers in tactics_by_formats(found).items()
        ]

    def implement(self, *given: Any) -> tuple[str, str, Any, Any]:
        """Kernel, launch and numbers of a tactic."""
        *tensors, high, low, _, number = given
        found = self._sites.find(high, low)
        _check_sizes(found, tensors[0].shape)
        x = tuple(tensors[0].shape_expr)
        ptx = self._sites.ptx(found, number)
        tactic = tactic_of(found, number)
        launching = tactic.launch(found.problem, x)
        arguments = found.problem.arguments(x)
        # A sum of symbolic integers need not be a SymInt32, and TensorRT takes nothing else.
        numbers = self._trtp.SymIntExprs.from_tuple(
            tuple(self._trtp.SymInt32(n) for n in arguments)
        )
        return tactic.kernel, ptx, self._launch_params(launching), numbers

    def _launch_params(self, launching: Any) -> Any:
        parameters = self._trtp.KernelLaunchParams()
        for name, sizes in (("grid", launching.grid), ("block", launching.block)):
            for axis, size in zip("xyz", sizes, strict=True):
                setattr(parameters, f"{name}_{axis}", size)
        parameters.shared_mem = launching.shared_bytes
        return parameters


def _check_fixed(site: KitSite, x: Any) -> None:
    """Compares what is known of the input when the network is made with the kernels' range.

    Raises:
        ValueError: a size is fixed, and outside the range that the kernels were made for.
    """
    sizes = [None if d.is_fake or not d.is_constant else d.constant_value() for d in x]
    ends = (site.problem.x.min, site.problem.x.max)
    least, most = (
        [known if n is None else n for n, known in zip(sizes, end, strict=True)] for end in ends
    )
    check_range(site.problem, least, most)


def _check_sizes(site: KitSite, shape: Any) -> None:
    """Compares the optimization profile with the kernels' range.

    Raises:
        ValueError: it goes beyond the range that the kernels were made for.
    """
    ends = (shape.min, shape.max) if shape.is_dynamic else (shape, shape)
    check_range(site.problem, *(tuple(map(int, end)) for end in ends))


def _register_creator(trtp: Any, registry: Any, plugin_id: str, sites: PluginSites) -> None:
    """Registers the stock creator with two things added to every plugin that it makes.

    Raises:
        ValueError: the registry knows the name already.
    """
    library = import_module(f"{trtp.__name__}._lib")
    stock: Any = library._TemplatePluginCreator

    class Creator(stock):  # type: ignore[misc]
        def create_plugin(
            self, name: str, namespace: str, fields: Any, phase: Any, *request: Any
        ) -> Any:
            key = read_key(fields)
            site = sites.find(*key)
            # Plain numbers: older releases cannot turn an array of one into a number.
            plain = [_Field(n, value) for n, value in zip(KEY_ATTRIBUTES, key, strict=True)]
            plugin = super().create_plugin(name, namespace, plain, phase, *request)
            # The stock identity is empty: sites of equal shape would share their times.
            plugin.get_timing_cache_id = lambda: site.digest
            plugin.get_metadata_string = lambda: describe_site(site)
            return plugin

    name = plugin_id.partition("::")[2]
    creator = Creator(name, NAMESPACE, dict.fromkeys(KEY_ATTRIBUTES, (True, int)))
    if not registry.register_creator(creator, NAMESPACE):
        raise ValueError(f"{plugin_id} is registered already")
    # Where the network API looks a creator up; it also keeps ours alive.
    library.QDP_CREATORS[plugin_id] = creator


class _Field(NamedTuple):
    """As much of a PluginField as the stock creator reads."""

    name: str
    data: int


def offer_plugins(
    trt: Any, logger: Any, registries: Sequence[Any], folder: str, sm: int | None = None
) -> None:
    """Registers the kit in `folder`; all types of nodes that it has sites for.

    Args:
        trt: the bindings.
        logger: receives what a plugin refuses.
        registries: those whose creators the parser may find; ours go into the last.
        folder: of the kit.
        sm: number of the SM that is built for; None for that of the kit.

    Raises:
        PluginNameClashError: another creator has one of our names.
        OptionUnsupportedError: this TensorRT has no ahead-of-time plugins.
        DocumentError: the kit cannot be read, is damaged, or for another SM.
    """
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
