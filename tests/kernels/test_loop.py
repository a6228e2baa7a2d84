"""Counting the main loops of kernels."""

import dataclasses

import pytest

from trtplug.kernels import loop
from trtplug.kernels.compile import compile_kernel
from trtplug.kernels.loop import count_loops
from trtplug.kernels.source import assemble
from trtplug.store import Store
from trtplug.target import Sm

SUM = """
extern "C" __global__ void k(const float* x, float* y, int n) {
  float sum = 0;
#pragma unroll 1
  for (int i = 0; i < n; ++i) sum += x[i * 32];
  *y = sum;
}
"""


def count_loop(kernel, store):
    return count_loops([kernel], store, 1)[0]


@pytest.fixture
def kernel():
    return compile_kernel(assemble("k", SUM), Sm(80), None)


def test_is_counted_once_and_kept(tmp_path, kernel, monkeypatch):
    store = Store(root=tmp_path)
    first = count_loop(kernel, store)
    assert first.count("LDG") == 1

    def refuse(*_):
        raise AssertionError("taken apart again")

    monkeypatch.setattr(loop, "disassemble", refuse)
    assert count_loops([kernel, kernel], store, 2) == (first, first)


def test_a_failure_is_no_loop_and_is_not_kept(tmp_path, kernel, monkeypatch):
    store = Store(root=tmp_path)

    def fail(*_):
        raise ValueError("nvdisasm took longer than 120 s")

    with monkeypatch.context() as broken:
        broken.setattr(loop, "disassemble", fail)
        assert count_loop(kernel, store) is None
    assert count_loop(kernel, store) is not None


def test_without_nvdisasm_there_is_none(kernel, monkeypatch):
    monkeypatch.setattr(loop, "find_tool", lambda _: None)
    assert count_loop(kernel, None) is None


def test_one_that_nvdisasm_does_not_take_does_not_spoil_the_others(tmp_path, kernel):
    store = Store(root=tmp_path)
    broken = dataclasses.replace(kernel, cubin=b"no cubin", digest="0" * 64)
    good, bad, again = count_loops([kernel, broken, kernel], store, 1)
    assert (good, bad) == (again, None)
    assert good == count_loop(kernel, None)


def test_kernels_of_several_sms_are_taken_apart_by_sm(kernel):
    other = compile_kernel(assemble("k", SUM), Sm(75), None)
    loops = count_loops([kernel, other, kernel], None, 2)
    assert loops == (count_loop(kernel, None), count_loop(other, None), count_loop(kernel, None))
    assert loops[0] != loops[1]
