"""The builder's own layer listing as data.

Two sources, one result: the text that a builder logs at VERBOSE after `Layers:` (it needs no
driver), and the JSON of the engine inspector, in the layout of TensorRT 10 (`Bindings`,
`Format/Datatype`) and of 11 (`I/O Tensors`, `Datatype` and `Format`). Names are untrusted: what
does not parse is counted, never guessed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtplug.tensor import ELEMENT_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_NAME = r"Name: (?P<name>.*?), "
_LAYER = re.compile(
    rf"{_NAME}LayerType: (?P<type>[^,]*), Inputs: \[(?P<inputs>.*?)\], "
    r"Constants: \[(?P<constants>.*?)\], Outputs: \[(?P<outputs>.*?)\], "
    r"TacticName: (?P<tactic>.*?), StreamId: -?\d+(?:, \w+: [^,]*)*?, Metadata: ?(?P<metadata>.*)",
    re.DOTALL,
)
_TENSOR = re.compile(
    rf"\{{ {_NAME}Dimensions: \[(?P<dims>[-\d,]*)\], "
    r"(?:Strides: \[(?P<strides>[-\d,]*)\], )?(?:StrideOrder: \[[-\d,]*\], )?"
    r"Datatype: (?P<dtype>[^,}]*), Format: (?P<format>[^}]*?) ?\}",
    re.DOTALL,
)
_IO = re.compile(
    rf"{_NAME}IOMode: (?P<mode>\w+), DataType: (?P<dtype>\w+), Dimensions: \[(?P<dims>[-\d,]*)\]"
)
_ONNX_LAYER = re.compile(r"\[ONNX Layer: (.*?)\](?=\[ONNX Layer: |trtplug site=|$)", re.DOTALL)
"""What may follow: another node, or what our own plugin says of itself."""
_SEPARATORS = re.compile("[\x1e\x1f]+")
"""TensorRT joins the metadata of fused layers with these, besides plain juxtaposition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTensor:
    """A tensor at a layer's border, as the builder gives it; -1 is a dynamic axis."""

    name: str
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements; empty where not said."""
    dtype: str
    format: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLayer:
    """A layer, as the builder gives it."""

    name: str
    type: str
    inputs: tuple[LayerTensor, ...]
    constants: tuple[LayerTensor, ...]
    outputs: tuple[LayerTensor, ...]
    tactic: str
    """As given; empty or a stub where no kernel is named."""
    onnx_layers: tuple[str, ...]
    """Names of the ONNX nodes in it, in the builder's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """All layers of an engine."""

    layers: tuple[EngineLayer, ...]
    io_names: tuple[str, ...]
    """Inputs and outputs of the network."""
    unparsed: int
    """Entries that could not be read."""


def parse_layer_text(text: str) -> Listing:
    """The message that starts with `Layers:` in a VERBOSE log."""
    body, _, tail = text.removeprefix("Layers:\n").partition("\n\nI/O Tensors:\n")
    entries = [e for e in re.split(r"\n(?=Name: )", body.strip("\n")) if e]
    layers = [layer for e in entries if (layer := _layer(e)) is not None]
    io_names = tuple(m["name"] for m in _IO.finditer(tail.partition("\n\nEngine Metadata")[0]))
    return Listing(layers=tuple(layers), io_names=io_names, unparsed=len(entries) - len(layers))


def parse_inspector_json(text: str) -> Listing:
    """JSON of `IEngineInspector.get_engine_information`, of TensorRT 8 to 11.

    Without detailed profiling verbosity the layers are plain names; they are kept as such.

    Raises:
        ValueError: the text is no JSON, or holds no list of layers.
    """
    raw = json.loads(text)
    entries = raw.get("Layers") if isinstance(raw, dict) else raw
    if not isinstance(entries, list):
        raise ValueError("the inspector's JSON holds no list of layers")
    layers = [layer for e in entries if (layer := _json_layer(e)) is not None]
    names = _json_io(raw) if isinstance(raw, dict) else ()
    return Listing(layers=tuple(layers), io_names=names, unparsed=len(entries) - len(layers))


def onnx_layer_names(metadata: str) -> tuple[str, ...]:
    """`[ONNX Layer: a][ONNX Layer: b]` as `("a", "b")`, each once, in order."""
    parts = _SEPARATORS.split(metadata)
    return tuple(dict.fromkeys(name for part in parts for name in _ONNX_LAYER.findall(part)))


def _layer(entry: str) -> EngineLayer | None:
    match = _LAYER.fullmatch(entry)
    if match is None:
        return None
    return EngineLayer(
        name=match["name"],
        type=match["type"],
        inputs=tuple(_tensors(match["inputs"])),
        constants=tuple(_tensors(match["constants"])),
        outputs=tuple(_tensors(match["outputs"])),
        tactic=match["tactic"],
        onnx_layers=onnx_layer_names(match["metadata"]),
    )


def _tensors(text: str) -> Iterator[LayerTensor]:
    for match in _TENSOR.finditer(text):
        yield LayerTensor(
            name=match["name"],
            dims=_numbers(match["dims"]),
            strides=_numbers(match["strides"] or ""),
            dtype=match["dtype"].strip(),
            format=match["format"].strip(),
        )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split(",") if n)


def _json_layer(entry: Any) -> EngineLayer | None:  # noqa: ANN401 - JSON
    if isinstance(entry, str):
        entry = {"Name": entry}
    if not isinstance(entry, dict) or not isinstance(entry.get("Name"), str):
        return None
    return EngineLayer(
        name=entry["Name"],
        type=str(entry.get("LayerType", "unknown")),
        inputs=tuple(_json_tensors(entry.get("Inputs"))),
        constants=tuple(_json_tensors(entry.get("Constants"))),
        outputs=tuple(_json_tensors(entry.get("Outputs"))),
        tactic=str(entry.get("TacticName", "")),
        onnx_layers=onnx_layer_names(str(entry.get("Metadata", ""))),
    )


def _json_tensors(entries: Any) -> Iterator[LayerTensor]:  # noqa: ANN401 - JSON
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("Name"), str):
            dtype, layout = _json_type(entry)
            yield LayerTensor(
                name=entry["Name"],
                dims=_json_numbers(entry.get("Dimensions")),
                strides=_json_numbers(entry.get("Strides")),
                dtype=dtype,
                format=layout,
            )


def _json_numbers(value: Any) -> tuple[int, ...]:  # noqa: ANN401 - JSON
    return tuple(v for v in value if isinstance(v, int)) if isinstance(value, list) else ()


def _json_type(entry: Mapping[str, Any]) -> tuple[str, str]:
    """Type and format; TensorRT 10 writes them as one, e.g. `Row major linear FP16 format`."""
    if "Datatype" in entry:
        return str(entry["Datatype"]), str(entry.get("Format", "unknown"))
    both = str(entry.get("Format/Datatype", ""))
    for element in ELEMENT_TYPES:
        word = rf"\b{element.word}\b"
        if element.layer and re.search(word, both, re.IGNORECASE):
            return element.layer, re.sub(f" ?{word}", "", both, flags=re.IGNORECASE).strip()
    return "unknown", both or "unknown"


def _json_io(raw: Mapping[str, Any]) -> tuple[str, ...]:
    entries = raw.get("I/O Tensors", raw.get("Bindings", []))
    if not isinstance(entries, list):
        return ()
    names = (e.get("Name") if isinstance(e, dict) else e for e in entries)
    return tuple(n for n in names if isinstance(n, str))
