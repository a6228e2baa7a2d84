"""Reports built by hand: a small one with hostile names, and a chain of any length."""

from __future__ import annotations

from trtplug.report.data import (
    SCHEMA,
    Report,
    ReportCandidate,
    ReportChoice,
    ReportEngine,
    ReportGpu,
    ReportIsland,
    ReportLayer,
    ReportModel,
    ReportNearMiss,
    ReportShape,
    ReportSite,
    ReportTensor,
    ReportTotals,
    ReportTypeShare,
)

SCRIPT = "<script>alert(1)</script>"
HOSTILE = (
    SCRIPT,
    "a|b",
    "`x`",
    "two\nlines",
    "]]>",
    "abc\u202etxt.exe",
    "n" * 500,
    "</script><!--<script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }}{% raw %}",
    "[bold red]x[/bold red] @someone #1 \\|",
    "",
)
GPUS = (
    ReportGpu(profile="rtx4090", gpu="GeForce RTX 4090", sm="sm_89"),
    ReportGpu(profile="l4", gpu="L4", sm="sm_89"),
)
PEAKS = {"rtx4090": (1008e9, 82.6e12), "l4": (300e9, 30.3e12)}
"""Bytes a second, and floating-point operations a second: fp32, for the samples only."""

BYTES = {"Float": 4, "Half": 2, "Int64": 8}
NHWC = "(NHWC) Channel major format"
LINEAR = "(Linear) Row major linear format"


def tensor(name: str, dims: tuple[int, ...], dtype: str = "Float", layout: str = NHWC):
    """A tensor whose last two sizes are dynamic where it has four axes and an even batch of 1."""
    size = BYTES[dtype]
    for d in dims:
        size *= d
    dynamic = (*dims[:2], -1, -1) if len(dims) == 4 and dims[0] == 1 and dims[2] > 1 else dims
    return ReportTensor(
        name=name, dims=dynamic, dims_at_opt=dims, dtype=dtype, format=layout, bytes=size
    )


def layer(index: int, name: str, type_: str, **fields) -> ReportLayer:
    """A layer whose figures follow from its tensors and `flops`."""
    given = {
        "onnx_nodes": (),
        "inputs": (),
        "constants": (),
        "outputs": (),
        "kernel": None,
        "kernel_status": "unknown",
        "candidates": (),
        "margin": None,
        "near_tie": None,
        "selected_by": None,
        "cache_key": None,
        "time_us": None,
        "flops": 0,
        "added": None,
    } | fields
    tensors = (*given["inputs"], *given["constants"], *given["outputs"])
    size = sum(t.bytes for t in tensors)
    flops = given["flops"]
    bound, by = {}, {}
    for profile, (bandwidth, peak) in PEAKS.items() if tensors and flops is not None else ():
        memory_us, vector_us = size / bandwidth * 1e6, flops / peak * 1e6
        bound[profile] = max(memory_us, vector_us)
        by[profile] = "memory" if memory_us >= vector_us else "vector"
    return ReportLayer(
        index=index,
        name=name,
        type=type_,
        bytes=size if tensors else None,
        intensity=flops / size if size and flops is not None else None,
        bound_us=bound,
        bound_by=by,
        **given,
    )


