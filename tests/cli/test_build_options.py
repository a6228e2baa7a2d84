"""Options of `trtplug build`: each declared in one row, read into the values of a build."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from tests.cli.options_table import options_table
from tests.cli_runner import run_here
from trtplug.backends.options import (
    ENGINE,
    BuildOptions,
    Option,
    TrtOptions,
    _trt,
    option_flag,
    options_of,
)
from trtplug.backends.trt import capabilities
from trtplug.backends.trt.capabilities import CAPABILITIES, Capability
from trtplug.backends.trt.config import set_trt_options
from trtplug.backends.trt.options import check_trt_options
from trtplug.cli.build import build
from trtplug.cli.build_options import (
    OPTIONS,
    SECTIONS,
    SectionedCommand,
    _fields,
    add_options,
    read_build_options,
    read_plugin_options,
    signed_name,
)
from trtplug.cli.config import read_config
from trtplug.errors import ConfigError, FileUnreadableError, OptionUnsupportedError, UsageError
from trtplug.plugin.options import PluginOptions


def test_nothing_given_is_the_default():
    assert read_build_options({}) == BuildOptions()


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
    made = read_build_options(given).trt
    assert set(made.changed()) == set(TrtOptions.__slots__)
    assert made.tiling == "fast"
    assert made.l2_limit_bytes == 1 << 20
    assert made.tactic_sources == ("-JIT_CONVOLUTIONS", "+EDGE_MASK_CONVOLUTIONS")
    assert made.preview == ("+ALIASED_PLUGIN_IO_10_03",)
    assert made.builder_flags == ("STRICT_NANS",)
    (kept,) = made.plugin_libraries
    assert kept.sha256 == hashlib.sha256(b"\x7fELF").hexdigest()
    assert kept.path == str(library.resolve())


def test_bad_values_are_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="has no name"):
        signed_name("-", "--preview")
    with pytest.raises(UsageError, match="is not a size"):
        read_build_options({"l2_limit": "much"})
    with pytest.raises(FileUnreadableError):
        read_build_options({"plugin_library": (tmp_path / "gone.so",)})


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
        ({"plugin": "never", "plugin_sites": ("a",)}, "--plugin never leaves no site"),
        ({"plugin": "never", "plugin_tactics": ("a",)}, "--plugin never leaves no site"),
    ],
)
def test_what_cannot_be_meant_of_the_plugin_is_refused(given: dict, words: str):
    with pytest.raises(UsageError, match=words):
        read_plugin_options(given)


def test_every_option_is_a_row_with_a_section():
    on_the_line = {p.name for p in build.params if isinstance(p, click.Option)}
    # The group gives every command that it loads -v.
    assert on_the_line - {"verbose"} == {row.key for row in OPTIONS} | {"format"}
    assert {row.section for row in OPTIONS} == set(SECTIONS)
    assert len({row.key for row in OPTIONS}) == len(OPTIONS)


def test_help_shows_each_option_once_under_its_section():
    shown = run_here("build", "--help").out
    for heading in SECTIONS:
        section = shown.partition(f"\n{heading}:\n")[2].partition("\n\n")[0]
        flags = re.findall(r"^  (--[\w-]+)", section, re.MULTILINE)
        assert flags == [row.flag for row in OPTIONS if row.section == heading]
    assert max(map(len, shown.splitlines())) <= 100


@dataclass(frozen=True, slots=True, kw_only=True)
class WithMore(TrtOptions):
    """The options of TensorRT, and one more."""

    graph_depth: int | None = _trt(
        "integer",
        "Maximum depth of graphs.",
        bounds=(1, 7),
        sets="IBuilderConfig.max_graph_depth",
    )


def test_a_new_option_is_one_row_that_is_found_in_all_five(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Command line with help, trtplug.toml, capability check, documentation, builder."""
    new = options_of(WithMore)["graph_depth"]
    rows = (*OPTIONS, new)
    seen: dict[str, object] = {}

    @add_options(rows)
    @click.command(cls=SectionedCommand)
    @click.argument("model", required=False)
    def command(**options: object) -> None:
        seen.update(options)

    command.main(["--graph-depth", "3"], standalone_mode=False)
    assert _fields(WithMore, {k: v for k, v in seen.items() if v}) == {"graph_depth": 3}
    with pytest.raises(click.BadParameter, match="8 is not in the range 1<=x<=7"):
        command.main(["--graph-depth", "8"], standalone_mode=False)
    shown = command.get_help(click.Context(command, max_content_width=100))
    section = shown.partition(f"\n{ENGINE}:\n")[2].partition("\n\n")[0]
    assert re.search(r"--graph-depth N +\[trt\] Maximum depth of graphs\.  \[1 to 7\]", section)

    file = tmp_path / "trtplug.toml"
    file.write_text("[build]\ngraph_depth = 3\n")
    assert read_config(file, rows) == {"graph_depth": 3}
    file.write_text("[build]\ngraph_depth = 8\n")
    with pytest.raises(ConfigError, match=r"build\.graph_depth must be 1 to 7, not 8"):
        read_config(file, rows)

    capability = Capability(name="IBuilderConfig.max_graph_depth", since="11.4")
    monkeypatch.setattr(capabilities, "CAPABILITIES", (*CAPABILITIES, capability))
    check_trt_options(WithMore(graph_depth=3), "11.4.0.106")
    with pytest.raises(OptionUnsupportedError, match=r"--graph-depth: .* TensorRT 11\.4"):
        check_trt_options(WithMore(graph_depth=3), "11.1")

    assert "| `--graph-depth N` | `graph_depth` | Maximum depth of graphs. | trt 11.4 |" in (
        options_table(rows)
    )

    config = SimpleNamespace(max_graph_depth=1, set_flag=lambda _: None)
    trt = SimpleNamespace(
        IBuilderConfig=config, BuilderFlag=SimpleNamespace(EDITABLE_TIMING_CACHE=0)
    )
    assert set_trt_options(trt, config, WithMore(graph_depth=3)) == []
    assert config.max_graph_depth == 3


def test_choices_are_taken_in_any_case(tmp_path: Path):
    shown = run_here("build", "m.onnx", "--precision", "FP8").err
    assert "'FP8' is not one of 'keep', 'fp16', 'bf16'" in shown
    file = tmp_path / "trtplug.toml"
    file.write_text("[build]\nprecision = 'FP16'\n")
    assert read_config(file) == {"precision": "fp16"}
    assert Option("a_b", "flag", ENGINE, "x").flag == "--a-b"


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
