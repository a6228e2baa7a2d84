"""The engine's bytes: a header as real ones have it, and JSON behind it."""

from __future__ import annotations

import fnmatch
import json
import re
import struct
import zlib

from tensorrt.enums import BuilderFlag, ProfilingVerbosity
from tensorrt.host import IHostMemory
from tensorrt.plugin_calls import save
from tensorrt.release import MAJOR, VERSION, script
from tensorrt.tactics import layer_name

HEADER_BYTES = 64
WORDS = {"FLOAT": ("Float", "FP32"), "HALF": ("Half", "FP16"), "BF16": ("BFloat16", "BF16")}


def write_plan(
    network: object, config: object, layers: list[dict], profiles: list[dict]
) -> IHostMemory:
    detailed = config.profiling_verbosity == ProfilingVerbosity.DETAILED
    body = {
        "inspector": _inspector(network, layers, profiles, detailed),
        "profiles": profiles,
        "inputs": [_io(t) for t in network._inputs],
        "outputs": [_io(t) for t in network._outputs],
        "plugins": [
            save(layer["plugin"]) | {"at": [list(p[1]) for p in layer["plugin"].profile]}
            for layer in layers
            if "plugin" in layer
        ],
        "version_compatible": config.get_flag(BuilderFlag.VERSION_COMPATIBLE),
    }
    data = json.dumps(body).encode()
    head = bytearray(HEADER_BYTES)
    head[:4] = b"ptrt"
    struct.pack_into("<Q", head, 16, HEADER_BYTES + len(data))
    head[24:28] = bytes(min(255, int(n)) for n in re.findall(r"\d+", VERSION)[:4])
    struct.pack_into("<I", head, 32, zlib.crc32(data))
    return IHostMemory(bytes(head) + data)


def read_plan(data: bytes) -> tuple[dict, bytes] | None:
    """Contents, and the version of the builder; None for what is no engine, or a damaged one."""
    body = data[HEADER_BYTES:]
    if data[:4] != b"ptrt" or struct.unpack_from("<I", data, 32)[0] != zlib.crc32(body):
        return None
    return json.loads(body), data[24:28]


def _io(tensor: object) -> dict:
    return {"name": tensor.name, "dtype": int(tensor.dtype), "shape": list(tensor.shape)}


def _inspector(network: object, layers: list[dict], profiles: list[dict], detailed: bool) -> dict:
    names = [t.name for t in (*network._inputs, *network._outputs)]
    shown = [_layer(network, layer) for layer in layers]
    if not detailed:
        shown = [layer["Name"] for layer in shown]
    if MAJOR < 11:
        return {"Layers": shown, "Bindings": names}
    return {"Layers": shown, "I/O Tensors": [_binding(network, n, profiles) for n in names]}


def _binding(network: object, name: str, profiles: list[dict]) -> dict:
    is_input = any(t.name == name for t in network._inputs)
    ranges = [p[name] for p in profiles if name in p]
    return {
        "Name": name,
        "IOMode": "Input" if is_input else "Output",
        "DataType": "Float",
        "Dimensions": network._dims.get(name, [])[:],
        "Location": "Device",
        "IsShapeInferenceIO": False,
        "ProfileInfo": [
            {"MinShape": a, "OptShape": b, "MaxShape": c, "Format": "Linear"} for a, b, c in ranges
        ],
    }


def _dropped(layer: dict) -> bool:
    """Whether the script has a plugin vanish: no layer is known to be it."""
    names = [n.name for n in layer["nodes"]]
    globs = script().get("drop_plugins", ())
    return "plugin" in layer and any(fnmatch.filter(names, glob) for glob in globs)


def _layer(network: object, layer: dict) -> dict:
    group = layer["nodes"]
    inside = {o for n in group for o in n.output}
    read = dict.fromkeys(i for n in group for i in n.input if i and i not in inside)
    constants = [i for i in read if i in network._constants]
    inputs = [i for i in read if i not in constants]
    formats = _formats(layer)
    separator = "" if MAJOR < 11 else "\x1f"
    return {
        "Name": "{ForeignNode}" if _dropped(layer) else layer_name(group),
        "LayerType": _type(group, layer),
        "Inputs": [_tensor(network, i, formats) for i in inputs],
        "Constants": [_tensor(network, i, formats) for i in constants],
        "Outputs": [_tensor(network, group[-1].output[0], formats)],
        "TacticName": layer["kernel"],
        "StreamId": 0,
        "Metadata": ""
        if _dropped(layer)
        else separator.join(
            (*(f"[ONNX Layer: {n.name or n.output[0]}]" for n in group), *_told(layer))
        ),
    }


def _told(layer: dict) -> tuple[str, ...]:
    """A plugin's own metadata; where the inspector shows it is the double's assumption."""
    told = layer["plugin"].metadata if "plugin" in layer else None
    return (told,) if told else ()


def _type(group: list, layer: dict) -> str:
    if "plugin" in layer:
        return "PluginV3"
    return "CaskConvolution" if group[0].op_type == "Conv" else "kgen"


_FORMATS = {
    "LINEAR": "Row major linear",
    "HWC8": "Channel major {} format where channel % 8 == 0",
}


def _formats(layer: dict) -> dict[str, str]:
    """Format of a plugin's tensors by name; all others are linear here."""
    if "plugin" not in layer:
        return {}
    plugin = layer["plugin"]
    names = (*plugin.node.input, *plugin.node.output)
    return {n: f.name for n, f in zip(names, plugin.formats, strict=True)}


def _tensor(network: object, name: str, formats: dict[str, str]) -> dict:
    new, old = WORDS.get(network._dtypes.get(name, "FLOAT"), ("Int32", "Int32"))
    words = _FORMATS.get(formats.get(name, "LINEAR"), formats.get(name, ""))
    shown = {"Name": name, "Dimensions": network._dims.get(name, [])}
    if MAJOR < 11:
        said = words.format(old) if "{}" in words else f"{words} {old} format"
        return {**shown, "Format/Datatype": said}
    return {**shown, "Datatype": new, "Format": words.replace("{} ", "")}