def small_report() -> Report:
    """Every kernel status, every addition, every outcome, and each hostile name somewhere."""
    x = tensor("x", (1, 3, 8, 8), layout=LINEAR)
    moved = tensor("x_nhwc", (1, 3, 8, 8))
    a = tensor(SCRIPT, (1, 16, 8, 8))
    b = tensor("a|b", (1, 16, 8, 8), dtype="Half")
    y = tensor("y", (1, 16, 8, 8), dtype="Half", layout=LINEAR)
    layers = (
        layer(0, "__mye1_myl0_0", "shape_call"),
        layer(
            1,
            "__myl_Move_myl0_1",
            "kgen",
            inputs=(x,),
            outputs=(moved,),
            kernel="__myl_Move_0xa2da44ecc9169433fc26b35f61786c6c",
            kernel_status="chosen",
            added="reformat",
        ),
        layer(
            2,
            "__myl_CorrMulAdd_myl0_2",
            "runtime_fusion",
            onnx_nodes=(SCRIPT, "a|b", "`x`"),
            inputs=(moved,),
            constants=(tensor("w", (16, 3, 3, 3)),),
            outputs=(a,),
            kernel_status="chosen_at_first_run",
            candidates=(
                ReportCandidate(
                    kernel=SCRIPT,
                    time_us=3.25,
                    ratio=1.0,
                    tactic_hash="0x8047623b83d18058",
                    chosen=True,
                    timed_by="builder",
                ),
                ReportCandidate(
                    kernel="a|b",
                    time_us=3.35,
                    ratio=3.35 / 3.25,
                    tactic_hash="0x1",
                    chosen=False,
                    timed_by="builder",
                ),
                ReportCandidate(
                    kernel="sm80_xmma_fprop",
                    time_us=None,
                    ratio=None,
                    tactic_hash=None,
                    chosen=False,
                    timed_by=None,
                ),
            ),
            flops=2 * 8 * 8 * 16 * 27,
            margin=3.35 / 3.25 - 1,
            near_tie=True,
            selected_by="builder",
            cache_key="0x1814870c44ff0f8574df6e3dda04cbd7",
        ),
        layer(3, "cast", "kgen", inputs=(a,), outputs=(b,), kernel_status="unknown", added="cast"),
        layer(
            4,
            HOSTILE[10],
            "gemm",
            onnx_nodes=HOSTILE[3:],
            inputs=(b,),
            outputs=(y,),
            kernel="k|`<b>",
            kernel_status="chosen",
            flops=123_456_789,
        ),
        layer(5, "", "kgen", inputs=(y,), outputs=(y,), added="copy", flops=None),
    )
    sites = (
        make_site(SCRIPT, (SCRIPT, "a|b"), "native_fused", ("__myl_CorrMulAdd_myl0_2",)),
        make_site(
            "two\nlines",
            ("two\nlines", "`x`"),
            "native_unfused",
            (HOSTILE[10], "cast"),
            make_choice(reason=HOSTILE[9]),
        ),
        make_site(
            "`x`",
            ("`x`",),
            "plugin",
            ("__myl_CorrMulAdd_myl0_2",),
            make_choice(
                choice="plugin",
                reason=SCRIPT,
                pair="a|b+`x`",
                tactics=("igemm_64x64x32_s4", "a|b"),
                kit_sha256="ee" * 32,
                reformats_before=("__myl_Move_myl0_1", "not a layer"),
            ),
        ),
    )
    misses = (
        ReportNearMiss(conv="]]>", reason="output-also-used", node="a|b", layers=(HOSTILE[10],)),
        ReportNearMiss(conv="`x`", reason="output-also-used", node="", layers=()),
        ReportNearMiss(conv="", reason="no-activation", node=SCRIPT, layers=("not a layer",)),
    )
    labels = dict.fromkeys(HOSTILE, "Conv") | {"folded": "Constant"}
    return make_report(
        "<b>det|x</b>.onnx",
        layers,
        sites,
        misses,
        labels,
        ("Padding is not counted.",),
        HOSTILE[:4],
        tuple(ReportIsland(node=n, op_type="Softmax", reason=f"why {n}") for n in HOSTILE[:3]),
    )


def make_choice(**fields) -> ReportChoice:
    """Native by default."""
    given = {
        "choice": "native",
        "reason": "nothing measured here",
        "pair": None,
        "tactics": (),
        "tactic": None,
        "kernel_sha256": None,
        "kit_sha256": None,
        "reformats_before": (),
        "reformats_after": (),
    }
    return ReportChoice(**given | fields)


def make_site(conv, nodes, outcome, layers, choice=None) -> ReportSite:
    why = "" if outcome == "native_fused" else f"{len(layers)} layers hold its nodes"
    return ReportSite(
        conv=conv,
        nodes=nodes,
        activation="Relu",
        residual="none",
        kernel_shape=(3, 3),
        strides=(1, 1),
        group=1,
        flops=55_296,
        outcome=outcome,
        layers=layers,
        why=why,
        choice=choice,
    )


