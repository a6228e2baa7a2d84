"""Recognises activations, in whatever spelling an exporter chose.

From a tensor it grows the region of element-wise nodes that depend on that tensor and on scalar
constants alone, and takes the largest one that ends in a single tensor and computes an activation
that the op has. What a region computes is found by running it, in float64, on sample points that
lie on all sides of its bends: hard-swish has four orders in Paddle's, PyTorch's and TensorFlow's
files, GELU eight, and all of them are one function.

Every region is built of the operators in `_COMPUTE`, each analytic or piecewise linear with bends
at its own constants, and of constants of at most `LARGEST_CONSTANT`. Samples lie between and
beyond all those bends, so two such functions that agree on all of them are the same function, up
to the rounding of the constants. Nodes that are an activation by themselves, and chains of bounds
(Relu, Clip, Min, Max), are read instead, whatever their constants.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trtplug.model.graph import Graph, Node, attributes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trtplug.model.constants import Constants

    Samples = np.ndarray[Any, np.dtype[np.float64]]

GELU_TANH = 1.0
"""`alpha` of a GELU by its tanh approximation; 0 is the exact one."""

LARGEST_REGION = 12
"""Nodes. GELU by tanh with `x * x * x` has 9, and Identity may stand in between."""

TOLERANCE = {"float": 2e-6, "float16": 2e-3, "bfloat16": 1.6e-2}
"""Largest |difference| allowed, relative to max(1, |x|): the rounding of constants in that type."""

LARGEST_CONSTANT = 1e3
"""Bends further out than this could lie beyond the samples."""

_erf = np.vectorize(math.erf, otypes=[np.float64])


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """One of the op's activations with its parameters."""

    kind: str
    alpha: float = 0.0
    beta: float = 0.0
    minimum: float = -math.inf
    maximum: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationMatch:
    """An activation found in a graph."""

    activation: Activation
    nodes: tuple[Node, ...]
    output: str


def match_activation(
    tensor: str, graph: Graph, constants: Constants, dtype: str
) -> ActivationMatch | None:
    """The largest region below `tensor` that computes an activation of the op."""
    best = None
    for nodes, output, values in _regions(tensor, graph, constants):
        found = _plain(nodes, constants) or _identify(values, TOLERANCE[dtype])
        if found is not None:
            best = ActivationMatch(activation=found, nodes=nodes, output=output)
    return best


_MIDDLE = 193
_MINUS_ONE = 88
"""Where on `_GRID` -1 is: 88 steps of 1/8 up from -12."""

_GRID = np.concatenate(
    [
        np.linspace(-12, 12, _MIDDLE),
        [s * 10.0**e for e in (-4, -3, -2, 2, 3, 4) for s in (-1.0, 1.0)],
    ]
)
_SCALE = np.maximum(1, np.abs(_GRID))


def _regions(
    tensor: str, graph: Graph, constants: Constants
) -> Iterator[tuple[tuple[Node, ...], str, Samples]]:
    """Closed regions below a tensor, each larger than the last, with their values on `_GRID`."""
    values: dict[str, Samples] = {tensor: _GRID}
    taken: list[Node] = []
    live = {tensor}
    waiting = _readers(tensor, graph)
    while waiting and len(taken) < LARGEST_REGION:
        ready = [n for n in waiting if _evaluable(n, values, constants)]
        if not ready:
            return
        node = min(ready, key=lambda n: n.position)
        result = _compute(node, values, constants)
        if result is None:
            return
        waiting.remove(node)
        taken.append(node)
        output = node.outputs[0]
        values[output] = result
        waiting += [n for n in _readers(output, graph) if n not in waiting]
        live = {t for t in (*live, output) if not _is_inside(t, graph, taken)}
        if live == {output}:
            yield tuple(sorted(taken, key=lambda n: n.position)), output, result


def _readers(tensor: str, graph: Graph) -> list[Node]:
    return list(dict.fromkeys(graph.consumers.get(tensor, ())))


def _is_inside(tensor: str, graph: Graph, taken: list[Node]) -> bool:
    readers = graph.consumers.get(tensor, ())
    return bool(readers) and tensor not in graph.outputs and all(n in taken for n in readers)


def _evaluable(node: Node, values: dict[str, Samples], constants: Constants) -> bool:
    if not node.is_op(*_COMPUTE) or len([o for o in node.outputs if o]) != 1:
        return False
    limit = math.inf if node.is_op(*_BOUNDS) else LARGEST_CONSTANT
    scalars = [constants.scalar(n) for n in node.inputs if n and n not in values]
    return all(s is not None and abs(s) <= limit for s in scalars)


