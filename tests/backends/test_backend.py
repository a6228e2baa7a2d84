"""Requests cross into the child as one line and come out the same."""

from __future__ import annotations

import dataclasses
import json
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from trtplug.backends.child import LINE_BLOCK
from trtplug.backends.child_loop import parse_request
from trtplug.backends.options import BuildOptions, PluginLibrary, TrtOptions, trt_options_from
from trtplug.backends.request import BuildRequest, InputRange

TEXT = st.text(max_size=20)
SIZES = st.lists(st.integers(0, 2**31 - 1), max_size=4).map(tuple)
RANGES = st.lists(
    st.builds(InputRange, name=TEXT, min=SIZES, opt=SIZES, max=SIZES), max_size=3
).map(tuple)
TRT_OPTIONS = st.builds(
    TrtOptions,
    avg_timing=st.none() | st.integers(1, 64),
    tiling=st.none() | TEXT,
    sparsity=st.booleans(),
    tactic_sources=st.lists(TEXT, max_size=2).map(tuple),
    plugin_libraries=st.lists(st.builds(PluginLibrary, path=TEXT, sha256=TEXT), max_size=2).map(
        tuple
    ),
)
REQUESTS = st.builds(
    BuildRequest,
    target=TEXT,
    sm=st.integers(10, 999),
    model=TEXT,
    data=st.none() | TEXT,
    ranges=RANGES,
    options=st.builds(
        BuildOptions,
        tf32=st.booleans(),
        optimization_level=st.none() | st.integers(0, 5),
        workspace_bytes=st.none() | st.integers(1, 2**62),
        weight_streaming=st.booleans(),
        trt=TRT_OPTIONS,
    ),
    more_profiles=st.lists(RANGES, max_size=2).map(tuple),
    timing_cache=st.none() | TEXT,
    folder=TEXT,
)


def plain(value: object) -> object:
    """Records as dictionaries, however deep they lie."""
    if isinstance(value, SimpleNamespace):
        return {k: plain(v) for k, v in vars(value).items()}
    return [plain(v) for v in value] if isinstance(value, list) else value


@given(REQUESTS)
def test_request_is_one_line_that_reads_back(request: BuildRequest):
    line = request.to_json()
    assert "\n" not in line
    assert line.isascii()
    assert plain(parse_request(line.encode())) == json.loads(
        json.dumps(dataclasses.asdict(request))
    )


def test_each_option_is_a_flag_and_each_value_another_text():
    flags = BuildOptions().as_flags()
    assert set(flags) == set(BuildOptions.__slots__) - {"trt"}
    for name, value in (
        ("tf32", False),
        ("optimization_level", 0),
        ("workspace_bytes", 1),
        ("weight_streaming", True),
    ):
        assert BuildOptions(**{name: value}).as_flags()[name] != flags[name]


@given(REQUESTS, st.integers(1, 1000))
def test_length_of_a_line_does_not_tell_the_length_of_paths(request: BuildRequest, length: int):
    line = dataclasses.replace(request, folder="/" + "f" * length).to_json() + "\n"
    assert len(line) % LINE_BLOCK == 0
    assert abs(len(line) - len(request.to_json() + "\n")) <= LINE_BLOCK


@given(REQUESTS)
def test_child_of_enterprise_tensorrt_gets_its_options_whole(request: BuildRequest):
    child = parse_request(request.to_json().encode())
    assert trt_options_from(child.options.trt) == request.options.trt


def test_options_of_one_edition_are_flags_only_where_they_are_given():
    library = PluginLibrary(path="/a/libx.so", sha256="ab" * 32)
    trt = TrtOptions(max_tactics=3, tactic_sources=("-JIT", "+EDGE"), plugin_libraries=(library,))
    flags = BuildOptions(trt=trt).as_flags()
    assert set(flags) - set(BuildOptions().as_flags()) == set(trt.changed())
    assert flags["tactic_sources"] == "-JIT, +EDGE"
    assert flags["plugin_libraries"] == "libx.so abababababababab"