def make_report(file, layers, sites, misses, labels, assumptions, warnings, islands=()) -> Report:
    return Report(
        schema=SCHEMA,
        tool_version="0.1.0",
        model=ReportModel(
            file=file,
            sha256="0f" * 32,
            ir_version=8,
            opset=12,
            producer="paddle2onnx",
            nodes=len(labels),
            parameters=1_234_567,
            precision="keep",
        ),
        target="rtx-1.7:sm_89",
        backend="rtx",
        backend_version="1.7.1.116",
        gpus=GPUS,
        shapes=(
            ReportShape(
                name="x",
                dtype="float",
                min=(1, 3, 320, 320),
                opt=(1, 3, 640, 640),
                max=(1, 3, 960, 960),
            ),
        ),
        engine=ReportEngine(
            file="det.rtx-1.7-sm_89.engine",
            bytes=9_712_345,
            sha256="ab" * 32,
            canonical_sha256="cd" * 32,
        ),
        flags={"profiling_verbosity": "DETAILED", "builder threads": "1"},
        environment={"python": "3.11.2", "platform": "linux x86_64", "onnx": "1.23.2"},
        layers=layers,
        unjoined_candidates=(),
        timing_cache=None,
        sites=sites,
        near_misses=misses,
        islands=islands,
        onnx_nodes=labels,
        totals=totals_of(layers, sites, misses),
        assumptions=assumptions,
        warnings=warnings,
    )


def _sum_bounds(layers) -> dict[str, float]:
    return {p: sum(x.bound_us.get(p, 0.0) for x in layers) for p in PEAKS}


def totals_of(layers, sites, misses) -> ReportTotals:
    """The sums that `layers`, `sites` and `misses` have."""
    types = sorted({x.type for x in layers})
    dtypes = [x.outputs[0].dtype for x in layers if x.outputs]
    return ReportTotals(
        layers=len(layers),
        flops=sum(x.flops or 0 for x in layers),
        bytes=sum(x.bytes or 0 for x in layers),
        layers_without_flops=sum(x.flops is None for x in layers),
        layers_without_bytes=sum(x.bytes is None for x in layers),
        kernels_chosen=sum(x.kernel_status == "chosen" for x in layers),
        kernels_at_first_run=sum(x.kernel_status == "chosen_at_first_run" for x in layers),
        kernels_unknown=sum(x.kernel_status == "unknown" for x in layers),
        added_reformats=sum(x.added == "reformat" for x in layers),
        added_casts=sum(x.added == "cast" for x in layers),
        added_copies=sum(x.added == "copy" for x in layers),
        sites=len(sites),
        sites_fused=sum(s.outcome == "native_fused" for s in sites),
        near_misses=len(misses),
        bound_us=_sum_bounds(layers),
        by_type=tuple(_type_share(t, [x for x in layers if x.type == t]) for t in types),
        layers_by_dtype={d: dtypes.count(d) for d in sorted(set(dtypes))},
    )


def _type_share(type_, layers) -> ReportTypeShare:
    return ReportTypeShare(
        type=type_,
        layers=len(layers),
        flops=sum(x.flops or 0 for x in layers),
        bytes=sum(x.bytes or 0 for x in layers),
        bound_us=_sum_bounds(layers),
    )


def chain_report(length: int) -> Report:
    """A chain of convolutions, for growth and for big pages."""
    layers, before = [], tensor("x", (1, 16, 32, 32))
    for i in range(length):
        after = tensor(f"t{i}", (1, 16, 32, 32))
        layers.append(
            layer(
                i,
                f"__myl_Corr_myl0_{i}",
                "correlation",
                onnx_nodes=(f"conv{i}", f"relu{i}"),
                inputs=(before,),
                constants=(tensor(f"w{i}", (16, 16, 3, 3)),),
                outputs=(after,),
                kernel_status="chosen_at_first_run",
                flops=2 * 32 * 32 * 16 * 144,
            )
        )
        before = after
    labels = {f"{op.lower()}{i}": op for i in range(length) for op in ("Conv", "Relu")}
    sites = tuple(
        make_site(f"conv{i}", (f"conv{i}", f"relu{i}"), "native_fused", (f"__myl_Corr_myl0_{i}",))
        for i in range(length)
    )
    return make_report("chain.onnx", tuple(layers), sites, (), labels, (), ())