def _compute(node: Node, values: dict[str, Samples], constants: Constants) -> Samples | None:
    if "" in node.inputs and not node.is_op("Clip"):
        return None
    arguments: list[Any] = []
    for name in node.inputs:
        if not name:
            arguments.append(None)
        elif name in values:
            arguments.append(values[name])
        else:
            constant, value = constants.get(name), constants.scalar(name)
            # A scalar of more dimensions than the tensor would add axes to it.
            if constant is None or value is None or len(constant.dims) > 4:
                return None
            arguments.append(value)
    with np.errstate(all="ignore"):
        result: Samples | None = _COMPUTE[node.op_type](arguments, attributes(node.proto))
    return result


def _clip(a: list[Any], given: dict[str, Any]) -> Samples:
    low = a[1] if len(a) > 1 and a[1] is not None else given.get("min", -np.inf)
    high = a[2] if len(a) > 2 and a[2] is not None else given.get("max", np.inf)
    result: Samples = np.minimum(np.maximum(a[0], low), high)
    return result


def _gelu(x: Samples, approximate: str) -> Samples:
    if approximate == "tanh":
        gate: Samples = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    else:
        gate = _erf(x / math.sqrt(2))
    return 0.5 * x * (1 + gate)


def _sigmoid(x: Samples) -> Samples:
    with np.errstate(over="ignore"):
        result: Samples = 1 / (1 + np.exp(-x))
    return result


def _mish(x: Samples) -> Samples:
    gate: Samples = np.tanh(np.logaddexp(0, x))
    return x * gate


def _hard(x: Samples, alpha: float, beta: float) -> Samples:
    return np.clip(alpha * x + beta, 0, 1)


_COMPUTE: dict[str, Callable[[list[Any], dict[str, Any]], Samples | None]] = {
    "Add": lambda a, _: a[0] + a[1],
    "Clip": _clip,
    "Div": lambda a, _: a[0] / a[1],
    "Erf": lambda a, _: _erf(a[0]),
    "Exp": lambda a, _: np.exp(a[0]),
    "Gelu": lambda a, g: _gelu(a[0], g.get("approximate", "none")),
    "HardSigmoid": lambda a, g: _hard(a[0], g.get("alpha", 0.2), g.get("beta", 0.5)),
    "HardSwish": lambda a, _: a[0] * _hard(a[0], 1 / 6, 0.5),
    "Identity": lambda a, _: a[0],
    "LeakyRelu": lambda a, g: np.where(a[0] < 0, g.get("alpha", 0.01) * a[0], a[0]),
    "Log": lambda a, _: np.log(a[0]),
    "Max": lambda a, _: np.maximum(a[0], a[1]) if len(a) == 2 else None,
    "Min": lambda a, _: np.minimum(a[0], a[1]) if len(a) == 2 else None,
    "Mish": lambda a, _: _mish(a[0]),
    "Mul": lambda a, _: a[0] * a[1],
    "Neg": lambda a, _: -a[0],
    "PRelu": lambda a, _: np.where(a[0] < 0, a[0] * a[1], a[0]),
    "Pow": lambda a, _: a[0] ** a[1] if np.ndim(a[1]) == 0 else None,
    "Reciprocal": lambda a, _: 1 / a[0],
    "Relu": lambda a, _: np.maximum(a[0], 0),
    "Sigmoid": lambda a, _: _sigmoid(a[0]),
    "Softplus": lambda a, _: np.logaddexp(0, a[0]),
    "Sub": lambda a, _: a[0] - a[1],
    "Swish": lambda a, g: a[0] * _sigmoid(g.get("alpha", 1.0) * a[0]),
    "Tanh": lambda a, _: np.tanh(a[0]),
}


def _plain(nodes: tuple[Node, ...], constants: Constants) -> Activation | None:
    """The activation of nodes that say it themselves, read from their attributes and inputs."""
    nodes = tuple(n for n in nodes if n.op_type != "Identity")
    if nodes and all(_is_bound(n, constants) for n in nodes):
        return _bounds(nodes, constants)
    if len(nodes) != 1:
        return None
    given = attributes(nodes[0].proto)
    match nodes[0].op_type:
        case "Sigmoid" | "Tanh" | "Mish" as name:
            return Activation(kind=name.lower())
        case "LeakyRelu":
            return Activation(kind="leaky_relu", alpha=given.get("alpha", float(np.float32(0.01))))
        case "HardSigmoid":
            alpha = given.get("alpha", float(np.float32(0.2)))
            return Activation(kind="hard_sigmoid", alpha=alpha, beta=given.get("beta", 0.5))
        case "HardSwish":
            return Activation(kind="hard_swish", alpha=1 / 6, beta=0.5)
        case _:
            return None


_BOUNDS = ("Relu", "Clip", "Min", "Max")


