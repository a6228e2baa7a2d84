"""Options of enterprise TensorRT: from the command line or the config to values of ours."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import click
import pytest

from tests.cli_runner import run_here
from trtplug.backends.options import TrtOptions, option_flag
from trtplug.cli.build import build
from trtplug.cli.build_options import (
    BUILD_SECTIONS,
    read_plugin_options,
    read_trt_options,
    signed_name,
)
from trtplug.cli.config import _BOUNDS, _KEYS
from trtplug.errors import FileUnreadableError, UsageError
from trtplug.plugin.options import PluginOptions


def test_nothing_given_is_the_default():
    assert read_trt_options({}) == TrtOptions()


def test_each_value_has_its_place(tmp_path: Path):
    library = tmp_path / "libx.so"
    library.write_bytes(b"\x7fELF")
    given = {
        "avg_timing": 2,
        "max_tactics": 3,
        "tiling": "FAST",
        "l2_limit": "1MiB",
        "aux_streams": 0,
        "tactic_shared_memory": "48KiB",
        "sparsity": True,
        "version_compatible": True,
        "exclude_lean_runtime": True,
        "hardware_compatibility": "Ampere_Plus",
        "strip": True,
        "refit": "identical",
        "tactic_source": ("-jit_convolutions", "+EDGE_MASK_CONVOLUTIONS"),
        "preview": ("ALIASED_PLUGIN_IO_10_03",),
        "parser_flag": ("-native_instancenorm",),
        "builder_flag": ("strict_nans",),
        "build_route": "-a=1",
        "plugin_library": (library,),
        "trial_run": False,
    }
    made = read_trt_options(given)
    assert set(made.changed()) == set(TrtOptions.__slots__)
    assert made.tiling == "fast"
    assert made.l2_limit_bytes == 1 << 20
    assert made.tactic_sources == ("-JIT_CONVOLUTIONS", "+EDGE_MASK_CONVOLUTIONS")
    assert made.preview == ("+ALIASED_PLUGIN_IO_10_03",)
    assert made.builder_flags == ("STRICT_NANS",)
    (kept,) = made.plugin_libraries
    assert kept.sha256 == hashlib.sha256(b"\x7fELF").hexdigest()
    assert kept.path == str(library.resolve())


def test_what_cannot_be_meant_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="names nothing"):
        signed_name("-", "--preview")
    with pytest.raises(UsageError, match="is no size"):
        read_trt_options({"l2_limit": "much"})
    with pytest.raises(FileUnreadableError):
        read_trt_options({"plugin_library": (tmp_path / "gone.so",)})


def test_what_is_asked_of_the_plugin_has_its_place():
    assert read_plugin_options({}) == PluginOptions()
    given = {
        "plugin": "always",
        "plugin_sites": ("a*", "b"),
        "plugin_tactics": ("igemm*",),
        "plugin_pairs": False,
        "evidence": "e.jsonl",
    }
    assert read_plugin_options(given) == PluginOptions(
        mode="always",
        sites=("a*", "b"),
        tactics=("igemm*",),
        pairs=False,
        evidence=Path("e.jsonl"),
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"plugin": "sometimes"}, "unknown --plugin 'sometimes'"),
        ({"plugin": "never", "plugin_sites": ("a",)}, "--plugin never leaves no site"),
        ({"plugin": "never", "plugin_tactics": ("a",)}, "--plugin never leaves no site"),
    ],
)
def test_what_cannot_be_meant_of_the_plugin_is_refused(given: dict, words: str):
    with pytest.raises(UsageError, match=words):
        read_plugin_options(given)


def test_every_option_is_a_key_of_the_config_and_the_other_way_round():
    flags = {p.name for p in build.params}
    only_on_the_line = {"config", "force", "dry_run", "format"}
    assert flags - only_on_the_line == set(_KEYS)
    assert set(_BOUNDS) <= flags


def test_every_option_has_its_section_and_help_shows_each_once():
    named = [name for names in BUILD_SECTIONS.values() for name in names]
    assert len(named) == len(set(named))
    assert {p.name for p in build.params if isinstance(p, click.Option)} == set(named)
    shown = run_here("build", "--help").out
    for heading in BUILD_SECTIONS:
        assert f"\n{heading}:\n" in shown
    for option in (p for p in build.params if isinstance(p, click.Option)):
        assert len(re.findall(rf"^  {option.opts[0]}\b(?!-)", shown, re.MULTILINE)) == 1
    assert max(map(len, shown.splitlines())) <= 100


def test_flags_by_which_errors_name_an_option_exist():
    there = {o for p in build.params for o in (*p.opts, *p.secondary_opts)}
    assert {option_flag(name) for name in TrtOptions.__slots__} <= there


@pytest.mark.parametrize(
    "option",
    [
        p.opts[-1]
        for p in build.params
        if isinstance(p.type, (click.types.StringParamType, click.types.FuncParamType))
    ],
)
def test_an_empty_text_is_never_taken_for_nothing(option: str):
    """As `--ban "$BANNED"` would be in a script whose variable is not set."""
    given = (option, "") if option.startswith("--") else ("",)
    ran = run_here("build", *given, *(() if option == "model" else ("m.onnx",)))
    assert ran.status == 2
    assert ran.err.startswith("error[usage]: ")
    assert "is empty" in ran.err
    assert "unset variable" in ran.err
