"""What is shown above the layers: the model, the target, the engine, and what a bound is.

Shared by the renderers, as are the rows; every name is visible, nothing is escaped yet.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from trtplug.backends.trt.trial import RAN
from trtplug.report.rows import FIRST_RUN, NOT_REPORTED, dtype_word, has_times, total_bounds
from trtplug.report.words import format_bytes, format_dims, format_flops, visible

if TYPE_CHECKING:
    from trtplug.report.data import (
        Report,
        ReportChoice,
        ReportGpu,
        ReportShape,
        ReportSite,
        ReportTimingCache,
    )

OUTCOMES = {
    "plugin": "plugin",
    "native_fused": "fused into one layer",
    "native_unfused": "split over layers",
    "unknown": "in no layer",
}


def heading_facts(report: Report) -> tuple[tuple[str, str], ...]:
    """Label and value, in the order in which they are shown."""
    model, engine = report.model, report.engine
    gpus = ", ".join(gpu_words(g) for g in report.gpus) or "no profile of such a GPU"
    parts = [f"opset {model.opset}", plural(model.nodes, "node")]
    if model.parameters is not None:
        parts.append(plural(model.parameters, "parameter"))
    return (
        ("model", f"{visible(model.file)} ({', '.join(parts)})"),
        ("target", f"{report.target} (builder {report.backend_version})"),
        ("GPUs", gpus),
        ("precision", model.precision),
        *((f"input {visible(s.name)}", shape_words(s)) for s in report.shapes),
        ("engine", f"{visible(engine.file)} ({format_bytes(engine.bytes)})"),
        *((("timing cache", cache_words(report.timing_cache)),) if report.timing_cache else ()),
    )


def cache_words(cache: ReportTimingCache) -> str:
    """Such as `partial: 12 hits, 3 misses, 1 changed winner`, or why it was rejected."""
    counts = [
        "hits unknown" if cache.hits is None else plural(cache.hits, "hit"),
        plural(cache.misses, "miss"),
        *([plural(cache.changed, "changed winner")] if cache.changed else []),
        *([plural(cache.lost, "lost key")] if cache.lost else []),
    ]
    reason = f" ({visible(cache.reason)})" if cache.reason else ""
    return f"{cache.word}{reason}: {', '.join(counts)}"


def gpu_words(gpu: ReportGpu) -> str:
    """Such as `GeForce RTX 4090 (rtx4090)`."""
    return f"{visible(gpu.gpu)} ({visible(gpu.profile)})"


def shape_words(shape: ReportShape) -> str:
    """The sizes of one input: three of them, or one where all are equal."""
    dtype = dtype_word(shape.dtype)
    sizes = [format_dims(s) for s in (shape.min, shape.opt, shape.max)]
    if len(set(sizes)) == 1:
        return f"{sizes[0]} {dtype}"
    low, opt, high = sizes
    return f"{low} to {high}, opt {opt}, {dtype}"


def bound_note(report: Report) -> str:
    """What a bound is, and what it is not."""
    if has_times(report):
        ran = "Times were measured where they are given."
    elif _builder_timed(report):
        ran = "The builder timed candidates, each kernel alone; layers and engine were not timed."
    elif any(a.startswith(RAN) for a in report.assumptions):
        ran = "No layer was timed."
    else:
        ran = "Nothing was run on a GPU."
    return (
        "Bounds are lower bounds, not times: the larger of bytes / memory bandwidth and "
        f"operations / peak of the GPU, at the opt shapes. {ran}"
    )


def _builder_timed(report: Report) -> bool:
    tables = [layer.candidates for layer in report.layers]
    tables += [table.candidates for table in report.unjoined_candidates]
    return any(c.timed_by == "builder" for candidates in tables for c in candidates)


def total_words(report: Report) -> str:
    """The sums over all layers, and what is missing from them."""
    totals = report.totals
    bounds = "; ".join(
        f"{bound.us} µs on {visible(gpu.gpu)}"
        for gpu, bound in zip(report.gpus, total_bounds(report), strict=True)
        if bound.value_us is not None
    )
    known = [plural(totals.layers, "layer"), f"{format_flops(totals.flops)}FLOP"]
    known.append(f"{format_bytes(totals.bytes)} moved")
    if bounds:
        known.append(f"lower bound {bounds}")
    missing = [
        f"{what} not known for {plural(count, 'layer')}"
        for count, what in (
            (totals.layers_without_flops, "FLOPs"),
            (totals.layers_without_bytes, "bytes"),
        )
        if count
    ]
    return ", ".join([*known, *missing])


def kernel_counts(report: Report) -> str:
    """How many kernels are known, and how many are not."""
    totals = report.totals
    counted = totals.kernels_chosen + totals.kernels_at_first_run + totals.kernels_unknown
    counts = (
        (totals.kernels_chosen, "named by the builder"),
        (totals.kernels_at_first_run, FIRST_RUN),
        (totals.kernels_unknown, NOT_REPORTED),
        (totals.layers - counted, "needing none"),
    )
    return ", ".join(f"{count:,} {words}" for count, words in counts if count) or "none"


def added_counts(report: Report) -> str:
    """How many layers the builder added, by what they do; reformats and casts even if none."""
    counts = Counter(reformat=0, cast=0)
    counts.update(layer.added for layer in report.layers if layer.added)
    return ", ".join(plural(count, word) for word, count in counts.items())


def site_words(site: ReportSite) -> str:
    """Such as `Conv 3x3 /2x2 + Relu, 16 groups`."""
    strides = "" if set(site.strides) <= {1} else f" /{format_dims(site.strides)}"
    activation = "" if site.activation == "none" else f" + {visible(site.activation)}"
    residual = "" if site.residual == "none" else ", residual " + site.residual.replace("_", " ")
    group = f", {site.group:,} groups" if site.group > 1 else ""
    return f"Conv {format_dims(site.kernel_shape)}{strides}{activation}{residual}{group}"


def choice_words(choice: ReportChoice) -> str:
    """Such as `plugin igemm_64x64x32_s4`, or what was offered where the tactic is not known."""
    if choice.choice == "native":
        return "native"
    tactic = visible(choice.tactic or f"one of {', '.join(choice.tactics)}")
    pair = f", in pair {visible(choice.pair)}" if choice.pair else ""
    return f"plugin {tactic}{pair}"


def plural(count: int, word: str) -> str:
    """`1 layer`, `1,234 layers`."""
    many = {"copy": "copies", "miss": "misses"}.get(word, word + "s")
    return f"{count:,} {word if count == 1 else many}"
