"""Reports built by hand: a small one with hostile names, a realistic one, a long chain."""

from __future__ import annotations

from dataclasses import replace

from trtplug.report.report import (
    SCHEMA,
    Report,
    ReportCandidate,
    ReportEngine,
    ReportGpu,
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
                ReportCandidate(kernel=SCRIPT, time_us=3.25, tactic_hash="0x8047623b83d18058"),
                ReportCandidate(kernel="sm80_xmma_fprop", time_us=None, tactic_hash=None),
            ),
            flops=2 * 8 * 8 * 16 * 27,
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
        _site(SCRIPT, (SCRIPT, "a|b"), "native_fused", ("__myl_CorrMulAdd_myl0_2",)),
        _site("two\nlines", ("two\nlines", "`x`"), "native_unfused", (HOSTILE[10], "cast")),
    )
    misses = (
        ReportNearMiss(conv="]]>", reason="output-also-used", node="a|b", layers=(HOSTILE[10],)),
        ReportNearMiss(conv="`x`", reason="output-also-used", node="", layers=()),
        ReportNearMiss(conv="", reason="no-activation", node=SCRIPT, layers=("not a layer",)),
    )
    labels = dict.fromkeys(HOSTILE, "Conv") | {"folded": "Constant"}
    return _report(
        "<b>det|x</b>.onnx",
        layers,
        sites,
        misses,
        labels,
        ("Padding is not counted.",),
        HOSTILE[:4],
    )


def _site(conv, nodes, outcome, layers) -> ReportSite:
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
    )


def _report(file, layers, sites, misses, labels, assumptions, warnings) -> Report:
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
        sites=sites,
        near_misses=misses,
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
        _site(f"conv{i}", (f"conv{i}", f"relu{i}"), "native_fused", (f"__myl_Corr_myl0_{i}",))
        for i in range(length)
    )
    return _report("chain.onnx", tuple(layers), sites, (), labels, (), ())


