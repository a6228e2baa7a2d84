"""One model file into another: precision first, then CBR nodes; and a record of what was done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.errors import UsageError
from trtplug.model.precision import PrecisionChange, change_precision
from trtplug.model.precision_rules import Island
from trtplug.model.save import joined, save_model
from trtplug.model.validate import check_parts
from trtplug.rewrite.run import rewrite_model
from trtplug.tensor import Sizes

if TYPE_CHECKING:
    from pathlib import Path

    from trtplug.model.load import Model
    from trtplug.model.precision_options import PrecisionOptions

SCHEMA = "trtplug.rewrite/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnchangedConv:
    """A convolution that got no CBR node."""

    conv: str
    """Label: the node's name, or its first output where it has none."""
    reason: str
    """A reason code, such as `dynamic_weight`."""
    node: str
    """Label of the node that is in the way."""
    sentence: str
    """The reason, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualityCheck:
    """Both files, run in ONNX Runtime on equal random inputs; figures are of the worst output."""

    equal: bool
    """Whether every output of every run is within the limit."""
    runs: int
    limit: str
    """Such as `difference at most 1e-05`."""
    output: str
    """The output that is furthest off."""
    sizes: Mapping[str, Sizes]
    """Input -> its sizes in that run."""
    seed: int
    problem: str
    """Why the two cannot be compared, such as another shape; empty where they can."""
    max_abs: float | None
    """Largest |difference|; None, as the next two, where there is a problem."""
    max_relative: float | None
    """Largest |difference| over max(1, largest |reference|)."""
    cosine: float | None
    """Cosine similarity, -1 to 1."""
    new_nonfinite: int
    """NaN and infinite values where the original has finite ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteResult:
    """What `trtplug rewrite` did: the document behind `--format json`."""

    schema: str
    model: str
    """File name of the original."""
    sha256: str
    """Of the original."""
    output: str
    """Path of the file that was written."""
    precision: str
    """`keep`, `fp16` or `bf16`."""
    converted: int
    """Nodes that compute in `precision`; 0 with `keep`."""
    float32: tuple[Island, ...]
    """Nodes that stay in float32, with the reason."""
    sites: tuple[str, ...]
    """Labels of the convolutions that became CBR nodes."""
    pairs: tuple[str, ...]
    """Those of `sites` that share a CBRPair node, such as `dw+pw`."""
    unchanged: tuple[UnchangedConv, ...]
    nodes_before: int
    nodes_after: int
    notices: tuple[str, ...]
    """What the user should know, one sentence each."""
    check: EqualityCheck | None = None
    """None where the two were not compared."""


def rewrite_file(
    model: Model,
    output: Path,
    *,
    sites: bool = True,
    pairs: bool = False,
    precision: PrecisionOptions,
    fold_overridable: bool | None = None,
) -> RewriteResult:
    """Writes a model with CBR nodes at its sites, in another precision if asked.

    Args:
        model: loaded and validated; never changed.
        output: file to write.
        sites: whether convolutions become CBR nodes.
        pairs: whether a depthwise site and its pointwise one share a node.
        precision: type to compute in.
        fold_overridable: see `find_sites`.

    Raises:
        UsageError: options that contradict each other, or `output` is the model itself.
        PrecisionError: the model cannot be given that precision.
        NodeInvalidError: a convolution that contradicts itself.
        RewriteInvalidError: ONNX's checker refuses the result; nothing is written.
        OutputError: `output` cannot be written.
    """
    _refuse(model, output, sites, pairs, precision)
    change = _change(model, precision)
    made = model if change is None else joined(change.parts, model)
    only = None if sites else ()
    result = rewrite_model(made, fold_overridable=fold_overridable, only=only, pairs=pairs)
    check_parts(result.parts, output)
    save_model(result.parts, output)
    return RewriteResult(
        schema=SCHEMA,
        model=model.path.name,
        sha256=model.sha256,
        output=str(output),
        precision=precision.target,
        converted=0 if change is None else change.converted,
        float32=() if change is None else tuple(change.islands),
        sites=tuple(site.conv for site in result.sites),
        pairs=tuple(pair.label for pair in result.pairs),
        unchanged=tuple(
            UnchangedConv(
                conv=m.conv, reason=m.reason.value, node=m.node, sentence=m.reason.sentence
            )
            for m in result.near_misses
        ),
        nodes_before=len(made.proto.graph.node),
        nodes_after=len(result.parts.nodes),
        notices=result.notices,
    )


def _refuse(
    model: Model, output: Path, sites: bool, pairs: bool, precision: PrecisionOptions
) -> None:
    if output.exists() and output.samefile(model.path):
        raise UsageError(f"{output} is the model itself", "choose another --output")
    if precision.target == "keep" and (precision.keep_fp32 or precision.io != "keep"):
        problem = "--keep-fp32 and --io-precision mean nothing with --precision keep"
        raise UsageError(problem, "add --precision fp16")
    if pairs and not sites:
        raise UsageError("--pairs means nothing with --no-sites", "leave out one of them")


def _change(model: Model, precision: PrecisionOptions) -> PrecisionChange | None:
    if precision.target == "keep":
        return None
    return change_precision(model, precision.target, io=precision.io, keep_fp32=precision.keep_fp32)
