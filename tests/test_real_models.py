import pytest

from tests import real_models


def test_every_model_is_found(det, rec, cls):
    assert {p.suffix for p in (det, rec, cls)} == {".onnx"}


def test_light_is_all_that_the_onnx_package_holds(light):
    assert {p.name for p in light.parent.glob("light_*.onnx")} == {
        f"light_{n}.onnx" for n in real_models.LIGHT
    }


@pytest.mark.parametrize("package", ["no_such_package", "onnx"])
def test_a_missing_model_says_how_to_get_it(package, monkeypatch):
    monkeypatch.setattr(real_models, "REQUIRE_MODELS", False)
    with pytest.raises(pytest.skip.Exception, match="pip install the-package"):
        real_models.package_file(package, "no.onnx", install="pip install the-package")
    monkeypatch.setattr(real_models, "REQUIRE_MODELS", True)
    with pytest.raises(pytest.fail.Exception, match="pip install the-package"):
        real_models.package_file(package, "no.onnx", install="pip install the-package")
