"""Code out of cubins."""

import pytest

from trtplug.kernels.compile import compile_kernel
from trtplug.kernels.loop import code_of
from trtplug.kernels.source import assemble
from trtplug.target import Sm

COPY = """
extern "C" __global__ void k(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }
"""


@pytest.mark.parametrize("number", [75, 90, 120])
def test_is_whole_instructions_of_16_bytes(number):
    cubin = compile_kernel(assemble("k", COPY), Sm(number), None).cubin
    code = code_of(cubin)
    assert code
    assert len(code) % 16 == 0
    assert code in cubin


def test_what_is_no_cubin_is_refused_in_words():
    cubin = compile_kernel(assemble("k", COPY), Sm(80), None).cubin
    for wrong in (b"", b"no cubin", b"\x7fELF\x01\x01" + bytes(90), cubin[:40], cubin[:-900]):
        with pytest.raises(ValueError, match="cubin"):
            code_of(wrong)


def test_one_kernel_is_wanted():
    two = COPY + COPY.replace("void k(", "void j(")
    cubin = compile_kernel(assemble("k", two), Sm(80), None).cubin
    with pytest.raises(ValueError, match="2 kernels"):
        code_of(cubin)
