from __future__ import annotations

import json

from tests.backends.trt.tactic_logs import KEY, OTHER_KEY, table
from trtplug.build.two_pass import read_naming

CONV = table("conv", [0.010, 0.011], onnx_layers=("conv",))
GEMM = table("gemm", [0.5, 0.6], key=OTHER_KEY)


def inspector(folder, *layers):
    shown = [
        {
            "Name": name,
            "LayerType": "gemm",
            "Inputs": [],
            "Constants": [],
            "Outputs": [],
            "TacticName": tactic,
            "StreamId": 0,
            "Metadata": metadata,
        }
        for name, tactic, metadata in layers
    ]
    (folder / "inspector.json").write_text(json.dumps({"Layers": shown, "I/O Tensors": []}))


def test_names_of_layers_and_nodes(tmp_path):
    inspector(
        tmp_path,
        ("conv_myl0_1", CONV.chosen.kernel, "[ONNX Layer: conv]"),
        ("gemm_myl0_2", "__myelin_CASK_STUB", ""),
    )
    naming = read_naming(tmp_path, (CONV, GEMM), {"conv": "Conv.1"})
    assert naming.names[KEY] == {"Conv.1", "conv_myl0_1"}
    assert naming.names[OTHER_KEY] == {"gemm_myl0_2"}
    # A stub does not show which kernel runs.
    assert naming.shown == {KEY}


def test_without_a_listing_the_log_alone_tells(tmp_path):
    naming = read_naming(tmp_path, (CONV, GEMM), {})
    assert naming.names[KEY] == {"conv"}
    assert naming.shown == frozenset()


def test_a_layer_that_is_not_certain_gives_no_name(tmp_path):
    two = [(f"conv_myl0_{n}", "", "[ONNX Layer: conv]") for n in (1, 2)]
    inspector(tmp_path, *two)
    naming = read_naming(tmp_path, (CONV,), {})
    assert naming.names[KEY] == {"conv"}
    assert naming.shown == frozenset()
