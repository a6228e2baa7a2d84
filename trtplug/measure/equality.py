"""Whether two model files give the same outputs, run side by side on random inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.measure.accuracy import OutputAccuracy, compare_outputs
from trtplug.measure.reference import Reference, random_feeds
from trtplug.rewrite.file import EqualityCheck
from trtplug.tensor import Sizes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trtplug.tensor import ShapeRange, TensorSpec

EXACT = 1e-5
"""Largest |difference| over max(1, largest |reference|) that float32 rounding explains."""

ALIKE = {"fp16": 0.999, "bf16": 0.95}
"""Least cosine similarity with the original; bfloat16 has 8 significant bits, float16 has 11."""

SEEDS = (0, 1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run of both models."""

    sizes: Mapping[str, Sizes]
    seed: int
    outputs: tuple[OutputAccuracy, ...]


def compare_models(
    reference: Path,
    other: Path,
    inputs: Sequence[TensorSpec],
    shapes: Sequence[Mapping[str, Sizes]],
    *,
    seeds: Sequence[int] = SEEDS,
) -> tuple[Trial, ...]:
    """Runs both files at each shape with each seed; no graph is optimised by the runtime.

    Raises:
        BackendMissingError: ONNX Runtime is not installed.
        ReferenceFailedError: it cannot run one of the files.
    """
    first, second = Reference(reference), Reference(other)
    trials = []
    for sizes in shapes:
        for seed in seeds:
            feeds = random_feeds(inputs, sizes, seed)
            outputs = compare_outputs(first.run(feeds), second.run(feeds))
            trials.append(Trial(sizes=sizes, seed=seed, outputs=outputs))
    return tuple(trials)


def worst(trials: Sequence[Trial]) -> tuple[Trial, OutputAccuracy]:
    """The output that is furthest from its reference; what cannot be compared is the furthest."""

    def distance(pair: tuple[Trial, OutputAccuracy]) -> float:
        found = pair[1]
        broken = bool(found.problem) or found.new_nonfinite > 0 or found.max_relative is None
        return float("inf") if broken else float(found.max_relative or 0.0)

    return max(((t, o) for t in trials for o in t.outputs), key=distance)


def check_equality(
    reference: Path,
    other: Path,
    inputs: Sequence[TensorSpec],
    ranges: Sequence[ShapeRange],
    precision: str,
) -> EqualityCheck:
    """Compares two files at the min and the opt sizes of their inputs.

    Args:
        reference: the original model.
        other: that rewritten.
        inputs: of both.
        ranges: one for each input.
        precision: what `other` computes in: `keep` allows rounding of float32 alone (`EXACT`),
            `fp16` and `bf16` want a cosine similarity (`ALIKE`).

    Raises:
        BackendMissingError: ONNX Runtime is not installed.
        ReferenceFailedError: it cannot run one of the files.
    """
    shapes = [{r.name: r.min for r in ranges}, {r.name: r.opt for r in ranges}]
    distinct = [s for i, s in enumerate(shapes) if s not in shapes[:i]]
    trials = compare_models(reference, other, inputs, distinct)
    outputs = [o for t in trials for o in t.outputs]
    least = ALIKE.get(precision)
    trial, found = worst(trials)
    return EqualityCheck(
        equal=all(o.within(EXACT) if least is None else o.alike(least) for o in outputs),
        runs=len(trials),
        limit=f"difference at most {EXACT:g}" if least is None else f"cosine at least {least:g}",
        output=found.name,
        sizes=trial.sizes,
        seed=trial.seed,
        problem=found.problem,
        max_abs=found.max_abs,
        max_relative=found.max_relative,
        cosine=found.cosine,
        new_nonfinite=found.new_nonfinite,
    )
