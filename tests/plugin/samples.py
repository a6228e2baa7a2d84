"""Offers for models without a GPU, and the model behind their plugin nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import numpy_helper

from tests.kernels.unpacking import unpack_bias, unpack_weights
from trtplug.kernels.kit import read_kit
from trtplug.model.files import digest_model
from trtplug.model.precision_options import PrecisionOptions
from trtplug.model.source import read_source
from trtplug.ops import cbr, cbr_function, cbr_pair
from trtplug.ops.plugin_layer import LAYER_INPUTS
from trtplug.plugin.choose import choose_sites, make_query
from trtplug.plugin.evidence import NO_EVIDENCE
from trtplug.plugin.offer import make_offer
from trtplug.plugin.options import PluginOptions
from trtplug.plugin.units import PluginOffer, list_candidates
from trtplug.profile import load_profiles
from trtplug.settings import resource_folder
from trtplug.store import Store
from trtplug.target import Sm
from trtplug.tensor import parse_shape_range

if TYPE_CHECKING:
    from pathlib import Path

    from trtplug.model.source import Source
    from trtplug.plugin.choose import PluginQuery


def source_of(path: Path, *shapes: str, precision="keep", more=()) -> Source:
    return read_source(
        path,
        digest_model(path).sha256,
        tuple(map(parse_shape_range, shapes)),
        PrecisionOptions(target=precision),
        tuple(tuple(map(parse_shape_range, profile)) for profile in more),
    )


def query_for(*, sm=90, gpus=("h200",), evidence=NO_EVIDENCE, shared_bytes=None, **options):
    profiles = load_profiles((resource_folder("profiles"),))
    given = PluginOptions(**{"mode": "always", **options})
    return make_query(given, evidence, "NVIDIA Double", Sm(sm), gpus, profiles, shared_bytes)


def offer_of(source: Source, folder: Path, events=None, **options) -> PluginOffer:
    return offer_for(source, query_for(**options), folder, events)


def offer_for(source: Source, query: PluginQuery, folder: Path, events=None) -> PluginOffer:
    hear = events.append if events is not None else lambda _: None
    # Beside the folder of a test: kernels are compiled once for all tests of a run.
    kernels = Store(root=folder.parent / "kernels")
    candidates = list_candidates(source)
    plan = PluginOffer(mode=query.options.mode, sites=choose_sites(candidates, query))
    return make_offer(source, plan, candidates, query.place, folder / "offer", kernels, 2, hear)


def sites_of(source: Source, **options):
    return choose_sites(list_candidates(source), query_for(**options))


def plugin_nodes(model: onnx.ModelProto) -> dict[str, onnx.NodeProto]:
    return {n.name: n for n in model.graph.node if n.domain == cbr.DOMAIN}


def site_of(node: onnx.NodeProto, offer: PluginOffer):
    (digest,) = (a.s.decode() for a in node.attribute if a.name == "site")
    return read_kit(offer.kit).sites[digest]


def unpacked(offer: PluginOffer, path: Path, opset: int) -> Path:
    """The model that was made for the builder, with nodes that ONNX Runtime can run.

    Each plugin node becomes its op, on its own weights, unpacked.
    """
    model = onnx.load(offer.model, load_external_data=False)
    weights = {t.name: t for t in model.graph.initializer}
    functions = {}
    for node in plugin_nodes(model).values():
        site = site_of(node, offer)
        given = dict(zip(LAYER_INPUTS[node.op_type], node.input, strict=True))
        x, *rest = (given.pop(n) for n in ("x", "residual") if n in given)
        packed = [numpy_helper.to_array(weights[n]) for n in given.values()]
        plain = list(_unpack(site, packed))
        names = [f"{node.name}.plain{n}" for n in range(len(plain))]
        dtype = packed[0].dtype
        model.graph.initializer.extend(
            numpy_helper.from_array(np.ascontiguousarray(v).astype(dtype), n)
            for n, v in zip(names, plain, strict=True)
        )
        op = (cbr_pair, cbr_pair) if site.op == "CBRPair" else (cbr, cbr_function)
        attributes, kind = site.problem.attributes, site.problem.dtype
        overload = op[1].overload_name(attributes, kind)
        made = op[0].make_node(attributes, [x, *names, *rest], node.output[0], node.name, overload)
        node.CopyFrom(made)
        functions[overload] = op[1].make_function(attributes, kind, opset)
    model.functions.extend(functions.values())
    model.ir_version = max(model.ir_version, cbr_function.FIRST_IR_WITH_OVERLOADS)
    path.write_bytes(model.SerializeToString())
    return path


def _unpack(site, packed):
    """Weights and bias of each convolution, in the order of the node's inputs."""
    tactic, problem = site.tactics[0], site.problem
    for conv, each in enumerate(problem.convs):
        shape = tactic.pack_weights(problem, np.zeros(each.weight_shape, np.int8), conv).shape
        yield unpack_weights(tactic, problem, packed[2 * conv].reshape(shape), conv)
        yield unpack_bias(tactic, problem, packed[2 * conv + 1], conv)
