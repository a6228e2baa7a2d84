"""Which sites get the plugin, and the sentence that says why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kernels.pair_problems import pair
from tests.kernels.problems import problem, problems
from tests.plugin.test_evidence import GPU, one
from trtplug.errors import UsageError
from trtplug.kernels.catalog import CATALOG
from trtplug.kernels.choose import KernelTarget
from trtplug.kernels.kit import KitKernel, KitSite
from trtplug.plugin.choose import PluginQuery, choose_sites, plugin_units, without
from trtplug.plugin.evidence import Evidence, problem_digest
from trtplug.plugin.options import PluginOptions
from trtplug.plugin.units import PluginCandidate
from trtplug.target import Sm

PLACE = KernelTarget(sm=Sm(90), profile=None, shared_bytes=47 * 1024)


def site(label, asked=None, obstacle=""):
    return PluginCandidate(label=label, convs=(label,), problem=asked, obstacle=obstacle)


PAIR = pair((1, 32, 14, 14), 64)
UNITS = (
    site("a", problem((1, 64, 56, 56), 64)),
    site("b", problem((1, 64, 28, 28), 64)),
    site("dw", PAIR.depthwise),
    site("pw", PAIR.pointwise),
    site("c", obstacle="the size of t is not known"),
    PluginCandidate(label="dw+pw", convs=("dw", "pw"), problem=PAIR),
)


def choose(*measurements, units=UNITS, place=PLACE, **given):
    evidence = Evidence(measurements=measurements, sha256=None)
    options = PluginOptions(**given)
    query = PluginQuery(options=options, gpu=GPU, place=place, evidence=evidence)
    return choose_sites(units, query)


def by_site(sites):
    return {s.site: (s.choice, s.reason) for s in sites}


def labels(sites, units=UNITS):
    return [u.candidate.label for u in plugin_units(units, sites, CATALOG)]


def measurement(asked, **changed):
    return one(problem_sha256=problem_digest(asked), **changed)


def test_auto_is_native_where_nothing_was_measured():
    choices = choose()
    assert labels(choices) == []
    assert by_site(choices)["a"] == ("native", "nothing measured here")
    assert by_site(choices)["c"] == ("native", "the size of t is not known")


def test_auto_takes_the_plugin_where_a_measurement_says_so():
    wins, loses = measurement(UNITS[0].problem), measurement(UNITS[1].problem, plugin_us=(90.0,))
    choices = choose(wins, loses)
    assert labels(choices) == ["a"]
    choice, reason = by_site(choices)["a"]
    assert choice == "plugin"
    assert reason.startswith(
        "measured on NVIDIA H200 (driver 580.95.05, TensorRT 11.4.0.106): plugin 12.00 us with its "
        "reformats, native 21.00 us, medians of 3 and 3 samples; "
    )
    choice, reason = by_site(choices)["b"]
    assert choice == "native"
    assert "plugin 91.00 us with its reformats, native 21.00 us" in reason


def test_a_measurement_on_another_gpu_says_nothing():
    assert labels(choose(measurement(UNITS[0].problem, gpu="NVIDIA L4"))) == []


def test_within_the_spread_is_native_and_says_so():
    close = measurement(UNITS[0].problem, plugin_us=(10.0, 19.0, 40.0), reformat_us=())
    assert by_site(choose(close))["a"][1].endswith("which is within the spread of the samples")


def test_the_packing_of_a_tactic_that_was_measured_is_taken():
    wins = measurement(UNITS[0].problem, tactic="igemm_32x64x64_s3")
    sites = choose(wins)
    (unit,) = plugin_units(UNITS, sites, CATALOG)
    assert unit.tactics[0].name == "igemm_32x64x64_s3"
    assert next(s.packing for s in sites if s.site == "a") == "tiles_64x64"


@pytest.mark.parametrize("given", [{}, {"tactics": ("direct*",)}])
def test_a_tactic_that_was_measured_and_cannot_be_offered_proves_nothing(given):
    name = "igemm_32x64x64_s3" if given else "igemm_of_another_release"
    choices = choose(measurement(UNITS[0].problem, tactic=name), **given)
    assert by_site(choices)["a"] == (
        "native",
        f"{name}, which was measured, is no tactic that may be offered here",
    )


def test_a_name_with_brackets_is_found_as_it_is_written():
    units = (site("a=[0]; é", UNITS[0].problem), site("b", UNITS[1].problem))
    choices = choose(units=units, mode="always", sites=("a=[0]; é",))
    assert labels(choices, units) == ["a=[0]; é"]


def test_always_takes_whatever_is_legal_and_a_pair_as_one():
    choices = choose(mode="always")
    assert labels(choices) == ["dw+pw", "a", "b"]
    assert by_site(choices)["dw"] == ("plugin", "in pair dw+pw")
    assert by_site(choices)["c"] == ("native", "the size of t is not known")
    apart = choose(mode="always", pairs=False)
    assert labels(apart) == ["a", "b", "dw", "pw"]
    assert by_site(apart)["dw+pw"] == ("native", "--no-plugin-pairs")


def test_always_says_what_stands_in_the_way():
    units = (site("a", problem((1, 8, 8, 8), 8, dtype="bfloat16")),)
    old = KernelTarget(sm=Sm(75), profile=None, shared_bytes=47 * 1024)
    choices = choose(units=units, place=old, mode="always")
    assert by_site(choices)["a"] == (
        "native",
        "no tactic is legal on sm_75: The SM has no arithmetic for this type; BF16 begins with "
        "sm_80.",
    )


def test_never_is_native():
    assert set(by_site(choose(mode="never")).values()) == {("native", "--plugin never")}


def test_globs_name_sites_and_pairs():
    choices = choose(mode="always", sites=("a", "d?"))
    assert labels(choices) == ["a", "dw"]
    assert by_site(choices)["b"] == ("native", "not among --plugin-sites")
    assert labels(choose(mode="always", sites=("dw+*",))) == ["dw+pw"]


def test_globs_of_tactics_leave_what_they_name():
    choices = choose(mode="always", tactics=("direct_*",))
    assert {t for s in choices for t in s.tactics} == {"direct_hwc8"}
    assert "--plugin-tactics excludes every legal tactic: pair_" in by_site(choices)["dw+pw"][1]


@pytest.mark.parametrize(
    ("given", "words", "hint"),
    [
        ({"sites": ("dv",)}, "--plugin-sites 'dv' matches nothing", "did you mean 'dw'?"),
        ({"sites": ("dw+pw",), "pairs": False}, "--plugin-sites 'dw+pw' matches nothing", "'pw'"),
        ({"sites": ("zzzz",)}, "'zzzz' matches nothing", "`trtplug sites` lists them"),
        ({"tactics": ("igem_64x64",)}, "--plugin-tactics 'igem_64x64'", "igemm_64x64"),
    ],
)
def test_a_glob_that_matches_nothing_is_an_error_that_names_near_ones(given, words, hint):
    for mode in ("auto", "always"):
        with pytest.raises(UsageError) as refused:
            choose(mode=mode, **given)
        assert words in refused.value.message
        assert hint in refused.value.hint


def test_what_lost_its_kernels_is_native_with_the_reason_and_so_are_both_of_a_pair():
    choices = without(choose(mode="always"), {"dw+pw": "no kernel", "a": "none"})
    assert labels(choices) == ["b"]
    assert by_site(choices)["dw+pw"] == by_site(choices)["dw"] == ("native", "no kernel")
    assert by_site(choices)["a"] == ("native", "none")
    lost = next(s for s in choices if s.site == "dw")
    assert (lost.tactics, lost.packing) == ((), None)


@given(
    st.lists(problems(dtypes=("float16", "float")), min_size=1, max_size=4),
    st.sampled_from(("auto", "always", "never")),
    st.sets(st.integers(0, 3)),
    st.booleans(),
)
def test_choices_hold_their_promises(asked, mode, measured, wins):
    units = tuple(site(str(n), p) for n, p in enumerate(asked))
    native = (1e6,) if wins else (0.1,)
    lines = [measurement(asked[n], native_us=native) for n in measured if n < len(asked)]
    choices = choose(*lines, units=units, mode=mode)
    assert [s.site for s in choices] == [u.label for u in units]
    known = {line.problem_sha256 for line in lines}
    for planned in choices:
        assert planned.reason
        assert (planned.choice == "plugin") == bool(planned.tactics) == bool(planned.packing)
        if mode == "never" or (mode == "auto" and not (wins and planned.problem_sha256 in known)):
            assert planned.choice == "native"
        if mode == "always":
            assert planned.choice == "plugin"
    packings = {s.site: s.packing for s in choices}
    for unit in plugin_units(units, choices, CATALOG):
        # What is offered fits side by side in a kit.
        kernels = tuple(KitKernel(tactic=t.name, ptx_sha256="") for t in unit.tactics)
        kit = KitSite(problem=unit.problem, kernels=kernels)
        assert kit.packing == packings[unit.candidate.label]
