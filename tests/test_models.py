import pytest

from tests import models


@pytest.mark.parametrize(
    "build",
    [
        models.conv_relu,
        lambda: models.conv_relu(bias=False, activation=None, shape=("n", 3, "h", "w")),
        lambda: models.conv_relu(opset=9, ir_version=3, weights_as_inputs=True),
        lambda: models.conv_relu(input_name="in/put:0", conv_name="", activation_name=""),
        lambda: models.conv_chain(3),
        lambda: models.matmul(rows="n"),
        models.add,
    ],
)
def test_is_valid_and_the_same_each_time(build, tmp_path):
    import onnx

    path = models.save(build(), tmp_path / "m.onnx")
    onnx.checker.check_model(onnx.load(path), full_check=True)
    assert path.read_bytes() == models.save(build(), tmp_path / "again.onnx").read_bytes()
