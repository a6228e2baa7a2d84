"""Verdicts on a model's kernels."""

import dataclasses
import json

import numpy as np
import pytest

from tests.models import conv_chain, save
from trtplug.document import to_json
from trtplug.kernels.check import (
    SCHEMA,
    ChecksDocument,
    SiteTensors,
    check_tasks,
    checks_of,
    sample_blocks,
)
from trtplug.kernels.choose import KernelTarget
from trtplug.kernels.compile import Refused
from trtplug.kernels.listing import compile_tasks, list_tasks
from trtplug.kernels.problems import read_problems
from trtplug.target import Sm


def tasks_of(path, *names, precision="fp16"):
    read = read_problems(path, (), precision)
    tasks, _ = list_tasks(read.asked, (KernelTarget(sm=Sm(80), profile=None),))
    return tuple(t for t in tasks if t.tactic.name in names)


@pytest.fixture
def chain(tmp_path):
    return tasks_of(save(conv_chain(2), tmp_path / "m.onnx"), "igemm_64x64x32_s4")


def own_tensors(seed, channels=16, size=32):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((1, channels, size, size)).astype(np.float32)
    weights = np.zeros((channels, channels, 3, 3), np.float32)
    weights[np.arange(channels), np.arange(channels), 1, 1] = 1  # Each channel as it is.
    bias = np.zeros(channels, np.float32)
    return SiteTensors(
        x=x, weights=(weights,), biases=(bias,), residual=None, output=np.maximum(x, 0)
    )


def test_one_verdict_for_a_problem_with_random_tensors(chain):
    outcomes = compile_tasks(chain, None, 1)
    said = []
    (check,) = check_tasks(chain, outcomes, seed=0, most_blocks=4, done=said.append)
    assert said == [check]
    assert check.status == "passed"
    assert check.sites == ("conv0", "conv1")
    assert (check.blocks, check.grid_blocks) == (4, 16)
    assert check.block_numbers[0] == 0
    assert check.block_numbers[-1] == 15
    assert (check.model_error, check.model_tolerance) == (None, None)
    again = next(check_tasks(chain, outcomes, seed=0, most_blocks=4))
    assert again == check
    other = next(check_tasks(chain, outcomes, seed=1, most_blocks=16))
    assert other.block_numbers is None
    assert other.relative_error != check.relative_error


def test_one_verdict_for_each_site_with_its_own_tensors(chain):
    outcomes = compile_tasks(chain, None, 1)
    given = {"conv0": own_tensors(0), "conv1": own_tensors(1)}
    assert checks_of(chain, given) == 2
    assert checks_of(chain, None) == 1
    checks = list(check_tasks(chain, outcomes, seed=0, most_blocks=16, given=given))
    assert [(c.sites, c.status) for c in checks] == [(("conv0",), "passed"), (("conv1",), "passed")]
    # A kernel that copies is as exact as FP16.
    assert all(0 < c.model_error < 2**-11 for c in checks)
    assert len(list(check_tasks(chain, outcomes, seed=0, most_blocks=2, given={}))) == 0


def test_what_is_no_kernel_has_a_status_and_the_compilers_words(chain):
    task = chain[0]
    bad = Refused(name="k", sm=Sm(80), digest="0" * 64, status="refused", log="error: no")
    (check,) = check_tasks(chain, (bad,), seed=0, most_blocks=4)
    assert (check.status, check.problems, check.blocks) == ("refused", ("error: no",), 0)
    assert check.tactic == task.tactic.name


def test_what_the_emulator_does_not_know_is_a_status_and_the_rest_goes_on(chain):
    (kernel,) = compile_tasks(chain, None, 1)
    strange = dataclasses.replace(kernel, ptx=kernel.ptx.replace("bar.sync", "frobnicate.sync", 1))
    first, second = check_tasks(chain * 2, (strange, kernel), seed=0, most_blocks=4)
    assert first.status == "not_emulated"
    assert "frobnicate" in first.problems[0]
    assert second.status == "passed"


def test_wrong_numbers_and_findings_fail(chain):
    (kernel,) = compile_tasks(chain, None, 1)
    lines = kernel.ptx.splitlines(keepends=True)
    last = max(i for i, line in enumerate(lines) if "bar.sync" in line)
    racing = dataclasses.replace(kernel, ptx="".join(lines[:last] + lines[last + 1 :]))
    (check,) = check_tasks(chain, (racing,), seed=0, most_blocks=4)
    assert check.status == "failed"
    assert any("race" in problem for problem in check.problems)


def test_values_beyond_fp16_fail_in_words_and_make_good_json(chain, tmp_path):
    outcomes = compile_tasks(chain, None, 1)
    huge = own_tensors(0)
    huge = dataclasses.replace(huge, x=huge.x * 1e6, output=huge.output * 1e6)
    checks = tuple(check_tasks(chain, outcomes, seed=0, most_blocks=16, given={"conv0": huge}))
    assert checks[0].status == "failed"
    assert "of the model's values are beyond float16" in checks[0].problems[0]
    document = ChecksDocument(
        schema=SCHEMA, model="m.onnx", sha256="0" * 64, seed=0, activations="model", checks=checks
    )
    assert json.loads(to_json(document))["checks"][0]["relative_error"] is None


def test_samples_have_both_ends_and_no_block_twice():
    rng = np.random.default_rng(0)
    for total, wanted in ((3, 2), (9, 8), (1000, 8)):
        found = sample_blocks(total, wanted, rng)
        assert len(set(found)) == wanted
        assert (found[0], found[-1]) == (0, total - 1)
        assert list(found) == sorted(found)
