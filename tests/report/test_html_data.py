from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tests.report.sample_detector import realistic_report
from tests.report.samples import chain_report, layer, small_report
from trtplug.report.html_data import page_data
from trtplug.report.rows import layer_rows

if TYPE_CHECKING:
    from trtplug.report.data import Report


def _data(report: Report) -> dict:
    return page_data(report, layer_rows(report))


def test_layers_nodes_and_tensors_refer_to_each_other_by_position() -> None:
    data = _data(realistic_report())
    first = data["layers"][2]
    assert [data["nodes"][n]["label"] for n in first["nodes"]][:2] == [
        "p2o.Conv.0",
        "p2o.BatchNormalization.0",
    ]
    assert [data["tensors"][t]["opt"] for t in first["inputs"]] == ["1x3x640x640"]
    assert [data["tensors"][t]["dims"] for t in first["outputs"]] == ["1x16x?x?"]
    site = data["sites"][5]
    assert [data["layers"][p]["index"] for p in site["layers"]] == [7, 6]


def test_each_tensor_is_there_once() -> None:
    data = _data(chain_report(50))
    assert len(data["tensors"]) == 1 + 2 * 50


def test_a_label_that_the_model_does_not_have_still_gets_a_node() -> None:
    report = small_report()
    layers = (layer(0, "l", "kgen", onnx_nodes=("nowhere",)),)
    data = _data(replace(report, layers=layers))
    assert data["nodes"][data["layers"][0]["nodes"][0]] == {"label": "nowhere", "op": ""}
    assert "nowhere" not in report.onnx_nodes


def test_a_layer_that_the_engine_does_not_have_stays_a_name() -> None:
    assert _data(small_report())["misses"][2]["layers"] == ["not a layer"]


def test_every_gpu_has_its_bounds() -> None:
    data = _data(small_report())
    assert [g["name"] for g in data["gpus"]] == ["GeForce RTX 4090 (rtx4090)", "L4 (l4)"]
    assert [b["us"] for b in data["layers"][2]["bounds"]] == ["0.01", "0.02"]
    assert [t["us"] for t in data["totals"]] == ["1.51", "4.12"]
    assert {t["type"] for t in data["types"]} == {"gemm", "kgen", "runtime_fusion", "shape_call"}


@given(st.text(st.characters()))
def test_every_name_is_visible(name: str) -> None:
    report = small_report()
    renamed = replace(report.layers[2], name=name, type=name, onnx_nodes=(name,))
    shape = replace(report, layers=(renamed,), onnx_nodes={name: name})
    for text in _strings(_data(shape)):
        assert text.isprintable()


def _strings(value: object):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def test_grows_with_the_number_of_layers_and_no_faster() -> None:
    small, large = (len(json.dumps(_data(chain_report(n)))) for n in (100, 400))
    assert large < 4.2 * small
