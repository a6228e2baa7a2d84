"""A report with the names, types and sizes of a real model: PP-OCRv4's detector."""

from __future__ import annotations

from dataclasses import replace

from tests.report.samples import LINEAR, layer, make_report, make_site, tensor
from trtplug.report.data import Report, ReportNearMiss


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
                make_site(
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
    return make_report(
        "ch_PP-OCRv4_det_infer.onnx",
        tuple(net.layers),
        tuple(net.sites),
        tuple(net.misses),
        net.labels,
        notes,
        (),
    )