class _Detector:
    """Writes down a detector like PP-OCRv4's, layer by layer."""

    def __init__(self) -> None:
        self.layers, self.labels, self.sites, self.misses = [], {}, [], []
        self.counts = {}

    def node(self, op: str) -> str:
        number = self.counts[op] = self.counts.get(op, -1) + 1
        label = f"p2o.{op}.{number}"
        self.labels[label] = op
        return label

    def add(self, words: str, type_: str, nodes, inputs, constants, output, **more):
        i = len(self.layers)
        name = f"__myl_{words}_myl0_{i}"
        if type_ == "kgen":
            more |= {"kernel": f"__myl_{words}_0x{hash_like(i)}", "kernel_status": "chosen"}
        elif type_ == "correlation":
            more["kernel_status"] = "chosen_at_first_run"
        outputs = (output,)
        self.layers.append(
            layer(
                i,
                name,
                type_,
                onnx_nodes=tuple(nodes),
                inputs=tuple(inputs),
                constants=tuple(constants),
                outputs=outputs,
                **more,
            )
        )
        return output, name

    def conv(self, source, channels, kernel=1, stride=1, depthwise=False, activation=True):
        _, c, h, w = source.dims_at_opt
        out_h, out_w = h // stride, w // stride
        group = channels if depthwise else 1
        i = len(self.layers)
        weight = tensor(f"__mye{27000 + i}dconst_myl0", (channels, c // group, kernel, kernel))
        bias = tensor(f"__mye{28000 + i}_dconst_myl0", (1, channels, 1, 1))
        out = tensor(f"__myln_k_arg__bb1_{128 + i}_myl0", (1, channels, out_h, out_w))
        ops = ("Conv", "BatchNormalization", *(("Add", "Clip", "Mul", "Div") if activation else ()))
        nodes = [self.node(op) for op in ops]
        words = "CorrMulAddAddMaxMinMulMul" if activation else "CorrMulAdd"
        flops = 2 * out_h * out_w * channels * (c // group) * kernel * kernel
        kind = "correlation" if len(self.layers) % 2 else "runtime_fusion"
        out, name = self.add(words, kind, nodes, [source], [weight, bias], out, flops=flops)
        self.judge(nodes, name, kernel, stride, group, flops, activation)
        return out

    def judge(self, nodes, name, kernel, stride, group, flops, activation):
        if not activation:
            self.misses.append(
                ReportNearMiss(conv=nodes[0], reason="no-activation", node=nodes[1], layers=(name,))
            )
            return
        split = len(self.sites) % 9 == 5
        self.sites.append(
            replace(
                _site(
                    nodes[0],
                    tuple(nodes),
                    "native_unfused" if split else "native_fused",
                    (name, self.layers[-2].name) if split else (name,),
                ),
                activation="HardSwish",
                kernel_shape=(kernel, kernel),
                strides=(stride, stride),
                group=group,
                flops=flops,
            )
        )

    def pointwise(self, words, sources, op="Add", dims=None, added=None, **formats):
        size = dims or sources[0].dims_at_opt
        out = tensor(f"__myln_k_arg__bb1_{128 + len(self.layers)}_myl0", size, **formats)
        nodes = [] if added else [self.node(op)]
        flops = 0 if added else sum(1 for _ in sources) * (out.bytes // 4)
        return self.add(words, "kgen", nodes, sources, (), out, flops=flops, added=added)[0]


def hash_like(number: int) -> str:
    """32 hexadecimal digits that look like a digest."""
    return f"{(number + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC834 & (2**128 - 1):032x}"


def _backbone(net, t):
    """Depthwise and pointwise convolutions; the tensors that the neck taps."""
    taps = []
    for channels, repeats in ((32, 1), (48, 2), (96, 2), (192, 5), (384, 3)):
        for i in range(repeats):
            t = net.conv(t, t.dims_at_opt[1], 5 if channels > 96 else 3, 2 if i == 0 else 1, True)
            t = net.conv(t, channels)
            if channels == 384:
                t = _squeeze(net, t, channels // 4, "MulAddMinMaxMul")
        taps.append(t)
    return taps


def _squeeze(net, t, channels, words):
    """Squeeze and excitation: a gate from the mean, times the tensor."""
    pooled = net.pointwise("Mean", [t], "GlobalAveragePool", (*t.dims_at_opt[:2], 1, 1))
    gate = net.conv(net.conv(pooled, channels), t.dims_at_opt[1], activation=False)
    return net.pointwise(words, [t, gate], "Mul")


def _neck(net, taps):
    """A feature pyramid, top down."""
    sides = [net.conv(tap, 96, activation=False) for tap in taps]
    levels = [sides.pop()]
    while sides:
        side = sides.pop()
        up = net.pointwise("Resi", [levels[-1]], "Resize", side.dims_at_opt)
        levels.append(net.pointwise("MulAddMinMaxMulAddResiAdd", [up, side]))
    heads = []
    for level in levels:
        head = net.conv(level, 24, kernel=3, activation=False)
        head = _squeeze(net, head, 6, "MulAddMinMaxMulAdd")
        heads.append(net.pointwise("ResiConc", [head], "Resize", (1, 24, 160, 160)))
    return net.pointwise("Conc", heads, "Concat", (1, 96, 160, 160))


def _upscale(net, t, channels):
    batch, depth, height, width = t.dims_at_opt
    out = tensor(f"deconv{channels}.out", (batch, channels, height * 2, width * 2))
    weight = tensor(f"w{channels}", (depth, channels, 2, 2))
    flops = 2 * depth * channels * height * width * 4
    node = net.node("ConvTranspose")
    return net.add("Deco", "deconv", [node], [t], [weight], out, flops=flops)[0]


def realistic_report() -> Report:
    """82 layers with the names, types and sizes of PP-OCRv4's detector."""
    net = _Detector()
    x = tensor("x", (1, 3, 640, 640), layout=LINEAR)
    net.layers.append(layer(0, "__mye13475_0_myl0_0", "shape_call"))
    t = net.pointwise("Move", [x], dims=(1, 3, 640, 640), added="reformat")
    taps = _backbone(net, net.conv(t, 16, kernel=3, stride=2))
    t = net.conv(_neck(net, taps[1:]), 24, kernel=3)
    t = net.pointwise("Tran", [t], dims=(1, 24, 160, 160), added="copy")
    t = _upscale(net, _upscale(net, t, 24), 1)
    t = net.pointwise("Move", [t], dims=(1, 1, 640, 640), added="reformat", layout=LINEAR)
    out = tensor("sigmoid_0.tmp_0", (1, 1, 640, 640), layout=LINEAR)
    net.add("Sigm", "kgen", [net.node("Sigmoid")], [t], (), out, flops=640 * 640)
    net.labels |= {f"p2o.Constant.{i}": "Constant" for i in range(120)}
    notes = (
        "Sizes are taken at the opt shapes.",
        "Each input, constant and output is read or written once, from device memory; "
        "padding that a format adds is not counted.",
        "A multiply-add counts as 2 floating-point operations.",
    )
    return _report(
        "ch_PP-OCRv4_det_infer.onnx",
        tuple(net.layers),
        tuple(net.sites),
        tuple(net.misses),
        net.labels,
        notes,
        (),
    )
