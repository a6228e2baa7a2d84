"""A family of one's own: a Python file and a CUDA file, and nothing else is touched."""

from __future__ import annotations

import dataclasses
import importlib.util

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.kernels.problems import problem
from tests.models import save
from tests.plugin.samples import offer_for, plugin_nodes, query_for, source_of
from trtplug.kernels.catalog import CATALOG, Catalog
from trtplug.kernels.choose import KernelTarget, Offer, choose_offer
from trtplug.kernels.compile import CompiledKernel, compile_kernel
from trtplug.kernels.emulate import random_tensors, run_tactic
from trtplug.kernels.family import Exclusion
from trtplug.kernels.kit import read_kit, read_ptx
from trtplug.kernels.predict import START_US, predict
from trtplug.profile import find_profile, load_profiles
from trtplug.settings import resource_folder
from trtplug.target import Sm

CUDA = """
#pragma once

#include "cbr/geometry.cuh"

namespace mine {

template <class Site>
__device__ void one_by_one(const float* x, const float* weights, const float* bias,
                           const float* residual, float* y, const trtplug::Extents& at) {
  const long long area = static_cast<long long>(at.rows) * at.columns;
  const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= at.batch * area) {
    return;
  }
  const long long image = index / area;
  const long long pixel = index % area;
  const int output = blockIdx.y;
  float sum = bias[output];
  for (int c = 0; c < Site::kChannels; ++c) {
    sum += x[(image * Site::kChannels + c) * area + pixel] * weights[c * Site::kOutputs + output];
  }
  const long long offset = (image * Site::kOutputs + output) * area + pixel;
  const float old = Site::kResidual == trtplug::Residual::kNone ? 0.0f : residual[offset];
  y[offset] = trtplug::finish<Site::kActivation, Site::kResidual>(sum, old, Site::values());
}

}  // namespace mine
"""

PYTHON = '''
"""1x1 convolutions in FP32, an output a thread."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trtplug.kernels.family import Exclusion, Tactic, Work, divide_up


@dataclass(frozen=True, slots=True, kw_only=True)
class OneByOne(Tactic):
    includes: ClassVar = ("mine/one_by_one.cuh",)

    @property
    def threads(self):
        return 64

    def exclusions(self, problem):
        if problem.taps > 1 or any(problem.attributes.pads):
            yield Exclusion.NOT_POINTWISE
        if problem.attributes.group > 1 or set(problem.attributes.strides) != {1}:
            yield Exclusion.GROUPED

    def body(self, problem, sm):
        return "mine::one_by_one<Site>(x, weights, bias, residual, y, at);"

    def grid(self, problem, sizes):
        batch, outputs, rows, columns = problem.output(sizes)
        return (divide_up(batch * rows * columns, self.threads), outputs, 1)

    def packing(self, problem):
        return "mine_by_channel"

    def pack_weights(self, problem, weights, conv=0):
        return np.ascontiguousarray(weights.reshape(problem.outputs, -1).T)

    def pack_bias(self, problem, bias, conv=0):
        return bias.astype(np.float32)

    def work(self, problem):
        terms, warps = problem.channels, self.threads // 32
        loads = warps * terms * (128 + 32)
        return Work(multiply_adds=self.threads * terms, shared_bytes=0, l1_bytes=loads,
                    l2_bytes=0, steps=terms)


TACTICS = (OneByOne(name="mine_1x1", number=900, use="1x1 in FP32", layout="LINEAR"),)
'''

FLAT = {"kernel": (1, 1), "pads": (0, 0, 0, 0), "dtype": "float"}
GIVEN = problem(
    (2, 12, 7, 9), 10, **FLAT, least=(1, 12, 3, 9), activation="silu", residual="after_activation"
)


@pytest.fixture
def mine(tmp_path):
    """trtplug's own tactics and one more."""
    (tmp_path / "cuda" / "mine").mkdir(parents=True)
    (tmp_path / "cuda" / "mine" / "one_by_one.cuh").write_text(CUDA)
    (tmp_path / "one_by_one.py").write_text(PYTHON)
    spec = importlib.util.spec_from_file_location("one_by_one", tmp_path / "one_by_one.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Catalog((*CATALOG.tactics, *module.TACTICS), folders=(tmp_path / "cuda",))


def h200():
    return find_profile("h200", load_profiles((resource_folder("profiles"),)))


def test_legal_compiled_predicted_emulated(mine):
    tactic = mine.find("mine_1x1")
    sm = Sm(90)
    assert tactic in mine.legal(GIVEN, sm)
    assert (
        tactic.exclusion(problem((1, 12, 7, 9), 10, dtype="float"), sm) is Exclusion.NOT_POINTWISE
    )
    assert tactic.exclusion(GIVEN, Sm(70)) is Exclusion.SM
    kernel = compile_kernel(tactic.generate(GIVEN, sm, mine.headers()), sm, None)
    assert isinstance(kernel, CompiledKernel), kernel.log
    found = predict(tactic, GIVEN, h200(), kernel.usage, GIVEN.x.opt)
    assert found.predicted_us > START_US
    for sizes in (GIVEN.x.min, GIVEN.x.max):
        tensors = random_tensors(GIVEN, sizes, np.random.default_rng(0))
        checked = run_tactic(tactic, GIVEN, kernel.ptx, tensors)
        assert checked.passed, (checked.relative_error, checked.problems, checked.findings)


def test_offered_by_name(mine):
    target = KernelTarget(sm=Sm(90), profile=h200(), catalog=mine)
    offer = choose_offer(GIVEN, target, lambda name: name.startswith("mine"))
    assert isinstance(offer, Offer)
    assert offer.tactics == (mine.find("mine_1x1"),)
    assert offer.packing == "mine_by_channel"


def test_in_the_kit_and_the_model_that_a_builder_gets(mine, tmp_path):
    weight = np.random.default_rng(0).standard_normal((10, 12, 1, 1)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["c"], name="conv"),
            helper.make_node("Relu", ["c"], ["y"], name="relu"),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 12, 7, 9))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 10, 7, 9))],
        [numpy_helper.from_array(weight, "w")],
    )
    path = save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]),
                tmp_path / "m.onnx")  # fmt: skip
    query = query_for(tactics=("mine_*",))
    query = dataclasses.replace(query, place=dataclasses.replace(query.place, catalog=mine))
    offer = offer_for(source_of(path), query, tmp_path)
    (site,) = read_kit(offer.kit, mine).sites.values()
    (tactic,) = site.tactics
    assert tactic.name == "mine_1x1"
    assert ".entry trtplug_cbr(" in read_ptx(offer.kit, site.kernels[0].ptx_sha256)
    model = onnx.load(offer.model)
    (node,) = plugin_nodes(model).values()
    packed = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}[node.input[1]]
    assert np.array_equal(packed, weight.reshape(10, 12).T.reshape(-1))
