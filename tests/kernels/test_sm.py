"""Resources, from the assembler's report."""

import pytest

from trtplug.kernels.sm import SMS, Usage, blocks_per_sm, read_usage

LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_80'
ptxas         .     8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 216 registers, used 1 barriers, 49152 bytes smem, 400 bytes cmem[0]
"""


def test_reads_the_report():
    usage = read_usage(LOG)
    assert usage == Usage(registers=216, shared_bytes=49152, stack_bytes=8, spill_bytes=28)
    assert read_usage(LOG.replace(", 49152 bytes smem", "")).shared_bytes == 0
    assert read_usage("error: no") is None


# By hand from the CUDA occupancy calculator's rules.
@pytest.mark.parametrize(
    ("sm", "registers", "shared_kib", "blocks"),
    [
        (80, 255, 48, 2),  # registers
        (86, 166, 48, 2),  # shared memory: 100 KiB, 49 a block
        (90, 128, 48, 4),  # registers and shared memory alike
        (75, 128, 32, 2),  # shared memory
        (75, 16, 0, 8),  # threads
        (89, 16, 0, 12),  # threads
    ],
)
def test_blocks_that_fit(sm, registers, shared_kib, blocks):
    usage = Usage(registers=registers, shared_bytes=shared_kib * 1024, stack_bytes=0, spill_bytes=0)
    assert blocks_per_sm(usage, 128, SMS[sm]) == blocks


def test_shared_memory_and_registers_are_those_of_the_compute_capability():
    """KiB of an SM, from the CUDA Programming Guide's table of shared memory capacity."""
    kib = {75: 64, 80: 164, 86: 100, 87: 164, 89: 100, 90: 228, 100: 228, 103: 228, 110: 228,
           120: 100, 121: 100}  # fmt: skip
    assert {sm: facts.shared_bytes // 1024 for sm, facts in SMS.items()} == kib
    assert {facts.registers for facts in SMS.values()} == {65536}
    assert all(facts.threads % facts.blocks == 0 for facts in SMS.values())
