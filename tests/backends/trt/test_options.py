"""Options against releases: a refusal names the release that brought or removed the option."""

from __future__ import annotations

import pytest

from trtplug.backends.options import PluginLibrary, TrtOptions
from trtplug.backends.rtx.backend import RtxBackend
from trtplug.backends.trt.options import FREE_FLAGS, check_trt_options, needs_of, plain_name
from trtplug.errors import BAD_INPUT, OptionUnsupportedError


def refusal(version: str, **options: object) -> OptionUnsupportedError:
    with pytest.raises(OptionUnsupportedError) as caught:
        check_trt_options(TrtOptions(**options), version)  # type: ignore[arg-type]
    assert caught.value.exit_status == BAD_INPUT
    return caught.value


EVERYTHING = {
    "avg_timing": 4,
    "max_tactics": 8,
    "tiling": "fast",
    "l2_limit_bytes": 1 << 20,
    "aux_streams": 2,
    "tactic_shared_memory_bytes": 48 << 10,
    "sparsity": True,
    "version_compatible": True,
    "exclude_lean_runtime": True,
    "hardware_compatibility": "same_compute_capability",
    "strip": True,
    "refit": "identical",
    "tactic_sources": ("-JIT_CONVOLUTIONS", "+EDGE_MASK_CONVOLUTIONS"),
    "preview": ("+ALIASED_PLUGIN_IO_10_03",),
    "parser_flags": ("-NATIVE_INSTANCENORM",),
    "builder_flags": ("STRICT_NANS", "DIRECT_IO"),
    "plugin_libraries": (PluginLibrary(path="/a.so", sha256="00"),),
}


@pytest.mark.parametrize("version", ["10.9.0.34", "10.16.1.11", "11.0.0.114", "11.4.0.106"])
def test_what_all_have_passes(version: str):
    check_trt_options(TrtOptions(**EVERYTHING), version)  # type: ignore[arg-type]
    check_trt_options(TrtOptions(), version)


@pytest.mark.parametrize(
    ("version", "options", "since"),
    [
        ("11.0.0.114", {"build_route": "-a=1"}, "11.1"),
        ("10.9.0.34", {"parser_flags": ("+ENABLE_PLUGIN_OVERRIDE",)}, "10.15"),
        ("10.9.0.34", {"preview": ("+RUNTIME_ACTIVATION_RESIZE_10_10",)}, "10.10"),
        ("10.9.0.34", {"builder_flags": ("DISTRIBUTIVE_INDEPENDENCE",)}, "10.12"),
        ("10.3.0", {"max_tactics": 3}, "10.4"),
    ],
)
def test_what_came_later_is_told_with_its_release(version, options, since):
    error = refusal(version, **options)
    assert error.since == since
    assert f"it came with TensorRT {since}" in error.message
    assert version in error.message
    assert f"install TensorRT {since}" in error.hint


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"builder_flags": ("FP16",)}, "--precision fp16"),
        ({"builder_flags": ("BF16",)}, "--precision bf16"),
        ({"builder_flags": ("INT8",)}, "a quantized model"),
        ({"builder_flags": ("OBEY_PRECISION_CONSTRAINTS",)}, "--keep-fp32"),
        ({"builder_flags": ("REJECT_EMPTY_ALGORITHMS",)}, "edit the timing cache"),
        ({"tactic_sources": ("+CUBLAS",)}, "leave it out"),
        ({"preview": ("+PROFILE_SHARING_0806",)}, "leave it out"),
    ],
)
def test_what_is_gone_comes_with_what_to_do_now(options, words):
    error = refusal("11.4.0.106", **options)
    assert "TensorRT 11.0 removed it" in error.message
    assert words in error.hint


def test_what_is_not_gone_yet_passes_on_the_older_release():
    check_trt_options(TrtOptions(tactic_sources=("-CUBLAS",)), "10.16.1.11")


@pytest.mark.parametrize(
    ("flag", "words"),
    [("FP16", "--precision fp16"), ("TF32", "--tf32"), ("REFIT", "--refit all")],
)
def test_flag_with_an_option_of_its_own_is_not_set_past_it(flag: str, words: str):
    assert words in refusal("10.9.0.34", builder_flags=(flag,)).hint


def test_name_that_nobody_knows_comes_with_those_that_there_are():
    error = refusal("11.4.0.106", tactic_sources=("+CUBLASS",))
    assert "--tactic-source +CUBLASS" in error.message
    assert error.hint == "choose one of: edge_mask_convolutions, jit_convolutions"
    assert "full" in refusal("11.4.0.106", tiling="all").hint
    # The name of another builder flag is no word of this option.
    for word in ("some", "strip_plan", "refit"):
        assert refusal("11.4.0.106", refit=word).hint == "choose one of: all, identical"
    assert "strict_nans" in refusal("11.4.0.106", builder_flags=("NANS",)).hint
    assert refusal("11.4.0.106", refit="some").option == "--refit some"


def test_names_are_taken_in_any_case_and_with_a_sign():
    assert plain_name("-jit_convolutions") == "JIT_CONVOLUTIONS"
    check_trt_options(TrtOptions(hardware_compatibility="Ampere_Plus"), "11.4")


def test_every_option_needs_something_or_is_ours():
    ours = {"trial_run"}
    needing = {n for n in TrtOptions.__slots__ if n not in ours}
    silent = []
    for name in needing:
        value = EVERYTHING.get(name, "-a=1" if name == "build_route" else None)
        if not list(needs_of(TrtOptions(**{name: value}))):  # type: ignore[arg-type]
            silent.append(name)
    assert silent == []


def test_rtx_refuses_each_of_them_by_its_flag():
    for name, value in EVERYTHING.items():
        from trtplug.backends.options import BuildOptions

        options = BuildOptions(trt=TrtOptions(**{name: value}))  # type: ignore[arg-type]
        with pytest.raises(OptionUnsupportedError) as caught:
            RtxBackend().check_options(options)
        assert "--backend trt" in caught.value.hint
        assert caught.value.option.startswith("--")


def test_free_flags_are_in_every_release_or_say_since_when():
    for flag in FREE_FLAGS:
        check_trt_options(TrtOptions(builder_flags=(flag,)), "11.4.0.106")
