from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.timing.cache_stand_in import identity
from trtplug.backends.gpu import Gpu, Machine
from trtplug.target import Sm
from trtplug.timing.identity import identity_differences, implementation_flags, machine_differences

OTHERS = {
    "gpu": "NVIDIA H100 80GB HBM3",
    "sm": "sm_89",
    "driver": "580.95.06",
    "cuda": "13.1",
    "builder": "11.4.0.107",
    "flags": {"tf32": "off"},
}


@pytest.mark.parametrize("field", OTHERS)
def test_any_other_field_is_another_entry_and_is_named(field):
    other = identity(**{field: OTHERS[field]})
    assert other.entry_id != identity().entry_id
    (difference,) = identity_differences(identity(), other)
    assert difference.field == ("flag tf32" if field == "flags" else field)
    assert str(difference).count("not ") == 1


def test_equal_ones_share_an_entry():
    assert identity().entry_id == identity(flags=dict(identity().flags)).entry_id
    assert identity_differences(identity(), identity()) == ()


def test_a_flag_that_only_one_has_is_a_difference():
    (difference,) = identity_differences(identity(), identity(flags={}))
    assert str(difference) == "flag tf32: none, not on"


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=8)))
def test_flags_that_may_change_a_kernel_are_kept(flags):
    indifferent = {"trial_run": "off", "pin": "conv0=0x1", "ban": "*", "prefer": "*"}
    kept = implementation_flags({**flags, **indifferent})
    assert kept == dict(sorted((k, v) for k, v in flags.items() if k not in indifferent))


def machine(**fields) -> Machine:
    gpus = (Gpu(name="NVIDIA L4", sm=Sm(89)), Gpu(name="NVIDIA H200", sm=Sm(90)))
    given = {"gpus": gpus, "driver": "580.95.05", "cuda": "13.0", "gpu_problem": ""}
    return Machine(**given | fields)


def test_any_gpu_of_the_machine_will_do():
    assert machine_differences(identity(), machine()) == ()


def test_the_sm_is_that_of_the_gpu_of_the_name():
    odd = identity(sm="sm_89")
    assert [str(d) for d in machine_differences(odd, machine())] == ["sm: sm_89, not sm_90"]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"gpus": (Gpu(name="NVIDIA L4", sm=Sm(89)),)}, ["gpu", "sm"]),
        ({"gpus": (Gpu(name="NVIDIA H100", sm=Sm(90)),)}, ["gpu"]),
        ({"driver": "1"}, ["driver"]),
        ({"cuda": "12.8"}, ["cuda"]),
        ({"tensorrt": "11.4.0.107"}, ["builder"]),
        ({"tensorrt": "11.4.0.106"}, []),
        ({"gpus": (), "driver": None, "cuda": None}, ["gpu", "sm", "driver", "cuda"]),
    ],
)
def test_each_field_of_another_machine_is_named(fields, named):
    found = machine_differences(identity(), machine(**fields))
    assert [d.field for d in found] == named
