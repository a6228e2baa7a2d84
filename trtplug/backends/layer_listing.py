"""The builder's own layer listing as data.

Two sources, one result: the text that a builder logs at VERBOSE after `Layers:` (it needs no
driver), and the JSON of the engine inspector, in the layout of TensorRT 10 (`Bindings`,
`Format/Datatype`, `Weights` and `Bias`) and of 11 (`I/O Tensors`, `Datatype` and `Format`,
`Constants`). Both were held to what 10.16 prints (NVIDIA/trt-samples-for-hackathon-cn, cookbook/
04-Feature/EngineInspector and 07-Tool/trtexec) and TensorRT-RTX 1.7. Names are untrusted: what does
not parse is counted, never guessed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from trtplug.tensor import ELEMENT_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_NAME = r"Name: (?P<name>.*?), "
_HEAD = re.compile(rf"{_NAME}LayerType: (?P<type>[^,]*)", re.DOTALL)
_LIST = re.compile(r", (?P<side>Inputs|Constants|Outputs): \[")
_TACTIC = re.compile(r", TacticName: (?P<tactic>.*?)(?=, (?:TacticValue|StreamId): )", re.DOTALL)
_METADATA = re.compile(r", Metadata: ?(?P<metadata>.*)", re.DOTALL)
_FIELD = re.compile(
    r", (?P<field>\w+): (?P<value>\{[^}]*\}|\[[^\]]*\]|[^,\[{]*)(?=, \w+:|$)", re.DOTALL
)
_TENSOR = re.compile(
    rf"(?:, )?\s*\{{ {_NAME}(?:Location: \w+, )?Dimensions: \[(?P<dims>[-\d,]*)\], "
    r"(?:Strides: \[(?P<strides>[-\d,]*)\], )?(?:StrideOrder: \[[-\d,]*\], )?"
    r"(?:Datatype: (?P<dtype>[^,}]*), Format: (?P<format>[^}]*?)"
    r"|Format/Datatype: (?P<both>[^}]*?)) ?\}\s*",
    re.DOTALL,
)
_IO = re.compile(
    rf"{_NAME}IOMode: (?P<mode>\w+), DataType: (?P<dtype>\w+), Dimensions: \[(?P<dims>[-\d,]*)\]"
)
_IO_TENSORS = "\n\nI/O Tensors:\n"
_BINDINGS = "\n\nBindings:\n"
_PROFILE = re.compile(r" \[profile (?P<number>\d{1,4})\]$")
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
    tactic_value: str = ""
    """Number of the classic tuner's tactic, `0x` and lower-case hexadecimal digits without leading
    zeros; empty where none is given."""
    profile: int = 0
    """Optimization profile that it runs in."""

    @property
    def moves_nothing(self) -> bool:
        """Whether its tensors are one and the same memory."""
        return self.type == "NoOp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """All layers of an engine."""

    layers: tuple[EngineLayer, ...]
    io_names: tuple[str, ...]
    """Inputs and outputs of the network."""
    unparsed: int
    """Entries that could not be read."""


def parse_layer_text(text: str) -> Listing:
    """The message that starts with `Layers:` in a VERBOSE log, or the inspector's own text."""
    text = text.removeprefix("Layers:\n")
    body, _, tail = text.partition(_IO_TENSORS)
    body, _, bindings = body.partition(_BINDINGS)
    entries = [e for e in re.split(r"\n(?=Name: )", body.strip("\n")) if e]
    layers = [layer for e in entries if (layer := _layer(e)) is not None]
    io_names = tuple(m["name"] for m in _IO.finditer(tail.partition("\n\nEngine Metadata")[0]))
    return Listing(
        layers=_with_profiles(layers),
        io_names=io_names or tuple(bindings.partition("\n\n")[0].splitlines()),
        unparsed=len(entries) - len(layers),
    )


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
    unparsed = len(entries) - len(layers)
    return Listing(layers=_with_profiles(layers), io_names=names, unparsed=unparsed)


def onnx_layer_names(metadata: str) -> tuple[str, ...]:
    """`[ONNX Layer: a][ONNX Layer: b]` as `("a", "b")`, each once, in order."""
    parts = _SEPARATORS.split(metadata)
    return tuple(dict.fromkeys(name for part in parts for name in _ONNX_LAYER.findall(part)))


def profile_of(name: str) -> int | None:
    """The profile that the builder puts behind a name, `NAME [profile 1]`; None without."""
    match = _PROFILE.search(name)
    return int(match["number"]) if match else None


def without_profile(name: str) -> str:
    """The name of a layer or tensor as the first profile has it."""
    return _PROFILE.sub("", name)


def _with_profiles(layers: list[EngineLayer]) -> tuple[EngineLayer, ...]:
    """Layers with the profile that they run in.

    A listing has all layers of one profile, then all of the next. The compiler's layers have no
    suffix of their own, and those inside it not even at their tensors: they follow what is before.
    """
    found, current = [], 0
    for layer in layers:
        tensors = (t.name for t in (*layer.inputs, *layer.outputs))
        named = [n for name in (layer.name, *tensors) if (n := profile_of(name)) is not None]
        current = max(named, default=current)
        found.append(replace(layer, profile=current) if current else layer)
    return tuple(found)


