"""Prints candidate tables as builders do, so that tests can read them back.

The shapes follow NVIDIA's sampleEditableTimingCache README (10.8) and logs that users published
(11.x: ONNX nodes after the key). No builder ran here.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from trtplug.backends.tactic_table import Candidate, CandidateTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HEADER = (
    "tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, "
    "tunable_parameter"
)
KEY = "0x1814870c44ff0f8574df6e3dda04cbd7"
OTHER_KEY = "0xe5c222cd6b9e29cbe66c8bec07cb6a07"


def candidate(number: int, cost_ms: float, fastest_ms: float, kernel: str, **fields) -> Candidate:
    """A row, its ratio as the builder would print it."""
    return Candidate(
        **{
            "tactic_id": number,
            "cost_ms": cost_ms,
            "ratio": round(cost_ms / fastest_ms, 5) if fastest_ms else 1.0,
            "correlation": 0.5,
            "kernel": kernel,
            "tactic_hash": f"0x{zlib.crc32(kernel.encode()):x}",
            "parameter": "",
        }
        | fields
    )


def table(
    op: str, costs_ms: Sequence[float], key: str = KEY, chosen: int = 0, **fields
) -> CandidateTable:
    """A table with one kernel for each cost, sorted."""
    costs = sorted(costs_ms)
    rows = tuple(
        candidate(n + 1, cost, costs[0], f"sm80_xmma_fprop_{op}_{n}")
        for n, cost in enumerate(costs)
    )
    given = {
        "onnx_layers": (),
        "selected": rows[chosen].tactic_hash,
        "selected_ms": rows[chosen].cost_ms,
        "written": rows[chosen].tactic_hash,
        "complete": True,
    } | fields
    return CandidateTable(op=op, key=key, candidates=rows, **given)


def print_row(row: Candidate) -> str:
    # 17 digits: what is read back must be what was printed.
    numbers = f"{row.tactic_id:4}, {row.cost_ms!r}, {row.ratio!r}, {row.correlation!r}"
    return f"{numbers}, {row.kernel}, {row.tactic_hash}, {row.parameter}".rstrip()


def print_table(table: CandidateTable) -> Iterator[str]:
    """Line by line."""
    nodes = "".join(f"[ONNX Layer: {n}]" for n in table.onnx_layers)
    yield f"Autotuning op {table.op}(key: {table.key}): {nodes}".rstrip()
    yield "Sorted table of all evaluated tactics:"
    yield HEADER
    yield from map(print_row, table.candidates)
    if table.selected:
        cost = f"{table.selected_ms!r}"
        yield f"The selected tactic is (tactic hash, cost(in ms)):{table.selected},  {cost}"
    if table.written:
        yield f"Writing the best tactic ({table.written}) to cache"


def prefixed(lines: Sequence[str], prefix: str) -> str:
    """Lines as a log file holds them."""
    return "".join(f"{prefix}{line}\n" for line in lines)


SAMPLE_10_8 = """\
Autotuning op matMul1(key: 0x1814870c44ff0f8574df6e3dda04cbd7):
Sorted table of all evaluated tactics:
tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, tunable_parameter
   3, 0.0112640, 1.00000, 0.50673, sm80_xmma_gemm_tilesize32x32x64_stage3, 0x665ded9abbf88,
   5, 0.0118784, 1.05455, 0.51157, sm80_xmma_gemm_tilesize64x32x64_stage4, 0x393e4ef8ad243,
   6, 0.0123904, 1.10000, 0.50600, sm80_xmma_gemm_tilesize64x32x64_stage5, 0x2ad3a182fb05c,
