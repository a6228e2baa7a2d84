"""What the two tuners print at VERBOSE.

Source: logs of TensorRT 10.16 on an H100 (NVIDIA/trt-samples-for-hackathon-cn, cookbook/04-Feature/
ProfilingVerbosity, 05-Plugin/Tactic+TimingCache, 07-Tool/trtexec/result-02), and for keys NVIDIA's
sampleEditableTimingCache (10.8) and TensorRT-RTX 1.7.1, which prints `{key: None}`. Not known: how
10.x and 11.x write the key of a combination of formats (here as the compiler's), whether a reformat
prints one (here not), and whether 11.x enterprise has changed any of it: no log of it is public.
"""

from __future__ import annotations

import math

from tensorrt.logger import Logger

HEADER = (
    "tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, "
    "tunable_parameter"
)
RUNNERS = {
    "CaskConvolution": 0x80000009,
    "CaskPooling": 0x8000002F,
    "Myelin": 0x80000023,
    "PluginV3": 0x80000049,
    "Reformat": 0x80000006,
}
_TYPES = {"FLOAT": "Float", "HALF": "Half", "BF16": "BFloat16", "INT32": "Int32", "INT64": "Int64"}


def formats(
    inputs: list[tuple[str, list[int]]], outputs: list[tuple[str, list[int]]], last: bool = False
) -> str:
    """Such as `Float(784,784,28,1) -> Half(3136,1:8,112,4)`.

    Args:
        inputs: type and sizes of each.
        outputs: the same.
        last: whether channels come last, eight together where they have 16 bits.
    """
    sides = (", ".join(_shown(*tensor, last) for tensor in side) for side in (inputs, outputs))
    return " -> ".join(sides)


def _shown(dtype: str, dims: list[int], last: bool) -> str:
    word = _TYPES.get(dtype, "Float")
    sizes = [str(n) if n >= 0 else f"(# {axis} (SHAPE x))" for axis, n in enumerate(dims)]
    if last and len(dims) == 4:
        _, channels, height, width = sizes
        one = "1:8" if word == "Half" else "1"
        strides = [_times(channels, height, width), one, _times(width, channels), channels]
    else:
        strides = [_times(*sizes[axis + 1 :]) for axis in range(len(sizes))]
    return f"{word}({','.join(strides)})"


def _times(*sizes: str) -> str:
    """A product; an expression as in 10.16 where a size is not known."""
    if all(size.isdecimal() for size in sizes):
        return str(math.prod(map(int, sizes)))
    return f"(* {' '.join(sizes)})"


class TunerLog:
    """Prints for one builder."""

    def __init__(self, logger: Logger, *, editable: bool) -> None:
        self._logger, self._editable = logger, editable

    def say(self, text: str) -> None:
        self._logger.log(Logger.VERBOSE, text)

    def computing(self, layer: str) -> None:
        self.say(f"=============== Computing costs for {layer}")

    def computing_reformats(self) -> None:
        self.say("=============== Computing reformatting costs for available format set")

    def classic(
        self,
        layer: str,
        runner: str,
        shown: str,
        rows: list[tuple[str, int, float]],
        key: str | None,
        between: object = None,
    ) -> None:
        """One combination of formats: rows of kernel (may be empty), tactic and milliseconds."""
        named = f" {{key: {key}}}" if self._editable and runner != "Reformat" else ""
        what = "Reformat" if runner == "Reformat" else "format combination"
        self.say(f"*************** Autotuning {what}: {shown}{named} ***************")
        who = f"{layer} ({runner}[0x{RUNNERS[runner]:08x}])"
        self.say(f"--------------- Timing Runner: {who}")
        if between is not None:
            between()
        for kernel, tactic, time_ms in rows:
            name = f"Tactic Name: {kernel} " if kernel else ""
            self.say(f"{name}Tactic: 0x{tactic:016x} Time: {time_ms:.6g}")
        _, best, time_ms = min(rows, key=lambda row: row[2])
        self.say(
            f"{who} profiling completed in 0.0123456 seconds. "
            f"Fastest Tactic: 0x{best:016x} Time: {time_ms:.6g}"
        )
        if runner == "CaskConvolution":
            self.say(f"Skipping CaskFlattenConvolution: No valid tactics for {layer}")
        if runner != "Reformat":
            self.say(f">>>>>>>>>>>>>>> Chose Runner Type: {runner} Tactic: 0x{best:016x}")

    def invalid(self, layer: str, runner: str, shown: str) -> None:
        """A combination that no tactic takes."""
        named = " {key: None}" if self._editable else ""
        self.say(f"*************** Autotuning format combination: {shown}{named} ***************")
        self.say(f"Skipping {runner}: No valid tactics for {layer}")

    def hit(self, layer: str, runner: str, shown: str, tactic: int, time_ms: float) -> None:
        self.say(
            f"{layer} [{shown}] got cached result: {runner}, tactic 0x{tactic:016x}, "
            f"{time_ms:.6g} ms"
        )

    def compiler(
        self, op: str, nodes: list[str], rows: list[tuple[str, int, float]], key: str, kept: bool
    ) -> None:
        """A table of the compiler, the fastest first; its key and its end where it is editable."""
        fastest = rows[0][2]
        names = "".join(f"[ONNX Layer: {n}]" for n in nodes)
        self._foreign(f"Autotuning op {op}{f'(key: {key})' if self._editable else ''}: {names}")
        self._foreign("Sorted table of all evaluated tactics:")
        self._foreign(HEADER)
        for number, (kernel, tactic, cost) in enumerate(rows):
            ratio = cost / fastest
            self._foreign(f"{number:4}, {cost:.7f}, {ratio:.5f}, 0.50000, {kernel}, 0x{tactic:x},")
        if not self._editable:
            return
        best = rows[0][1]
        self._foreign(
            f"The selected tactic is (tactic hash, cost(in ms)):0x{best:x},  {fastest:.7f}"
        )
        if kept:
            self._foreign(f"Writing the best tactic (0x{best:x}) to cache")

    def _foreign(self, text: str) -> None:
        self.say(f" (foreignNode) {text}")
