"""Tasks, and the document about them."""

import dataclasses

import pytest

from tests.kernels.kernels import SINGLES
from tests.models import conv_chain, conv_relu, save
from trtplug.document import to_json
from trtplug.kernels.choose import KernelTarget
from trtplug.kernels.compile import Refused
from trtplug.kernels.listing import (
    compile_tasks,
    count_task_loops,
    list_tasks,
    make_document,
)
from trtplug.kernels.problems import read_problems
from trtplug.profile import find_profile, load_profiles
from trtplug.settings import resource_folder
from trtplug.target import Sm

LIMIT = 47 * 1024


@pytest.fixture
def l4():
    return find_profile("l4", load_profiles((resource_folder("profiles"),)))


@pytest.fixture
def chain(tmp_path):
    return read_problems(save(conv_chain(2), tmp_path / "m.onnx"), (), "fp16")


def test_every_tactic_is_a_task_or_excluded_once_for_each_place(chain):
    places = tuple(KernelTarget(sm=Sm(n), profile=None) for n in (75, 89))
    tasks, excluded = list_tasks(chain.asked, places)
    listed = [(t.tactic.name, str(t.target.sm)) for t in tasks]
    out = [(e.tactic, e.sm) for e in excluded]
    every = [(t.name, sm) for sm in ("sm_75", "sm_89") for t in SINGLES]
    assert sorted(listed + out) == sorted(every)
    assert ("igemm_128x128x32_s3", "sm_75") in out
    assert {e.reason for e in excluded} >= {"dtype", "stages", "not_pointwise", "channels"}
    # Larger tiles where a block may have more.
    more, _ = list_tasks(
        chain.asked, tuple(dataclasses.replace(p, shared_bytes=48 * 1024) for p in places)
    )
    assert len(more) > len(tasks)


def test_an_sm_that_nobody_compiles_for_excludes_all(chain):
    tasks, excluded = list_tasks(chain.asked, (KernelTarget(sm=Sm(70), profile=None),))
    assert tasks == ()
    assert {e.reason for e in excluded} == {"sm"}


def test_the_document_has_what_became_of_each(chain, l4):
    tasks, excluded = list_tasks(chain.asked, (KernelTarget(sm=Sm(89), profile=l4),))
    tasks = tuple(t for t in tasks if t.tactic.name in ("igemm_64x64x32_s4", "direct_hwc8"))
    good, other = compile_tasks(tasks, None, 2)
    bad = Refused(
        name=other.name, sm=other.sm, digest=other.digest, status="refused", log="k.cu: error: no"
    )
    outcomes = (good, bad)
    loops = count_task_loops(outcomes, None, 2)
    document = make_document(chain.model, chain.asked, (), tasks, outcomes, loops, excluded, LIMIT)
    first, last = document.kernels
    assert (first.status, last.status) == ("ok", "refused")
    assert first.gpu == "l4"
    assert first.predicted_us > 2
    assert first.registers == good.usage.registers
    # What has no prediction comes last, and has nothing but its log.
    assert (last.predicted_us, last.registers, last.mma_share) == (None, None, None)
    assert last.log == "k.cu: error: no"
    assert document.problems[0].sites == ("conv0", "conv1")
    assert '"schema": "trtplug.kernels/1"' in to_json(document)


def test_without_a_profile_nothing_is_predicted(chain):
    tasks, excluded = list_tasks(chain.asked, (KernelTarget(sm=Sm(87), profile=None),))
    tasks = tasks[:1]
    outcomes = compile_tasks(tasks, None, 1)
    loops = count_task_loops(outcomes, None, 1)
    document = make_document(chain.model, chain.asked, (), tasks, outcomes, loops, excluded, LIMIT)
    (entry,) = document.kernels
    assert (entry.status, entry.gpu, entry.predicted_us, entry.bound_by) == ("ok", None, None, None)
    assert entry.blocks_per_sm >= 1


def test_a_float_model_has_the_direct_kernel_alone(tmp_path):
    found = read_problems(save(conv_relu(), tmp_path / "m.onnx"), (), "keep")
    tasks, _ = list_tasks(found.asked, (KernelTarget(sm=Sm(90), profile=None),))
    assert [t.tactic.name for t in tasks] == ["direct_linear"]
