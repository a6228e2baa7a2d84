"""Shapes given against a model's inputs: joined, or every problem at once, and flags that do."""

from __future__ import annotations

import itertools
import shlex
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.models import add, conv_relu, save
from trtplug.errors import BAD_INPUT, ShapeError
from trtplug.model.load import load_model
from trtplug.model.ranges import resolve_ranges
from trtplug.tensor import parse_shape_range

if TYPE_CHECKING:
    from pathlib import Path

    from trtplug.model.load import Model


@pytest.fixture
def dynamic(tmp_path: Path) -> Model:
    return load_model(save(conv_relu(shape=("N", 3, "H", "W")), tmp_path / "m.onnx"))


def resolve(model: Model, *given: str):
    return resolve_ranges(model, tuple(map(parse_shape_range, given)))


def problems(model: Model, *given: str) -> ShapeError:
    with pytest.raises(ShapeError) as caught:
        resolve(model, *given)
    assert caught.value.exit_status == BAD_INPUT
    return caught.value


def test_static_inputs_need_none(tmp_path: Path):
    model = load_model(save(add(), tmp_path / "m.onnx"))
    assert [str(r) for r in resolve(model)] == ["a=1x3x8x8", "b=1x3x8x8"]


def test_order_is_the_models(tmp_path: Path):
    model = load_model(save(add(shape=("N", 4)), tmp_path / "m.onnx"))
    assert [r.name for r in resolve(model, "b=1x4", "a=1x4")] == ["a", "b"]


def test_dynamic_input_without_a_shape_prints_the_flag_to_give(dynamic: Model):
    error = problems(dynamic)
    assert "input 'x' [N, 3, H, W] has dynamic axes and no shape was given" in error.message
    assert error.hint == "give: --shape x=1x3x320x320:1x3x640x640:1x3x960x960"


def test_flags_that_it_prints_do(dynamic: Model):
    flag = problems(dynamic).flags[0].removeprefix("--shape ")
    assert resolve(dynamic, flag)[0].opt == (1, 3, 640, 640)


@pytest.mark.parametrize("name", ["a/b:0", "it's", "x y", "$(rm)"])
def test_flags_are_safe_to_paste_whatever_the_name(tmp_path: Path, name: str):
    proto = conv_relu(input_name=name, shape=("N", 3, 8, 8))
    error = problems(load_model(save(proto, tmp_path / "m.onnx")))
    option, value = shlex.split(error.flags[0])
    assert option == "--shape"
    assert value.startswith(f"{name}=1x3x8x8")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["X=1x3x8x8"], "there is no input 'X'; did you mean 'x'? (inputs: 'x')"),
        (["image=1x3x8x8"], "there is no input 'image' (inputs: 'x')"),
        (["x=1x3x8"], "input 'x' has 4 axes; the shape given has 3"),
        (["x=scalar"], "has 4 axes; the shape given has 0"),
        (["x=1x3x8x8:1x3x8"], "has 3 and 4"),
        (["x=9x3x8x8:1x3x8x8:9x3x8x8"], "axis 0: min 9, opt 1, max 9 do not rise"),
        (["x=1x3x8x8:1x3x9x8:1x3x8x8"], "axis 2: min 8, opt 9, max 8 do not rise"),
        (["x=1x4x8x8"], "axis 1 is fixed at 3 in the model; 4 to 4 was given"),
        (["x=1x3x8x8", "x=1x3x9x9"], "input 'x' is given 2 shapes; give one"),
    ],
)
def test_each_problem_is_named(dynamic: Model, given: list[str], words: str):
    assert words in problems(dynamic, *given).message


def test_all_problems_come_at_once(dynamic: Model):
    error = problems(dynamic, "y=1", "x=2x4x8x8:1x4x8x8:3x4x8x8")
    assert len(error.problems) == 3


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sizes=st.lists(st.tuples(*[st.integers(1, 99)] * 3), min_size=4, max_size=4))
def test_rising_ranges_are_taken_and_others_are_not(dynamic: Model, sizes):
    sizes[1] = (3, 3, 3)
    text = "x=" + ":".join("x".join(str(s[i]) for s in sizes) for i in range(3))
    rises = all(a <= b for s in sizes for a, b in itertools.pairwise(s))
    if rises:
        assert resolve(dynamic, text)[0].max == tuple(s[2] for s in sizes)
    else:
        assert "do not rise" in problems(dynamic, text).message