def _is_bound(node: Node, constants: Constants) -> bool:
    """Whether a node bounds one tensor by constants."""
    if not node.is_op("Min", "Max"):
        return node.is_op(*_BOUNDS)
    return len([n for n in node.inputs if constants.scalar(n) is None]) == 1


def _bounds(nodes: tuple[Node, ...], constants: Constants) -> Activation | None:
    """A chain of bounds as one: `clip(clip(x, a, b), c, d)` clips to the clipped `a` and `b`."""
    low, high = -math.inf, math.inf
    for node in nodes:
        given = attributes(node.proto)
        values = [constants.scalar(name) if name else None for name in node.inputs]
        other = next((v for v in values if v is not None), 0.0)
        match node.op_type:
            case "Relu":
                lower, upper = 0.0, math.inf
            case "Max":
                lower, upper = other, math.inf
            case "Min":
                lower, upper = -math.inf, other
            case _:
                values += [None, None]
                lower = given.get("min", -math.inf) if values[1] is None else values[1]
                upper = given.get("max", math.inf) if values[2] is None else values[2]
        low, high = min(max(low, lower), upper), min(max(high, lower), upper)
    # float32's extremes are how older exporters write "no bound".
    largest = float(np.finfo(np.float32).max)
    low, high = (-math.inf if low <= -largest else low), (math.inf if high >= largest else high)
    if math.isnan(low) or math.isnan(high) or (low, high) == (-math.inf, math.inf):
        return None
    if (low, high) == (0.0, math.inf):
        return Activation(kind="relu")
    return Activation(kind="clip", minimum=low, maximum=high)


def _identify(values: Samples, tolerance: float) -> Activation | None:
    """The op's activation whose values on `_GRID` are these; the nearest one where two would do."""
    if np.shape(values) != _GRID.shape:
        return None
    for candidates in (_fixed_candidates(), _fitted_candidates(values)):
        best, best_error = None, tolerance
        for activation, expected in candidates:
            error = float((np.abs(values - expected) / _SCALE).max())
            if error <= best_error:
                best, best_error = activation, error * 0.999
        if best is not None:
            return best
    return None


def _fitted_candidates(values: Samples) -> Iterator[tuple[Activation, Samples]]:
    """Activations with the parameters that the values show."""
    x = _GRID
    low, high = float(values.min()), float(values.max())
    lower = low if low > x.min() else -math.inf
    upper = high if high < x.max() else math.inf
    if (lower, upper) != (-math.inf, math.inf):
        yield Activation(kind="clip", minimum=lower, maximum=upper), np.clip(x, lower, upper)
    slope = -float(values[_MINUS_ONE])
    yield Activation(kind="leaky_relu", alpha=slope), np.where(x < 0, slope * x, x)
    yield from _hard_kinds(x[:_MIDDLE], values[:_MIDDLE])


def _hard_kinds(x: Samples, values: Samples) -> Iterator[tuple[Activation, Samples]]:
    """Hard-sigmoid and hard-swish with the slope and offset that the values show."""
    gate = _line(x, values)
    if gate is not None:
        yield Activation(kind="hard_sigmoid", alpha=gate[0], beta=gate[1]), _hard(_GRID, *gate)
    away = x != 0
    gate = _line(x[away], values[away] / x[away])
    if gate is not None:
        expected = _GRID * _hard(_GRID, *gate)
        yield Activation(kind="hard_swish", alpha=gate[0], beta=gate[1]), expected


def _line(x: Samples, values: Samples) -> tuple[float, float] | None:
    """Slope and offset of the part strictly between 0 and 1."""
    if not {round(float(values[0]), 3), round(float(values[-1]), 3)} <= {0.0, 1.0}:
        return None
    inner = (values > 1e-3) & (values < 1 - 1e-3)
    if inner.sum() < 3:
        return None
    slope, offset = np.polyfit(x[inner], values[inner], 1)
    return _near(float(slope), 1 / 6), _near(float(offset), 0.5)


def _near(value: float, usual: float) -> float:
    return usual if abs(value - usual) < 1e-7 else value


@functools.cache
def _fixed_candidates() -> tuple[tuple[Activation, Samples], ...]:
    x = _GRID
    return (
        (Activation(kind="relu"), np.maximum(x, 0)),
        (Activation(kind="silu"), x * _sigmoid(x)),
        (Activation(kind="sigmoid"), _sigmoid(x)),
        (Activation(kind="tanh"), np.tanh(x)),
        (Activation(kind="gelu"), _gelu(x, "none")),
        (Activation(kind="gelu", alpha=GELU_TANH), _gelu(x, "tanh")),
        (Activation(kind="mish"), _mish(x)),
    )
