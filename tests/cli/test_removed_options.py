"""Removed options: an error that says what to use instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli_runner import run_here
from trtplug.cli.config import read_config
from trtplug.cli.removed_options import removed_option_advice, removed_option_in
from trtplug.errors import BAD_INPUT, ConfigError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--fp16", "--precision fp16"),
        ("--bf16", "--precision bf16"),
        ("--best", "--precision fp16 or bf16"),
        ("--int8", "QuantizeLinear and DequantizeLinear"),
        ("--calib=cache.bin", "quantization tool"),
        ("--precisionConstraints=obey", "--keep-fp32"),
        ("--load-tactics=r.json", "use --locked or --pin"),
    ],
)
def test_on_the_command_line(flag: str, words: str):
    ran = run_here("build", "m.onnx", "--target", "sm_89", flag)
    assert ran.status == BAD_INPUT
    assert "error[usage]: No such option" in ran.err
    assert f"hint: {flag.partition('=')[0]} was removed in TensorRT 11.0" in ran.err
    assert words in ran.err


def test_any_other_option_that_does_not_exist_leads_to_the_help():
    ran = run_here("build", "m.onnx", "--nope")
    assert "--help` lists its options" in ran.err
    assert removed_option_in("Missing argument 'MODEL'") == ""
    assert removed_option_advice("--tf32") == ""


@pytest.mark.parametrize("key", ["fp16", "int8_calibrator", "calib", "explicit_batch"])
def test_in_the_config(tmp_path: Path, key: str):
    (tmp_path / "trtplug.toml").write_text(f"[build]\n{key} = true\n")
    with pytest.raises(ConfigError) as caught:
        read_config(tmp_path / "trtplug.toml")
    assert f"build.{key} was removed in TensorRT 11.0" in caught.value.message