The selected tactic is (tactic hash, cost(in ms)):0x665ded9abbf88,  0.011264
Writing the best tactic (0x665ded9abbf88) to cache
"""  # noqa: E501 - the builder's own line

SAMPLE_11 = """\
[11/30/2026-11:03:15] [TRT] [V] Autotuning op node_linear(key: 0xe5c222cd6b9e29cbe66c8bec07cb6a07): [ONNX Layer: node_linear]
[11/30/2026-11:03:15] [TRT] [V] Sorted table of all evaluated tactics:
[11/30/2026-11:03:15] [TRT] [V] tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, tunable_parameter
[11/30/2026-11:03:15] [TRT] [V]    4, 0.0126784, 1.00000, 0.84378, sm80_xmma_gemm_tn_n_tilesize32x32x64, 0x2c80ce2f5c4a6,
[11/30/2026-11:03:15] [TRT] [V]   34, 0.0130784, 1.03155, 0.92579, sm86_xmma_gemm_tn_n_tilesize64x64x64, 0x650de5b566787, split_k=2
[11/30/2026-11:03:15] [TRT] [V] The selected tactic is (tactic hash, cost(in ms)):0x2c80ce2f5c4a6, 0.0126784
"""  # noqa: E501 - the builder's own line

CLASSIC = """\
=============== Computing costs for stem + stem_act
*************** Autotuning format combination: Half(3072,1024,32,1) -> Half(16384,1024,32,1) ***************
--------------- Timing Runner: stem + stem_act (CaskConvolution[0x80000009])
Tactic Name: sm75_made_up_fprop_nchw_tilesize64x64x8 Tactic: 0x00000000000000a1 Time: 0.0125
Tactic Name: sm75_made_up_fprop_nchw_tilesize64x64x8 Tactic: 0x00000000000000a2 Time: 0.0115
Tactic Name: sm75_made_up_fprop_nchw_tilesize32x32x8 Tactic: 0x00000000000000a3 Time: 0.0204
stem + stem_act (CaskConvolution[0x80000009]) profiling completed in 0.05 seconds. Fastest Tactic: 0x00000000000000a2 Time: 0.0115
Skipping CaskFlattenConvolution: No valid tactics for stem + stem_act
>>>>>>>>>>>>>>> Chose Runner Type: CaskConvolution Tactic: 0x00000000000000a2
*************** Autotuning format combination: Half(1024,1:8,32,1) -> Half(2048,1:8,64,2) {key: 0x00112233445566778899AABBCCDDEEFF} ***************
--------------- Timing Runner: stem + stem_act (CaskConvolution[0x80000009])
Tactic Name: sm75_made_up_fprop_nhwc_tilesize128x64x32 Tactic: 0x00000000000000b1 Time: 0.0061
stem + stem_act (CaskConvolution[0x80000009]) profiling completed in 0.02 seconds. Fastest Tactic: 0x00000000000000b1 Time: 0.0061
>>>>>>>>>>>>>>> Chose Runner Type: CaskConvolution Tactic: 0x00000000000000b1
=============== Computing costs for (Unnamed Layer* 3) [PluginV3_Made]
*************** Autotuning format combination: Float((* (# 1 (SHAPE in)) 4),4,1) -> Float(E0,4,1) where E0=(* (# 1 (SHAPE in)) 4) {key: None} ***************
--------------- Timing Runner: (Unnamed Layer* 3) [PluginV3_Made] (PluginV3[0x80000049])
Tactic: 0x0000000000000001 Time: 1.5
Tactic: 0x0000000000000002 Time: 0.75
(Unnamed Layer* 3) [PluginV3_Made] (PluginV3[0x80000049]) profiling completed in 0.1 seconds. Fastest Tactic: 0x0000000000000002 Time: 0.75
>>>>>>>>>>>>>>> Chose Runner Type: PluginV3 Tactic: 0x0000000000000002
=============== Computing reformatting costs for available format set
*************** Autotuning Reformat: Half(3072,1024,32,1) -> Half(1024,1:8,32,1) ***************
--------------- Timing Runner: Optimizer Reformat(image -> <out>) (Reformat[0x80000006])
Tactic: 0x00000000000003e8 Time: 0.0041
Tactic: 0x0000000000000000 Time: 0.0032
Optimizer Reformat(image -> <out>) (Reformat[0x80000006]) profiling completed in 0.01 seconds. Fastest Tactic: 0x0000000000000000 Time: 0.0032
=============== Computing costs for stem + stem_act [profile 1]
stem + stem_act [profile 1] [Half(3072,1024,32,1) -> Half(16384,1024,32,1)] got cached result: CaskConvolution, tactic 0x00000000000000a2, 0.0115 ms
=============== Computing costs for {ForeignNode[head.weight...head]}
*************** Autotuning format combination: Half(64,1) -> Half(10,1) ***************
--------------- Timing Runner: {ForeignNode[head.weight...head]} (Myelin[0x80000023])
 (foreignNode) Autotuning op head: [ONNX Layer: head][ONNX Layer: head_act]
 (foreignNode) Sorted table of all evaluated tactics:
 (foreignNode) tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, tunable_parameter, conv_w2c_input_fold
 (foreignNode)    7, 0.0100000, 1.00000, 0.90000, sm80_made_up_gemm_tilesize32x32x8, 0x49175fa8b00a3, , 0
 (foreignNode)    2, 0.0105000, 1.05000, 0.80000, sm80_made_up_gemm_tilesize32x32x8, 0x1b0b0b0b0b0b0, , 0
 (foreignNode) Autotuning op head: [ONNX Layer: head_2]
 (foreignNode) tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, tunable_parameter
 (foreignNode)    1, 0.0200000, 1.00000, 0.90000, sm80_made_up_gemm_tilesize64x32x8, 0x3b0b0b0b0b0b0,
Tactic: 0x0000000000000000 Time: 0.012
{ForeignNode[head.weight...head]} (Myelin[0x80000023]) profiling completed in 0.3 seconds. Fastest Tactic: 0x0000000000000000 Time: 0.012
>>>>>>>>>>>>>>> Chose Runner Type: Myelin Tactic: 0x0000000000000000
*************** Autotuning format combination: Half(8,1:8) -> Half(2,1:8) ***************
--------------- Timing Runner: {ForeignNode[head.weight...head]} (Myelin[0x80000023])
UNSUPPORTED_STATE: Skipping tactic 0 due to insufficient memory on requested size of 2688 detected for tactic 0x0000000000000000.
{ForeignNode[head.weight...head]} (Myelin[0x80000023]) profiling completed in 1.0 seconds. Fastest Tactic: 0xd15ea5edd15ea5ed Time: inf
"""  # noqa: E501 - the builder's own lines
"""Both tuners in the grammar of TensorRT 10.16, with names and numbers of our own.

Read off NVIDIA/trt-samples-for-hackathon-cn at 353a4d73: cookbook/04-Feature/ProfilingVerbosity,
05-Plugin/Tactic+TimingCache and 07-Tool/trtexec/result-02.
"""
