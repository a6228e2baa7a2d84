"""What the engine inspector tells, in the layouts of both major versions.

The words of 10 are those of 10.16 (NVIDIA/trt-samples-for-hackathon-cn, cookbook/04-Feature/
EngineInspector and 07-Tool/trtexec): long forms for the classic tuner's layers, the type alone for
the compiler's, weights as counts, the tactic's number, U+001E between ONNX layers, and every layer
again as `NAME [profile 1]`. Those of 11 are what TensorRT-RTX 1.7 prints: nobody has published an
inspector's answer of 11, so that it has `TacticValue` too is a guess.

Of plugins hardly anything is documented: their type, tactic and metadata are the double's
assumption. So are reformats, but for their names, which are those of TensorRT 10: wherever a plugin
takes or gives another format than what stands beside it, a layer copies the tensor.
"""

from __future__ import annotations

import fnmatch
import json
import math

from tensorrt.release import MAJOR, script
from tensorrt.tactics import layer_name

WORDS = {"FLOAT": ("Float", "FP32"), "HALF": ("Half", "FP16"), "BF16": ("BFloat16", "BF16")}


def inspect_layers(
    network: object, layers: list[dict], profiles: list[dict], detailed: bool
) -> dict:
    names = [t.name for t in (*network._inputs, *network._outputs)]
    shown = _with_reformats(network, layers, [_layer(network, layer) for layer in layers])
    once = shown
    for profile in range(1, len(profiles)):
        shown = shown + [_again(layer, profile) for layer in once]
    if not detailed:
        shown = [layer["Name"] for layer in shown]
    if MAJOR < 11:
        return {"Layers": shown, "Bindings": names}
    return {"Layers": shown, "I/O Tensors": [_binding(network, n, profiles) for n in names]}


def _again(layer: dict, profile: int) -> dict:
    """The same layer in a further profile: it and its tensors have that behind their names."""
    again = json.loads(json.dumps(layer))
    for named in (again, *again["Inputs"], *again["Outputs"]):
        named["Name"] += f" [profile {profile}]"
    return again


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
    long = "tactic" in layer  # of the classic tuner
    separator = "\x1e" if MAJOR < 11 else "\x1f"
    return {
        "Name": "{ForeignNode}" if _dropped(layer) else layer_name(group),
        "LayerType": _type(group, layer),
        "Inputs": [_tensor(network, i, formats, long=long) for i in inputs],
        **_constants(network, constants, formats),
        "Outputs": [_tensor(network, group[-1].output[0], formats, long=long)],
        "TacticName": layer["kernel"],
        **({"TacticValue": f"0x{layer['tactic']:016x}"} if "tactic" in layer else {}),
        "StreamId": 0,
        "Metadata": ""
        if _dropped(layer)
        else separator.join(
            (*(f"[ONNX Layer: {n.name or n.output[0]}]" for n in group), *_told(layer))
        ),
    }


def _constants(network: object, names: list[str], formats: dict[str, str]) -> dict:
    """Of 11 as tensors, of 10 as counts of the weights and the bias."""
    if MAJOR >= 11:
        return {"Constants": [_tensor(network, name, formats) for name in names]}
    words = [WORDS.get(network._dtypes.get(n, "FLOAT"), ("Int32", ""))[0] for n in names]
    counts = [math.prod(network._constants[n]) for n in names]
    given = zip(("Weights", "Bias"), words, counts, strict=False)
    return {name: {"Type": word, "Count": count} for name, word, count in given}


def _told(layer: dict) -> tuple[str, ...]:
    """A plugin's own metadata; where the inspector shows it is the double's assumption."""
    told = layer["plugin"].metadata if "plugin" in layer else None
    return (told,) if told else ()


def _type(group: list, layer: dict) -> str:
    if "plugin" in layer:
        return "PluginV3"
    return layer.get("runner", "kgen")


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


def _tensor(network: object, name: str, formats: dict[str, str], *, long: bool = True) -> dict:
    new, old = WORDS.get(network._dtypes.get(name, "FLOAT"), ("Int32", "Int32"))
    words = _FORMATS.get(formats.get(name, "LINEAR"), formats.get(name, ""))
    shown = {"Name": name, "Dimensions": network._dims.get(name, [])}
    if MAJOR < 11:
        ending = "" if old == "FP32" else " format"  # `Row major linear FP32`, the only one without
        said = words.format(old) if "{}" in words else f"{words} {old}{ending}"
        return {**shown, "Format/Datatype": said if long else new}
    return {**shown, "Datatype": new, "Format": words.replace("{} ", "")}


def _with_reformats(network: object, layers: list[dict], shown: list[dict]) -> list[dict]:
    """The layers with copies before and after plugins; what they copy gets another name."""
    others = [n for layer in layers if "plugin" not in layer for n in layer["nodes"]]
    # What anything but a plugin reads is linear in the end.
    linear = {t.name for t in network._outputs} | {i for n in others for i in n.input}
    there: dict[str, str] = {}
    found = []
    for layer, row in zip(layers, shown, strict=True):
        if "plugin" not in layer:
            found.append(row)
            continue
        own = _formats(layer)
        found += _copies(network, row, "Input", own, {n: there.get(n, "LINEAR") for n in own})
        found.append(row)
        (name,) = (t["Name"] for t in row["Outputs"])
        if name in linear:
            found += _copies(network, row, "Output", own, {name: "LINEAR"})
        else:
            there[name] = own[name]
    return found


def _copies(
    network: object, row: dict, side: str, own: dict[str, str], other: dict[str, str]
) -> list[dict]:
    """A copy for each tensor of a side whose format is not that of what stands there."""
    found = []
    for place, tensor in enumerate(row[f"{side}s"]):
        name = tensor["Name"]
        if other[name] == own[name]:
            continue
        plain = _tensor(network, name, other)
        tensor["Name"] = f"Reformatted {side} Tensor {place} to {row['Name']}"
        ends = (plain, dict(tensor)) if side == "Input" else (dict(tensor), plain)
        found.append(
            {
                "Name": f"Reformatting CopyNode for {side} Tensor {place} to {row['Name']}",
                "LayerType": "Reformat",
                "Inputs": [ends[0]],
                **_constants(network, [], {}),
                "Outputs": [ends[1]],
                "TacticName": "",
                "StreamId": 0,
                "Metadata": "",
            }
        )
    return found
