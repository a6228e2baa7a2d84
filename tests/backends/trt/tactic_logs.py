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
