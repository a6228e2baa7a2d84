"""The builder's listing: text of the VERBOSE log, inspector JSON of TensorRT 10 and 11."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtplug.backends.layer_listing import (
    Listing,
    onnx_layer_names,
    parse_inspector_json,
    parse_layer_text,
    without_profile,
)

# As TensorRT-RTX 1.7 writes it: a reformat, a fused convolution with a stub, a sync layer.
TEXT = (
    "Layers:\n"
    "Name: __myl_Move_myl0_0, LayerType: kgen, Inputs: [ { Name: x, Dimensions: [1,3,-1,-1], "
    "Strides: [-1,-1,-1,1], StrideOrder: [3,2,1,0], Datatype: Float, Format: (Linear) Row major "
    "linear format }], Constants: [], Outputs: [ { Name: t_0, Dimensions: [1,3,-1,-1], Strides: "
    "[-1,1,-1,3], StrideOrder: [3,0,2,1], Datatype: Float, Format: (NHWC) Channel major format }], "
    "TacticName: __myl_Move_0xa2da, StreamId: 0, Metadata: \n"
    "Name: conv0_myl0_1, LayerType: correlation, Inputs: [ { Name: t_0, Dimensions: [1,3,-1,-1], "
    "Strides: [-1,1,-1,3], StrideOrder: [3,0,2,1], Datatype: Float, Format: (NHWC) Channel major "
    "format }], Constants: [ { Name: w, Dimensions: [8,3,3,3], Strides: [27,1,9,3], StrideOrder: "
    "[3,0,2,1], Datatype: Float, Format: (NHWC) Channel major format }, { Name: b, Dimensions: "
    "[8], Strides: [1], StrideOrder: [0], Datatype: Float, Format: (Linear) Row major linear "
    "format }], Outputs: [ { Name: y, Dimensions: [1,8,-1,-1], Strides: [-1,1,-1,8], StrideOrder: "
    "[3,0,2,1], Datatype: Float, Format: (NHWC) Channel major format }], TacticName: "
    "__myelin_CASK_STUB, StreamId: 0, Metadata: [ONNX Layer: conv0][ONNX Layer: relu0]\n"
    "Name: entry^bb^signal^2_myl0_2, LayerType: signal, Inputs: [], Constants: [], Outputs: [], "
    "TacticName: , StreamId: 0, EventId: 10, Metadata: \n"
    "\n"
    "I/O Tensors:\n"
    " Name: x, IOMode: Input, DataType: Float, Dimensions: [1,3,-1,-1], Location: Device, "
    "IsShapeInferenceIO: false, ProfileInfo: [ { MinShape: [1,3,32,32], OptShape: [1,3,64,64], "
    "MaxShape: [1,3,96,96], Format: Row major linear FP32 format (kLINEAR) }]\n"
    " Name: y, IOMode: Output, DataType: Float, Dimensions: [1,8,-1,-1], Location: Device, "
    "IsShapeInferenceIO: false, ProfileInfo: [ { Format: Row major linear FP32 format }]\n"
    "\n"
    "Engine Metadata:\n Multi-Device: Disabled"
)


def _tensor_10(name: str, dims: list[int]) -> dict[str, object]:
    return {"Name": name, "Dimensions": dims, "Format/Datatype": "Row major linear FP16 format"}


def _tensor_11(name: str, dims: list[int]) -> dict[str, object]:
    layout = "Row major linear format"
    return {"Name": name, "Dimensions": dims, "Datatype": "Half", "Format": layout}


def _inspector(major: int) -> str:
    """One engine as the inspector of TensorRT 10 or 11 gives it (research: anchors 6.7)."""
    tensor = _tensor_10 if major == 10 else _tensor_11
    layer = {
        "Name": "conv0 + relu0",
        "LayerType": "correlation",
        "Inputs": [tensor("x", [1, 3, 8, 8])],
        "Outputs": [tensor("y", [1, 8, 8, 8])],
        "TacticName": "sm80_xmma_fprop",
        "StreamId": 0,
        "Metadata": "[ONNX Layer: conv0]\u001e[ONNX Layer: relu0]",
    }
    io = ["x", "y"] if major == 10 else [{"Name": "x", "IOMode": "Input"}, {"Name": "y"}]
    return json.dumps({"Layers": [layer], "Bindings" if major == 10 else "I/O Tensors": io})


def test_text_gives_every_layer():
    listing = parse_layer_text(TEXT)
    assert listing.unparsed == 0
    assert [layer.type for layer in listing.layers] == ["kgen", "correlation", "signal"]
    assert listing.io_names == ("x", "y")
    conv = listing.layers[1]
    assert conv.onnx_layers == ("conv0", "relu0")
    assert conv.tactic == "__myelin_CASK_STUB"
    assert [t.dims for t in conv.constants] == [(8, 3, 3, 3), (8,)]
    assert conv.inputs[0].strides == (-1, 1, -1, 3)
    assert conv.outputs[0].format == "(NHWC) Channel major format"


def test_both_inspector_layouts_give_the_same_listing():
    ten, eleven = parse_inspector_json(_inspector(10)), parse_inspector_json(_inspector(11))
    assert ten == eleven
    assert ten.layers[0].outputs[0].dtype == "Half"
    assert ten.layers[0].outputs[0].format == "Row major linear format"
    assert ten.layers[0].onnx_layers == ("conv0", "relu0")
    assert ten.io_names == ("x", "y")


def test_inspector_without_details_keeps_the_names():
    listing = parse_inspector_json(json.dumps({"Layers": ["conv0 + relu0", 3], "Bindings": []}))
    assert [layer.name for layer in listing.layers] == ["conv0 + relu0"]
    assert listing.layers[0].type == "unknown"
    assert listing.unparsed == 1


@pytest.mark.parametrize("text", ["", "[", "3", '{"Layers": 3}', "{}"])
def test_inspector_text_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match=r".+"):
        parse_inspector_json(text)


@pytest.mark.parametrize(
    ("metadata", "names"),
    [
        ("", ()),
        ("[ONNX Layer: a]", ("a",)),
        ("[ONNX Layer: a][ONNX Layer: b][ONNX Layer: a]", ("a", "b")),
        ("[ONNX Layer: a]b[c][ONNX Layer: d]", ("a]b[c", "d")),
        ("[ONNX Layer: a]trtplug site=390c op=CBR", ("a",)),
        ("[ONNX Layer: a]\x1e[ONNX Layer: b]\x1f[ONNX Layer: c]", ("a", "b", "c")),
    ],
)
def test_metadata_names(metadata, names):
    assert onnx_layer_names(metadata) == names


@given(st.integers(0, len(TEXT)), st.text(max_size=20))
def test_damaged_text_never_raises(cut, noise):
    for text in (TEXT[:cut], TEXT[:cut] + noise + TEXT[cut:], noise):
        assert isinstance(parse_layer_text(text), Listing)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda c: (
            st.lists(c)
            | st.dictionaries(
                st.sampled_from(
                    ["Layers", "Name", "Inputs", "Dimensions", "Bindings", "I/O Tensors"]
                ),
                c,
            )
        ),
    )
)
def test_odd_json_is_read_or_refused(value):
    with contextlib.suppress(ValueError):
        parse_inspector_json(json.dumps(value))


# The words of TensorRT 10: a convolution, the copy before it, one that moves nothing, and the
# compiler's, whose layers bear no profile in their names and inside not even at their tensors.
_TEN = [
    {
        "Name": "stem + act",
        "LayerType": "CaskConvolution",
        "Inputs": [
            {"Name": "img", "Location": "Device", "Dimensions": [2, 3, 9, 9],
             "Format/Datatype": "Channel major FP16 format where channel % 8 == 0"}
        ],
        "Outputs": [
            {"Name": "t0", "Location": "Device", "Dimensions": [2, 4, 9, 9],
             "Format/Datatype": "Row major linear FP32"}
        ],
        "ParameterType": "Convolution",
        "Kernel": [3, 3],
        "Weights": {"Type": "Half", "Count": 108},
        "Bias": {"Type": "Float", "Count": 4},
        "Activation": "RELU",
        "TacticName": "sm80_xmma_fprop_tile, odd",
        "TacticValue": "0x00000000000003ea",
        "StreamId": 0,
        "Metadata": "[ONNX Layer: stem]\u001e[ONNX Layer: act]",
    },
    {
        "Name": "view",
        "LayerType": "NoOp",
        "Inputs": [{"Name": "t0", "Location": "Device", "Dimensions": [2, 4, 9, 9],
                    "Format/Datatype": "Float"}],
        "Outputs": [{"Name": "t1", "Location": "Device", "Dimensions": [2, 324],
                     "Format/Datatype": "Float"}],
        "TacticValue": "0x0000000000000000",
        "StreamId": 0,
        "Metadata": "",
    },
    {
        "Name": "fc_myl3_0",
        "LayerType": "gemm",
        "Inputs": [{"Name": "t1", "Dimensions": [-1, 324], "Format/Datatype": "BFloat16"}],
        "Outputs": [{"Name": "in_myl3", "Dimensions": [-1, 8], "Format/Datatype": "Int64"}],
        "TacticName": "sm80_gemm",
        "StreamId": 0,
        "Metadata": "[ONNX Layer: fc]\u001f[ONNX Layer: fc_act]",
    },
]  # fmt: skip


def _second(layer: dict) -> dict:
    """The same layer in the second profile, by the builder's rules."""
    again = json.loads(json.dumps(layer).replace("_myl3", "_myl4"))
    for tensor in (*again["Inputs"], *again["Outputs"]):
        if not tensor["Name"].startswith("in_"):
            tensor["Name"] += " [profile 1]"
    if "_myl4" not in again["Name"]:
        again["Name"] += " [profile 1]"
    return again


