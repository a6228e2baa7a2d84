"""Stock ahead-of-time quick plugins around the kernels of the probes, and models that hold them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAMESPACE = "gpucheck"
BLOCK = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A plugin: its tensors are alike, and every thread does one element."""

    name: str
    code: Callable[[int, tuple[int, ...]], str | bytes]
    """(tactic, attributes) -> PTX or a cubin with a kernel `probe`."""
    inputs: tuple[str, ...] = ("x",)
    outputs: int = 1
    attributes: tuple[str, ...] = ()
    types: str = "FP32"
    formats: str = "LINEAR"
    tactics: tuple[int, ...] = (1, 2)
    shared_bytes: int = 0
    cluster: int = 1
    """The grid is a multiple of it."""
    per_pixel: bool = False
    """Whether a thread does a pixel and not an element."""


def offer(offered: Offer) -> None:
    """Registers it; from here on the parser finds `gpucheck::<name>`."""
    import tensorrt.plugin as trtp

    functions = _Functions(trtp, offered)
    desc, plugin_id = trtp.TensorDesc, f"{NAMESPACE}::{offered.name}"
    outputs = tuple[(desc,) * offered.outputs]  # type: ignore[misc]
    result = desc if offered.outputs == 1 else outputs
    described = _signed(functions.describe, offered, desc, {}, result)
    trtp.register(plugin_id, lazy_register=bool(offered.attributes))(described)
    more: dict[str, object] = {"outputs": outputs}
    combinations = list[trtp.AutoTuneCombination]
    trtp.autotune(plugin_id)(_signed(functions.autotune, offered, desc, more, combinations))
    made = tuple[str | bytes, str | bytes, trtp.KernelLaunchParams, trtp.SymIntExprs]
    more = {**more, "tactic": int}
    trtp.aot_impl(plugin_id)(_signed(functions.implement, offered, desc, more, made))
    if offered.attributes:
        _register_creator(offered, plugin_id)


class _Field(NamedTuple):
    """As much of a PluginField as the stock creator reads."""

    name: str
    data: int


def _register_creator(offered: Offer, plugin_id: str) -> None:
    """The stock creator, given plain numbers: it cannot read arrays of one under NumPy 2."""
    import tensorrt as trt
    from tensorrt.plugin import _lib

    class Creator(_lib._TemplatePluginCreator):  # type: ignore[misc]
        def create_plugin(self, name: Any, namespace: Any, fields: Any, *rest: Any) -> Any:
            plain = [_Field(f.name, int(np.asarray(f.data).reshape(-1)[0])) for f in fields]
            return super().create_plugin(name, namespace, plain, *rest)

    creator = Creator(offered.name, NAMESPACE, dict.fromkeys(offered.attributes, (True, int)))
    trt.get_plugin_registry().register_creator(creator, NAMESPACE)
    # Where the network API looks a creator up; it also keeps this one alive.
    _lib.QDP_CREATORS[plugin_id] = creator


def _signed(
    function: Callable[..., Any],
    offered: Offer,
    desc: object,
    more: Mapping[str, object],
    result: object,
) -> Callable[..., Any]:
    """The function under the signature that the decorators look at."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, *kwargs.values())

    types = dict.fromkeys(offered.inputs, desc) | dict.fromkeys(offered.attributes, int) | more
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(n, kind, annotation=t) for n, t in types.items()]
    call.__signature__ = inspect.Signature(parameters, return_annotation=result)  # type: ignore[attr-defined]
    return call


class _Functions:
    def __init__(self, trtp: Any, offered: Offer) -> None:
        self._trtp, self._offered = trtp, offered

    def describe(self, x: Any, *_: Any) -> Any:
        made = tuple(x.like() for _ in range(self._offered.outputs))
        return made[0] if len(made) == 1 else made

    def autotune(self, *_: Any) -> Any:
        offered = self._offered
        count = len(offered.inputs) + offered.outputs
        types = ", ".join([offered.types] * count)
        formats = ", ".join([offered.formats] * count)
        return [self._trtp.AutoTuneCombination(types, formats, list(offered.tactics))]

    def implement(self, x: Any, *rest: Any) -> Any:
        trtp, offered = self._trtp, self._offered
        *attributes, _, tactic = rest[len(offered.inputs) - 1 :]
        code = offered.code(int(tactic), tuple(int(a) for a in attributes))
        sizes = x.shape_expr
        count = sizes[2] * sizes[3] if offered.per_pixel else sizes.numel()
        launch = trtp.KernelLaunchParams()
        launch.grid_x = trtp.cdiv(count, BLOCK * offered.cluster) * offered.cluster
        launch.block_x = BLOCK
        launch.shared_mem = offered.shared_bytes
        numbers = trtp.SymIntExprs(1)
        numbers[0] = trtp.SymInt32(count)
        return "probe", code, launch, numbers


def plugin_node(
    op: str, inputs: Sequence[str], outputs: Sequence[str], name: str, **attributes: int
) -> onnx.NodeProto:
    """A node that the parser makes a plugin of, ahead of time."""
    marks = {"plugin_namespace": NAMESPACE, "plugin_version": "1", "aot": 1}
    return helper.make_node(
        op, list(inputs), list(outputs), name=name, domain=NAMESPACE, **marks, **attributes
    )


def model_of(
    nodes: Sequence[onnx.NodeProto],
    shape: Sequence[int | str],
    *,
    outputs: Sequence[str] = ("y",),
    weights: Mapping[str, Any] | None = None,
    half: bool = False,
    output_shape: Sequence[int | str] | None = None,
) -> onnx.ModelProto:
    """A network from x to outputs that are all of one shape."""
    kind = TensorProto.FLOAT16 if half else TensorProto.FLOAT
    graph = helper.make_graph(
        list(nodes),
        "probe",
        [helper.make_tensor_value_info("x", kind, list(shape))],
        [helper.make_tensor_value_info(n, kind, list(output_shape or shape)) for n in outputs],
        [numpy_helper.from_array(w, n) for n, w in (weights or {}).items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(NAMESPACE, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def conv(source: str, target: str, name: str, weight: str) -> onnx.NodeProto:
    """A 3x3 convolution that keeps height and width."""
    return helper.make_node("Conv", [source, weight], [target], name=name, pads=[1] * 4)


def identity_weight(channels: int, *, half: bool = False) -> Any:
    """Of a 3x3 convolution that gives its input back, [channels, channels, 3, 3]."""
    made = np.zeros((channels, channels, 3, 3), np.float16 if half else np.float32)
    made[np.arange(channels), np.arange(channels), 1, 1] = 1
    return made
