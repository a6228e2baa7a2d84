"""The source of a pair's kernel: its PTX assembles for each SM, in the oldest version."""

import pytest

from tests.kernels.assemble import assemble_ptx
from tests.kernels.kernels import compiled, find_tactic
from tests.kernels.pair_problems import pair
from trtplug.kernels.sm import SMS

GIVEN = pair((8, 192, 28, 28), 96, residual="after_activation")


@pytest.mark.parametrize("number", SMS)
def test_assembles(number):
    kernel = compiled(find_tactic("pair_32x64x64"), GIVEN, number)
    assert assemble_ptx(kernel.ptx, f"sm_{number}") == ""
    # sm_75 came with 6.3, ldmatrix and the products with 6.5.
    least = max(SMS[number].ptx, (6, 5))
    assert kernel.ptx_version == f"{least[0]}.{least[1]}"