def _as_text(layers: list[dict]) -> str:
    """As `LayerInformationFormat.ONELINE` prints it."""

    def shown(value: object) -> str:
        match value:
            case {"Name": _}:
                return "{ " + ", ".join(f"{k}: {shown(v)}" for k, v in value.items()) + " }"
            case {}:
                return json.dumps(value)
            case [{}, *_]:
                return "[" + ",".join(f" {shown(v)}" for v in value) + "]"
            case list():
                return "[" + ",".join(map(str, value)) + "]"
        return str(value).replace("\x1e", "").replace("\x1f", "")

    lines = [", ".join(f"{k}: {shown(v)}" for k, v in layer.items()) for layer in layers]
    return "Layers:\n" + "\n".join(line.rstrip() for line in lines) + "\n\nBindings:\nimg\ny\n\nz"


def test_words_of_release_10_in_json():
    twice = [*_TEN, *map(_second, _TEN)]
    listing = parse_inspector_json(json.dumps({"Layers": twice, "Bindings": ["img", "y"]}))
    assert listing.unparsed == 0
    conv, view, gemm = listing.layers[:3]
    assert (conv.inputs[0].dtype, conv.inputs[0].format) == (
        "Half",
        "Channel major format where channel % 8 == 0",
    )
    assert (conv.outputs[0].dtype, conv.outputs[0].format) == ("Float", "Row major linear")
    assert [(c.name, c.dims, c.dtype) for c in conv.constants] == [
        ("Weights", (108,), "Half"),
        ("Bias", (4,), "Float"),
    ]
    assert conv.tactic_value == "0x3ea"
    assert conv.onnx_layers == ("stem", "act")
    assert (view.inputs[0].dtype, view.inputs[0].format) == ("Float", "unknown")
    assert view.moves_nothing
    assert not conv.moves_nothing
    assert (gemm.inputs[0].dtype, gemm.outputs[0].dtype) == ("BFloat16", "Int64")
    assert gemm.inputs[0].dims == (-1, 324)
    assert gemm.onnx_layers == ("fc", "fc_act")
    assert [layer.profile for layer in listing.layers] == [0, 0, 0, 1, 1, 1]
    assert without_profile(listing.layers[3].name) == conv.name