@dataclass(slots=True)
class _Entry:
    """A layer in text, field by field: names hold anything, so no one pattern fits all of it."""

    text: str
    at: int
    sides: dict[str, tuple[LayerTensor, ...]] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)

    def read(self) -> bool:
        """Whether all of it could be read."""
        while self.at < len(self.text):
            if not (
                self._side() or self._named(_TACTIC) or self._named(_METADATA) or self._field()
            ):
                return False
        return True

    def _side(self) -> bool:
        match = _LIST.match(self.text, self.at)
        if match is None:
            return False
        at, tensors = match.end(), []
        while tensor := _TENSOR.match(self.text, at):
            tensors.append(_text_tensor(tensor))
            at = tensor.end()
        if not self.text.startswith("]", at):
            return False
        self.sides[match["side"]] = tuple(tensors)
        self.at = at + 1
        return True

    def _named(self, pattern: re.Pattern[str]) -> bool:
        match = pattern.match(self.text, self.at)
        if match is not None:
            self.fields.update(match.groupdict())
            self.at = match.end()
        return match is not None

    def _field(self) -> bool:
        match = _FIELD.match(self.text, self.at)
        if match is not None:
            self.fields[match["field"]] = match["value"]
            self.at = match.end()
        return match is not None


def _layer(text: str) -> EngineLayer | None:
    head = _HEAD.match(text)
    if head is None:
        return None
    entry = _Entry(text=text, at=head.end())
    if not entry.read():
        return None
    return EngineLayer(
        name=head["name"],
        type=head["type"],
        inputs=entry.sides.get("Inputs", ()),
        constants=entry.sides.get("Constants", ()) or tuple(_text_weights(entry.fields)),
        outputs=entry.sides.get("Outputs", ()),
        tactic=entry.fields.get("tactic", ""),
        onnx_layers=onnx_layer_names(entry.fields.get("metadata", "")),
        tactic_value=_hexadecimal(entry.fields.get("TacticValue", "")),
    )


def _text_tensor(match: re.Match[str]) -> LayerTensor:
    both = match["both"]
    dtype, layout = (match["dtype"], match["format"]) if both is None else _split_type(both)
    return LayerTensor(
        name=match["name"],
        dims=_numbers(match["dims"]),
        strides=_numbers(match["strides"] or ""),
        dtype=dtype.strip(),
        format=layout.strip(),
    )


def _text_weights(fields: Mapping[str, str]) -> Iterator[LayerTensor]:
    for name in _WEIGHTS:
        try:
            raw = json.loads(fields.get(name, "null"))
        except ValueError:
            continue
        yield from _weights(name, raw)


_WEIGHTS = ("Weights", "Bias")
_MOST_ELEMENTS = 1 << 48
"""More fit into no machine: a count beyond it is none."""


def _weights(name: str, raw: Any) -> Iterator[LayerTensor]:  # noqa: ANN401 - JSON
    """`{"Type": "Half", "Count": 9408}` as a tensor of one axis; nothing without elements."""
    count = raw.get("Count") if isinstance(raw, dict) else None
    if isinstance(count, int) and 0 < count <= _MOST_ELEMENTS:
        dtype, _ = _split_type(str(raw.get("Type", "")))
        yield LayerTensor(name=name, dims=(count,), strides=(), dtype=dtype, format=_NOT_SAID)


def _hexadecimal(value: str) -> str:
    """`0x00000000000003ea` as `0x3ea`; empty for what is no number."""
    try:
        return f"0x{int(value, 16):x}" if value else ""
    except ValueError:
        return ""


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
        constants=tuple(_json_constants(entry)),
        outputs=tuple(_json_tensors(entry.get("Outputs"))),
        tactic=str(entry.get("TacticName", "")),
        onnx_layers=onnx_layer_names(str(entry.get("Metadata", ""))),
        tactic_value=_hexadecimal(str(entry.get("TacticValue", ""))),
    )


def _json_constants(entry: Mapping[str, Any]) -> Iterator[LayerTensor]:
    """Of TensorRT 11 with their dims, of 10 as counts."""
    if "Constants" in entry:
        yield from _json_tensors(entry["Constants"])
        return
    for name in _WEIGHTS:
        yield from _weights(name, entry.get(name))


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


_NOT_SAID = "unknown"
"""Format of a tensor of which only the type is given."""


def _json_type(entry: Mapping[str, Any]) -> tuple[str, str]:
    if "Datatype" in entry:
        return str(entry["Datatype"]), str(entry.get("Format", _NOT_SAID))
    return _split_type(str(entry.get("Format/Datatype", "")))


def _split_type(both: str) -> tuple[str, str]:
    """Type and format; TensorRT 10 writes them as one, or the type alone.

    `Row major linear FP16 format`, `Channel major FP16 format where channel % 8 == 0` and `Half`
    are in one file.
    """
    for element in ELEMENT_TYPES:
        # Both the word of long forms (`FP16`) and the type alone (`Half`).
        word = rf"\b(?:{element.word}|{element.layer})\b"
        if element.layer and (match := re.search(word, both, re.IGNORECASE)):
            layout = " ".join((both[: match.start()] + both[match.end() :]).split())
            return element.layer, layout or _NOT_SAID
    return "unknown", both or _NOT_SAID


def _json_io(raw: Mapping[str, Any]) -> tuple[str, ...]:
    entries = raw.get("I/O Tensors", raw.get("Bindings", []))
    if not isinstance(entries, list):
        return ()
    names = (e.get("Name") if isinstance(e, dict) else e for e in entries)
    return tuple(n for n in names if isinstance(n, str))
