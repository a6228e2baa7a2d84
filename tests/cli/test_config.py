"""trtplug.toml: read, or refused with the file, the key and what was wanted."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtplug.cli.config import read_config
from trtplug.errors import BAD_INPUT, ConfigError

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """\
[build]
model = "det.onnx"
target = ["rtx4090", "sm_86"]
shape = ["x=1x3x320x320:1x3x640x640:1x3x960x960"]
out = "bundle"
jobs = 2
repeat = 1
timeout = 60.5
memory_limit = "8GiB"
tf32 = true
optimization_level = 3
workspace = "1GiB"
weight_streaming = false
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "trtplug.toml"


def refused(file: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        read_config(file)
    assert caught.value.exit_status == BAD_INPUT
    assert caught.value.message.startswith(f"{file}: ")
    return caught.value.message


def test_every_key_and_paths_from_the_files_own_folder(file: Path):
    file.write_text(GOOD)
    read = read_config(file)
    assert read["model"] == file.parent / "det.onnx"
    assert read["out"] == file.parent / "bundle"
    assert read["target"] == ("rtx4090", "sm_86")
    assert read["timeout"] == 60.5


def test_evidence_lies_beside_the_file_too(file: Path):
    file.write_text("[build]\nevidence = 'e.jsonl'\nplugin_sites = ['a']\n")
    assert read_config(file) == {"evidence": file.parent / "e.jsonl", "plugin_sites": ("a",)}


@pytest.mark.parametrize("text", ["", "[build]\n", "# nothing\n"])
def test_empty_file_gives_nothing(file: Path, text: str):
    file.write_text(text)
    assert read_config(file) == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("build = 1", "build must be a table"),
        ("[deploy]", "unknown table or key 'deploy'"),
        ("targets = []", "unknown table or key 'targets'"),
        ("[build]\nzzz = 1", "unknown key 'zzz' in [build]; known are aux_streams, avg_timing, "),
        ("[build]\ntargets = []", "unknown key 'targets' in [build]; did you mean 'target'?"),
        ("[build]\nprecision = 'int8'", "build.precision must be one of keep, fp16, bf16, not"),
        ("[build]\nforce = true", "unknown key 'force' in [build]"),
        ("[build]\nmodel = 1", "build.model must be a string, not 1"),
        ("[build]\ntarget = 'sm_89'", "build.target must be a list of strings, not 'sm_89'"),
        ("[build]\ntarget = [89]", "build.target must be a list of strings, not [89]"),
        ("[build]\njobs = true", "build.jobs must be an integer, not True"),
        ("[build]\njobs = 0", "build.jobs must be 1 to 1024, not 0"),
        ("[build]\nrepeat = -1", "build.repeat must be 1 to 1000, not -1"),
        ("[build]\nrepeat = 9999999999999", "build.repeat must be 1 to 1000"),
        ("[build]\ntimeout = nan", "build.timeout must be 0.1 to"),
        ("[build]\ntimeout = 0", "build.timeout must be 0.1 to"),
        ("[build]\ntimeout = inf", "build.timeout must be 0.1 to"),
        ("[build]\noptimization_level = 6", "must be 0 to 5, not 6"),
        ("[build]\ntf32 = 1", "build.tf32 must be true or false, not 1"),
        ('[build]\nmodel = "a\\u0000b"', "build.model holds a NUL character"),
        ('[build]\ntarget = ["a\\u0000b"]', "build.target holds a NUL character"),
        ("[build]\nlocked = ''", "build.locked is empty"),
        ("[build]\nbuild_route = ' '", "build.build_route is empty"),
        ("[build]\nban = ['a', '']", "build.ban is empty, or holds an empty text"),
        ("[build", ""),
        ("[build]\njobs = " + "9" * 5000, ""),
        ("a = " + "[" * 100_000, ""),
    ],
)
def test_what_cannot_be_meant_is_named(file: Path, text: str, words: str):
    file.write_text(text)
    assert words in refused(file)


def test_file_that_cannot_be_read(tmp_path: Path):
    refused(tmp_path / "nowhere.toml")
    refused(tmp_path)
    refused(tmp_path / ("x" * 300))
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    refused(tmp_path / "binary.toml")


def test_mutated_files_read_or_are_refused(file: Path):
    dice = random.Random(3)
    for _ in range(500):
        text = bytearray(GOOD.encode())
        for _ in range(dice.randrange(1, 4)):
            place = dice.randrange(len(text))
            text[place : place + dice.randrange(3)] = dice.choice(
                [
                    b"",
                    b"[",
                    b'"',
                    b"\n",
                    b"=",
                    b"\xff",
                    b"1e9",
                    b"nan",
                    b"{",
                    b"0",
                    b"-",
                    b"\\u0000",
                ]
            )
        file.write_bytes(text)
        try:
            read_config(file)
        except ConfigError:
            continue


@given(text=st.text(max_size=60))
def test_any_text_reads_or_is_refused(tmp_path_factory: pytest.TempPathFactory, text: str):
    file = tmp_path_factory.mktemp("config") / "trtplug.toml"
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        read_config(file)
    except ConfigError:
        return