def test_the_inspector_s_text_gives_the_same_as_its_json():
    twice = [*_TEN, *map(_second, _TEN)]
    as_json = parse_inspector_json(json.dumps({"Layers": twice, "Bindings": ["img", "y"]}))
    assert parse_layer_text(_as_text(twice)) == as_json


def test_layers_with_other_fields_and_odd_names_are_read():
    """As TensorRT-RTX lists what a loop or a shape on the host needs."""
    odd = "a }], Constants: [ { b\nc"
    text = (
        "Layers:\n"
        "Name: stop, LayerType: TrainStation, Inputs: [], Outputs: [], StreamId: 0, Metadata: \n"
        f"Name: n, LayerType: ShapeHostToDevice, Inputs: [], Outputs: [ {{ Name: {odd}, "
        "Dimensions: [4], Datatype: Int64, Format: Linear }], ParameterType: ShapeH2D, "
        "shapeValues0: [1,2], StreamId: 0, Metadata: [ONNX Layer: s]"
    )
    listing = parse_layer_text(text)
    assert listing.unparsed == 0
    assert [layer.type for layer in listing.layers] == ["TrainStation", "ShapeHostToDevice"]
    assert listing.layers[1].outputs[0].name == odd


@pytest.mark.parametrize("count", [0, -4, 10**300, "8", None, 1.5])
def test_a_count_that_is_none_gives_no_tensor(count):
    layer = {"Name": "a", "Weights": {"Type": "Half", "Count": count}, "Bias": [3]}
    listing = parse_inspector_json(json.dumps({"Layers": [layer]}))
    assert listing.layers[0].constants == ()
