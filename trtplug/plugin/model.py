"""The model as TensorRT gets it: plugin nodes where units of ours were chosen, all else as it was.

Weights are packed only when the file is written, one after the other, and external data stay where
they are: at no time is the model in memory once more.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from trtplug.model.load import model_of
from trtplug.model.save import NewTensor, save_beside
from trtplug.ops.plugin_layer import plugin_layer_node
from trtplug.plugin.units import PlacedUnit, ReadyUnit
from trtplug.rewrite.nodes import Unit, matches_of
from trtplug.rewrite.run import rewrite_model
from trtplug.rewrite.weights import bias_of, weight_of
from trtplug.tensor import element_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from onnx import FunctionProto, NodeProto

    from trtplug.model.load import Model
    from trtplug.model.save import Tensor
    from trtplug.model.source import Source
    from trtplug.rewrite.cbr_rule import Match
    from trtplug.rewrite.nodes import Names
    from trtplug.rewrite.scope import Scope


if TYPE_CHECKING:
    Array = np.ndarray[Any, np.dtype[Any]]


_FLOAT = np.dtype(np.float32)


def write_plugin_model(
    source: Source, units: Sequence[ReadyUnit], path: Path
) -> tuple[PlacedUnit, ...]:
    """Writes the model that the builder is to parse, and says what its plugin nodes are called.

    Args:
        source: the model; it is not changed.
        units: what takes the place of sites and pairs.
        path: of the new file; external data are still looked for beside the source's own.

    Raises:
        ModelInvalidError: it would be larger than protobuf allows.
        OutputError: the file cannot be written.
    """
    base = _base(source)
    places = _Places(source, base)
    placed = {places.label(r): r for r in units}
    maker = PluginNodes(placed, places.names)
    rewrite = rewrite_model(
        base,
        only={c for r in units for c in places.convs(r)},
        pairs=[label for label, r in placed.items() if r.unit.candidate.is_pair],
        maker=maker,
    )
    save_beside(rewrite.parts, path)
    return tuple(PlacedUnit(ready=r, node=maker.made[label]) for label, r in placed.items())


def _base(source: Source) -> Model:
    """The model with the repairs that a builder needs."""
    prepared, model = source.prepared, source.model
    if prepared.data is None or not prepared.repairs:
        return model
    from onnx import ModelProto

    proto = ModelProto.FromString(prepared.data)
    return model_of(proto, model.path, model.sha256, model.external)


class _Places:
    """What the nodes of a model are called once it is repaired."""

    def __init__(self, source: Source, base: Model) -> None:
        from trtplug.model.graph import node_labels

        self.names = set(node_labels(base.proto.graph))
        self._builders = {label: name for name, label in source.prepared.names.items()}

    def convs(self, ready: ReadyUnit) -> tuple[str, ...]:
        """Labels of a unit's convolutions."""
        return tuple(map(self._label, ready.unit.candidate.convs))

    def label(self, ready: ReadyUnit) -> str:
        """Label of the unit."""
        return "+".join(self.convs(ready))

    def _label(self, label: str) -> str:
        # A node without a name is called otherwise by the builder, and keeps its label.
        name = self._builders.get(label, label)
        return name if name in self.names else label


class PluginNodes:
    """Makes plugin nodes, each with its packed weights and biases."""

    def __init__(self, placed: dict[str, ReadyUnit], names: set[str]) -> None:
        self._placed = placed
        self._taken = names
        self.made: dict[str, str] = {}
        """Label of a unit -> name of its node."""

    def node(self, unit: Unit, scope: Scope, names: Names, added: list[Tensor]) -> NodeProto:
        """The node of a unit; what it is made of goes into `added`."""
        matches = matches_of(unit)
        label = "+".join(m.site.conv for m in matches)
        ready = self._placed[label]
        inputs = [matches[0].site.input]
        for tensor in _packed(ready, matches, scope, names):
            added.append(tensor)
            inputs.append(tensor.name)
        residual = matches[-1].residual
        if residual:
            inputs.append(residual)
        self.made[label] = self._name(label, matches)
        return plugin_layer_node(
            ready.site.op,
            ready.site.digest,
            inputs,
            matches[-1].site.output,
            self.made[label],
            residual=bool(residual),
        )

    def functions(self, units: Iterable[Unit], opset: int) -> Iterator[FunctionProto]:  # noqa: ARG002
        """None: nothing but the plugin can read packed weights."""
        return iter(())

    def _name(self, label: str, matches: Sequence[Match]) -> str:
        """The unit's label, unless a node that stays has it."""
        gone = {m.site.conv for m in matches}
        name = label
        while name in self._taken and name not in gone:
            name += "_"
        self._taken.add(name)
        return name


def _packed(
    ready: ReadyUnit, matches: tuple[Match, ...], scope: Scope, names: Names
) -> Iterator[NewTensor]:
    """Weights and bias of each convolution, in the order of the node's inputs."""
    problem, tactic = ready.unit.problem, ready.tactic
    for number, match in enumerate(matches):
        pack = partial(tactic.pack_weights, problem, conv=number)
        pack_b = partial(tactic.pack_bias, problem, conv=number)
        shape = problem.convs[number].weight_shape
        weight, bias = partial(weight_of, match, scope), partial(bias_of, match, scope, _FLOAT)
        for read, name, dtype, by, dims in (
            (weight, "packed", problem.dtype, pack, shape),
            (bias, "packed_bias", "float", pack_b, shape[:1]),
        ):
            yield NewTensor(
                name=names.new(f"{match.site.conv}.{name}"),
                # The size alone, from elements of a byte each.
                dims=(by(np.zeros(dims, np.int8)).size,),
                elem_type=element_type(dtype).onnx,
                make=partial(_read_and_pack, read, by),
                external=False,
            )


def _read_and_pack(read: Callable[[], Array], pack: Callable[[Array], Array]) -> Array:
    return pack(read()).reshape(-1)
