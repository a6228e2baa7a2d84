"""Whole models, site by site: kernels in the emulator against ONNX Runtime, in TensorRT's layouts.

Every site runs with the model's own weights and with what reaches it in the model, in FP16 (HWC8,
and LINEAR FP32 into the first), by one legal tactic for each different problem: another for each,
so that all of them have a turn. Of large grids a few blocks are run, the first and the last among
them; which is in the verdict. PP-OCRv4 has its trained weights; those of ResNet-18 and MobileNetV2
are random.
"""

import numpy as np
import pytest

from tests.models import save
from tests.networks import mobilenet_v2, resnet18
from trtplug.kernels.check import check_tasks
from trtplug.kernels.choose import KernelTarget
from trtplug.kernels.direct import Direct
from trtplug.kernels.listing import compile_tasks, list_tasks
from trtplug.kernels.problems import read_problems
from trtplug.measure.activations import read_activations
from trtplug.target import Sm
from trtplug.tensor import parse_shape_range

MOST_BLOCKS = 4


def one_tactic_each(tasks):
    """A task for each problem; the direct kernel only where there is no other."""
    chosen = []
    for number in sorted({t.problem for t in tasks}):
        legal = [t for t in tasks if t.problem == number]
        better = [t for t in legal if not isinstance(t.tactic, Direct)] or legal
        chosen.append(better[number % len(better)])
    return chosen


def verdicts(path, shapes, sm):
    read = read_problems(path, tuple(map(parse_shape_range, shapes)), "fp16", pairs=True)
    assert read.unsized == ()
    tasks, _ = list_tasks(read.asked, (KernelTarget(sm=Sm(sm), profile=None),))
    chosen = one_tactic_each(tasks)
    outcomes = compile_tasks(chosen, None, 2)
    given = read_activations(read.model, read.sizes, seed=0)
    checks = list(check_tasks(chosen, outcomes, seed=0, most_blocks=MOST_BLOCKS, given=given))
    assert sorted(c.sites[0] for c in checks) == sorted(s for a in read.asked for s in a.sites)
    return checks


def assert_all_meet(checks):
    assert [(c.sites, c.tactic, c.status, c.problems) for c in checks if c.status != "passed"] == []
    for check in checks:
        assert check.model_error <= check.model_tolerance
        assert check.relative_error <= check.tolerance
        sampled = check.grid_blocks > MOST_BLOCKS
        assert (check.block_numbers is not None) == sampled
        if sampled:
            assert {0, check.grid_blocks - 1} <= set(check.block_numbers)
            assert len(check.block_numbers) == check.blocks == MOST_BLOCKS
    # By far the most are much nearer: half of the FP16 tolerance is never needed.
    assert np.median([c.model_error for c in checks]) < 1e-3


def test_resnet_18(tmp_path):
    checks = verdicts(save(resnet18(64), tmp_path / "resnet18.onnx"), (), 86)
    assert len(checks) == 20
    assert_all_meet(checks)


def test_mobilenet_v2(tmp_path):
    checks = verdicts(save(mobilenet_v2(64), tmp_path / "mobilenetv2.onnx"), (), 75)
    assert len(checks) == 52 + 17  # And the pairs of its blocks.
    assert {"depthwise_1", "depthwise_2"} <= {c.tactic for c in checks}
    assert_all_meet(checks)


def test_ppocr_det(det):
    checks = verdicts(det, ["x=1x3x64x64"], 90)
    assert len(checks) == 62 + 12
    assert len({c.tactic for c in checks}) >= 8
    assert_all_meet(checks)


def test_a_wrong_weight_is_met_by_the_models_own_output(tmp_path, monkeypatch):
    """The reference alone would agree with a kernel that got the same wrong weights."""
    import dataclasses

    from tests.models import conv_relu

    path = save(conv_relu(shape=(1, 8, 9, 9)), tmp_path / "m.onnx")
    read = read_problems(path, (), "fp16")
    tasks, _ = list_tasks(read.asked, (KernelTarget(sm=Sm(80), profile=None),))
    chosen = one_tactic_each(tasks)
    outcomes = compile_tasks(chosen, None, 1)
    good = read_activations(read.model, read.sizes, seed=0)
    bad = {
        n: dataclasses.replace(t, weights=tuple(w * 1.01 for w in t.weights))
        for n, t in good.items()
    }
    (check,) = check_tasks(chosen, outcomes, seed=0, most_blocks=4, given=bad)
    assert check.status == "failed"
    assert check.relative_error < check.tolerance
    assert "against the model" in check.problems[0]
    (check,) = check_tasks(chosen, outcomes, seed=0, most_blocks=4, given=good)
    assert check.status == "passed"


@pytest.mark.parametrize("build", [resnet18, mobilenet_v2])
def test_the_networks_stay_in_range(build, tmp_path):
    from trtplug.measure.reference import Reference

    model = Reference(save(build(64), tmp_path / "m.onnx"))
    x = np.random.default_rng(1).standard_normal((1, 3, 64, 64)).astype(np.float32)
    (y,) = model.run({"x": x}).values()
    assert 1e-3 < np.abs(y).max() < 1e4
