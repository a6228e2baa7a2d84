"""Profiles: the bundled ones are whole and consistent; broken ones are refused by name."""

from __future__ import annotations

import dataclasses
import pickle
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every import check_every
from trtplug.errors import ProfileInvalidError
from trtplug.profile import (
    DensePeak,
    GpuProfile,
    bundled_folders,
    find_profile,
    load_profiles,
    nearest_names,
    profiles_digest,
    profiles_of,
)
from trtplug.settings import Settings, resource_folder
from trtplug.target import Sm

if TYPE_CHECKING:
    from pathlib import Path

BUNDLED = load_profiles((resource_folder("profiles"),))
REQUIRED = {
    "t4",
    "rtx2080ti",
    "a100-80gb",
    "a10",
    "rtx3090",
    "jetson-agx-orin",
    "l4",
    "l40s",
    "rtx4090",
    "h100-sxm",
    "h200",
    "b200",
    "rtx5090",
    "rtx-pro-6000-blackwell",
    "dgx-spark",
}
GEFORCE = tuple(p for p in BUNDLED if "GeForce" in p.gpu)
WITH_CLOCK = tuple(p for p in BUNDLED if p.boost_clock_mhz)
WITH_TENSOR_CLOCK = tuple(p for p in WITH_CLOCK if p.dense_peak.fp16_flops_per_s)
OTHERS = tuple(p for p in BUNDLED if "GeForce" not in p.gpu)

GOOD = """\
gpu = "NVIDIA Example 1"
sm = "sm_89"
architecture = "Ada Lovelace"
aliases = ["example one"]
sm_count = 10
memory_bytes = 1024

[dense_peak]
fp32_flops_per_s = 1.5e12
int8_ops_per_s = 6

[source_of]
sm = "paper"
sm_count = "paper"
memory_bytes = "computed"

[source_of.dense_peak]
fp32_flops_per_s = "paper"
int8_ops_per_s = "computed"

[sources.paper]
title = "A paper"
url = "https://example.com/paper"

[sources.computed]
title = "Another"
url = "https://example.com/other"
note = "2 x 512"
"""

# CUDA cores of an SM, from the whitepapers.
CORES_PER_SM = {75: 64, 80: 64, 86: 128, 87: 128, 89: 128, 90: 128, 100: 128, 120: 128, 121: 128}
# FP16 operations per clock and SM with FP32 accumulation: GeForce, and everything else.
FP16_PER_CLOCK = {75: (512, 1024), 86: (512, 1024), 89: (512, 1024), 120: (512, 1024)}
FP16_PER_CLOCK |= {80: (None, 2048), 90: (None, 4096)}


def by_name(profile: GpuProfile) -> str:
    return profile.name


def close(got: float, wanted: float) -> bool:
    return abs(got - wanted) <= 0.02 * wanted


def write(folder: Path, text: str, name: str = "example1") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


# --- the bundled profiles --------------------------------------------------------------------


def test_the_required_profiles_ship():
    assert {p.name for p in BUNDLED} >= REQUIRED


def test_profiles_come_in_order_of_sm_and_name():
    keys = [(p.sm, p.name) for p in BUNDLED]
    assert keys == sorted(keys)
    assert len({p.name for p in BUNDLED}) == len(BUNDLED)


def figures(profile: GpuProfile) -> dict[str, float]:
    """Every figure that a profile has, by the name its source is filed under."""
    top = {f.name: getattr(profile, f.name) for f in dataclasses.fields(GpuProfile)}
    peak = {f"dense_peak.{k}": v for k, v in dataclasses.asdict(profile.dense_peak).items()}
    return {k: v for k, v in (top | peak).items() if isinstance(v, int | float)}


def test_every_figure_has_a_public_source():
    def check(profile):
        assert {"sm", *figures(profile)} == {figure for figure, _ in profile.sources}
        for figure in ("sm", *figures(profile)):
            source = profile.source_of(figure)
            assert source is not None
            assert re.fullmatch(r"https://[\w.-]+\.[a-z]+/\S*", source.url)

    check_every(BUNDLED, check, by_name)


def test_the_roofline_has_what_it_needs():
    def check(profile):
        assert profile.memory_bandwidth_bytes_per_s is not None
        assert profile.dense_peak.fp32_flops_per_s is not None
        assert profile.source_of("nothing") is None

    check_every(BUNDLED, check, by_name)


def test_fp32_peak_is_cores_times_clock():
    def check(profile):
        assert profile.sm_count
        assert profile.boost_clock_mhz
        cores = profile.sm_count * CORES_PER_SM[profile.sm.number]
        assert close(profile.dense_peak.fp32_flops_per_s, cores * 2 * profile.boost_clock_mhz * 1e6)

    check_every(WITH_CLOCK, check, by_name)


def test_fp16_peak_is_the_tensor_cores_rate_with_fp32_accumulation():
    def check(profile):
        clock_mhz = profile.tensor_boost_clock_mhz or profile.boost_clock_mhz
        geforce, other = FP16_PER_CLOCK[profile.sm.number]
        per_clock = geforce if profile in GEFORCE else other
        assert per_clock is not None
        assert profile.sm_count
        wanted = profile.sm_count * per_clock * clock_mhz * 1e6
        assert close(profile.dense_peak.fp16_flops_per_s, wanted)

    check_every(WITH_TENSOR_CLOCK, check, by_name)


def test_the_peaks_keep_the_tensor_cores_ratios():
    def check(profile):
        peak = profile.dense_peak
        fp16 = peak.fp16_flops_per_s
        if fp16 is None:
            assert peak == DensePeak(
                fp32_flops_per_s=peak.fp32_flops_per_s, int8_ops_per_s=peak.int8_ops_per_s
            )
            return
        assert peak.bf16_flops_per_s in (None, fp16)
        assert peak.tf32_flops_per_s is None or close(peak.tf32_flops_per_s, fp16 / 2)
        assert peak.fp8_flops_per_s is None or close(peak.fp8_flops_per_s, fp16 * 2)
        fastest = peak.fp16_accumulate_fp16_flops_per_s or fp16
        assert close(peak.int8_ops_per_s, fastest * 2)

    check_every(BUNDLED, check, by_name)


def test_a_type_has_a_peak_only_where_the_tensor_cores_have_it():
    def check(profile):
        peak, sm = profile.dense_peak, profile.sm.number
        if sm < 80:
            assert peak.tf32_flops_per_s is None
            assert peak.bf16_flops_per_s is None
        if sm < 89:
            assert peak.fp8_flops_per_s is None

    check_every(BUNDLED, check, by_name)


def test_geforce_halves_its_rate_to_accumulate_in_fp32():
    def check(profile):
        peak = profile.dense_peak
        assert close(peak.fp16_accumulate_fp16_flops_per_s, 2 * peak.fp16_flops_per_s)
        if profile.sm.number >= 89:
            assert close(peak.fp8_accumulate_fp16_flops_per_s, 2 * peak.fp8_flops_per_s)

    check_every(GEFORCE, check, by_name)


def test_only_geforce_has_two_rates():
    def check(profile):
        assert profile.dense_peak.fp16_accumulate_fp16_flops_per_s is None
        assert profile.dense_peak.fp8_accumulate_fp16_flops_per_s is None

    check_every(OTHERS, check, by_name)


@pytest.mark.parametrize(
    ("reported", "name"),
    [
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("NVIDIA A100-SXM4-80GB", "a100-80gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H200", "h200"),
        ("Tesla T4", "t4"),
        ("NVIDIA GB10", "dgx-spark"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000-blackwell"),
    ],
)
def test_the_name_that_the_driver_reports_is_found(reported, name):
    found = find_profile(reported, BUNDLED)
    assert found is not None
    assert found.name == name


def test_known_figures_of_the_rtx_4090():
    profile = find_profile("rtx4090", BUNDLED)
    assert profile is not None
    assert profile.sm == Sm(89)
    assert profile.sm_count == 128
    assert profile.memory_bandwidth_bytes_per_s == 1_008_000_000_000
    assert profile.dense_peak.fp16_flops_per_s == 165.2e12


def test_the_readme_names_every_field():
    text = (resource_folder("profiles") / "README.md").read_text(encoding="utf-8")
    fields = [f.name for f in dataclasses.fields(GpuProfile) if f.name not in ("name", "sources")]
    for field in (*fields, *(f.name for f in dataclasses.fields(DensePeak))):
        assert f"`{field}`" in text, field
    for profile in BUNDLED:
        assert f"`{profile.name}`" in text, profile.name


# --- reading ---------------------------------------------------------------------------------


def test_a_good_file_is_read_whole(tmp_path):
    write(tmp_path, GOOD)
    (tmp_path / "README.md").write_text("not a profile")
    (profile,) = load_profiles((tmp_path,))
    assert profile.name == "example1"
    assert profile.aliases == ("example one",)
    assert profile.sm_count == 10
    assert profile.l2_bytes is None
    assert profile.dense_peak.int8_ops_per_s == 6.0
    assert isinstance(profile.dense_peak.int8_ops_per_s, float)
    assert profile.dense_peak.fp16_flops_per_s is None
    source = profile.source_of("memory_bytes")
    assert source is not None
    assert source.note == "2 x 512"
    assert pickle.loads(pickle.dumps(profile)) == profile  # noqa: S301
    assert hash(profile)


def test_a_later_folder_replaces_by_name(tmp_path):
    write(tmp_path, GOOD, "rtx4090")
    loaded = load_profiles((resource_folder("profiles"), tmp_path))
    assert len(loaded) == len(BUNDLED)
    found = find_profile("rtx4090", loaded)
    assert found is not None
    assert found.gpu == "NVIDIA Example 1"


def test_the_folders_are_the_bundled_and_the_users(tmp_path):
    with_own = Settings(store=tmp_path, profiles=tmp_path / "own")
    assert bundled_folders(with_own) == (resource_folder("profiles"), tmp_path / "own")
    assert bundled_folders(Settings(store=tmp_path, profiles=None)) == (
        resource_folder("profiles"),
    )


def test_the_digest_sees_each_figure_and_no_order(tmp_path):
    digest = profiles_digest(BUNDLED)
    assert re.fullmatch("[0-9a-f]{64}", digest)
    assert profiles_digest(BUNDLED[::-1]) == digest
    first = dataclasses.replace(BUNDLED[0], l2_bytes=1)
    assert profiles_digest((first, *BUNDLED[1:])) != digest
    assert profiles_digest(BUNDLED[1:]) != digest


def test_loading_takes_the_standard_library_only():
    code = (
        "import sys; from trtplug.profile import load_profiles; from pathlib import Path;"
        f"load_profiles((Path({str(resource_folder('profiles'))!r}),));"
        "heavy = {'pydantic', 'numpy', 'onnx', 'jinja2', 'rich'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# --- refusals --------------------------------------------------------------------------------

REFUSALS = [
    ("sm_count = 10", "sm_count = true", "sm_count must be a positive whole number, not True"),
    ("sm_count = 10", "sm_count = -1", "sm_count must be a positive whole number, not -1"),
    ("sm_count = 10", "sm_count = 0", "sm_count must be a positive whole number, not 0"),
    ("sm_count = 10", "sm_count = 10.0", "sm_count must be a positive whole number, not 10.0"),
    ("sm_count = 10", 'sm_count = "10"', "sm_count must be a positive whole number, not '10'"),
    ("sm_count = 10", "sm_count = 9223372036854775808", "sm_count must be a positive whole"),
    ("sm_count = 10", "sm_count = 10\nsm_speed = 1", "unknown key sm_speed"),
    ("sm_count = 10\n", "", "source_of.sm_count belongs to no figure"),
    ('sm_count = "paper"\n', "", "sm_count has no source"),
    ('sm = "paper"\n', "", "sm has no source"),
    ('fp32_flops_per_s = "paper"\n', "", "dense_peak.fp32_flops_per_s has no source"),
    ('sm_count = "paper"', 'sm_count = "lore"', "source_of.sm_count is 'lore', which [sources]"),
    ('sm_count = "paper"', "sm_count = 3", "source_of.sm_count is 3, which [sources]"),
    ('sm_count = "paper"', 'sm_count = ["paper"]', "source_of.sm_count is ['paper'], which"),
    ('"computed"', '"paper"', "sources.computed backs no figure"),
    ("fp32_flops_per_s = 1.5e12", "fp32_flops_per_s = nan", "dense_peak.fp32_flops_per_s must be"),
    ("fp32_flops_per_s = 1.5e12", "fp32_flops_per_s = inf", "dense_peak.fp32_flops_per_s must be"),
    ("fp32_flops_per_s = 1.5e12", "fp32_flops_per_s = -1e12", "must be a positive number"),
    ("fp32_flops_per_s = 1.5e12", "fp32_flops_per_s = true", "must be a positive number, not True"),
    ("fp32_flops_per_s = 1.5e12", "fp32_flops_per_s = " + "9" * 400, "must be a positive number"),
    ("fp32_flops_per_s = 1.5e12", "fp32 = 1.5e12", "unknown key dense_peak.fp32"),
    ('gpu = "NVIDIA Example 1"\n', "", "gpu is missing"),
    ('gpu = "NVIDIA Example 1"', 'gpu = " "', "gpu must be a text"),
    ('gpu = "NVIDIA Example 1"', "gpu = 4090", "gpu must be a text, not 4090"),
    ('sm = "sm_89"', 'sm = "8.9"', "sm must look like sm_89, not '8.9'"),
    ('sm = "sm_89"', "sm = 89", "sm must be a text, not 89"),
    ('["example one"]', '"example one"', "aliases must be a list of texts"),
    ('["example one"]', '["example one", 3]', "aliases must be a list of texts"),
    ('["example one"]', '["SM_89"]', "the name 'SM_89' is taken"),
    ('["example one"]', '["all"]', "the name 'all' is taken"),
    ('title = "A paper"\n', "", "sources.paper needs a title"),
    ('url = "https://example.com/paper"\n', "", "sources.paper needs a url"),
    ("https://example.com/paper", "file:///paper", "sources.paper.url must start with https://"),
    ('note = "2 x 512"', "note = 1024", "sources.computed needs a note"),
    ('note = "2 x 512"', 'page = "3"', "unknown key sources.computed.page"),
    ('[sources.paper]\ntitle = "A paper"', "[sources]\nx = 3\n[sources.paper]", "sources.x must"),
    ("[dense_peak]", "[dense_peak", "is not TOML"),
    ("sm_count = 10", "sm_count = " + "9" * 5000, "is not TOML"),
    ("sm_count = 10", "sm_count = " + "[" * 50_000, "is not TOML"),
]  # fmt: skip


def test_facts_of_the_sm_may_be_given_and_are_not_read(tmp_path):
    """Profiles of the first releases have them; `trtplug.kernels.sm` holds them now."""
    write(tmp_path, GOOD)
    (without,) = load_profiles((tmp_path,))
    names = ("shared_memory_per_sm_bytes", "shared_memory_per_block_bytes", "registers_per_sm",
             "registers_per_block")  # fmt: skip
    figures, sources = ("".join(f"{n} = {v}\n" for n in names) for v in ("65536", '"paper"'))
    text = GOOD.replace("sm_count = 10\n", "sm_count = 10\n" + figures)
    write(tmp_path, text.replace("[source_of]\n", "[source_of]\n" + sources))
    assert load_profiles((tmp_path,)) == (without,)
    write(tmp_path, text)
    with pytest.raises(ProfileInvalidError, match="registers_per_sm has no source"):
        load_profiles((tmp_path,))


def test_a_broken_file_is_refused_by_name(tmp_path):
    def check(case):
        old, new, problem = case
        assert old in GOOD
        path = write(tmp_path, GOOD.replace(old, new))
        with pytest.raises(ProfileInvalidError) as caught:
            load_profiles((tmp_path,))
        assert caught.value.path == str(path)
        assert problem in caught.value.problem
        assert str(path) in caught.value.message
        assert "README" in caught.value.hint
        assert caught.value.exit_status == 2

    check_every(REFUSALS, check, lambda case: case[1][:40])


@pytest.mark.parametrize("table", ["dense_peak", "sources", "source_of"])
def test_a_table_that_is_none_is_refused(tmp_path, table):
    write(tmp_path, f'gpu = "x"\nsm = "sm_89"\narchitecture = "x"\n{table} = 3\n')
    with pytest.raises(ProfileInvalidError, match=f"{table} must be a table"):
        load_profiles((tmp_path,))


def test_dense_peak_sources_that_are_no_table_are_refused(tmp_path):
    text = GOOD.replace("[source_of.dense_peak]", "[source_of.wrong]")
    write(tmp_path, text.replace("[source_of]", '[source_of]\ndense_peak = "paper"'))
    with pytest.raises(ProfileInvalidError, match="dense_peak belongs to no figure"):
        load_profiles((tmp_path,))


def test_all_problems_are_told_at_once(tmp_path):
    write(tmp_path, GOOD.replace("sm_count = 10", "sm_count = -1").replace("1.5e12", "-1"))
    with pytest.raises(ProfileInvalidError, match=r"sm_count .*; dense_peak\.fp32"):
        load_profiles((tmp_path,))


@pytest.mark.parametrize("name", ["Example", "a_b", "a b", "-a", "a--b", "sm89", "all"])
def test_a_bad_file_name_is_refused(tmp_path, name):
    write(tmp_path, GOOD, name)
    with pytest.raises(ProfileInvalidError, match="name"):
        load_profiles((tmp_path,))


def test_a_file_that_is_not_utf8_is_refused(tmp_path):
    (tmp_path / "example1.toml").write_bytes(b'gpu = "\xff"')
    with pytest.raises(ProfileInvalidError, match="not UTF-8"):
        load_profiles((tmp_path,))


def test_a_folder_in_place_of_a_file_is_refused(tmp_path):
    (tmp_path / "example1.toml").mkdir()
    with pytest.raises(ProfileInvalidError, match=r"example1\.toml: cannot be read"):
        load_profiles((tmp_path,))


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(ProfileInvalidError, match=r"own: the folder cannot be read"):
        load_profiles((tmp_path / "own",))


def test_a_name_that_two_profiles_claim_is_refused(tmp_path):
    path = write(tmp_path, GOOD.replace("example one", "RTX 4090"))
    with pytest.raises(ProfileInvalidError) as caught:
        load_profiles((resource_folder("profiles"), tmp_path))
    assert caught.value.path == str(path)
    assert "'RTX 4090' already names the profile 'rtx4090'" in caught.value.message


@given(data=st.data())
def test_a_mutated_file_is_read_or_refused_never_worse(tmp_path_factory, data):
    text = GOOD.encode()
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(len(text), start + 30)))
    mutated = text[:start] + data.draw(st.binary(max_size=10)) + text[stop:]
    folder = tmp_path_factory.mktemp("profiles")
    (folder / "example1.toml").write_bytes(mutated)
    try:
        (profile,) = load_profiles((folder,))
    except ProfileInvalidError as error:
        assert error.problem  # noqa: PT017
    else:
        assert {"sm", *figures(profile)} == {figure for figure, _ in profile.sources}


# --- finding ---------------------------------------------------------------------------------

SPELT = st.sampled_from([(p, name) for p in BUNDLED for name in (p.name, p.gpu, *p.aliases)])


@given(spelt=SPELT, data=st.data())
def test_a_name_is_found_however_it_is_spelt(spelt, data):
    profile, name = spelt
    parts = re.split(r"[\s_-]+", name)
    gaps = data.draw(
        st.lists(st.sampled_from(["", " ", "-", "_"]), min_size=len(parts), max_size=len(parts))
    )
    text = "".join(part + gap for part, gap in zip(parts, gaps, strict=True))
    text = "".join(data.draw(st.sampled_from([c.lower(), c.upper()])) for c in text)
    assert find_profile(text, BUNDLED) is profile


@given(name=st.text(max_size=20))
def test_an_unknown_name_finds_nothing_and_has_near_names(name):
    found = find_profile(name, BUNDLED)
    near = nearest_names(name, BUNDLED)
    assert len(near) <= 3
    assert len(set(near)) == len(near)
    assert set(near) <= {p.name for p in BUNDLED} | {str(p.sm) for p in BUNDLED}
    if found is not None:
        assert near[0] == found.name


@given(profile=st.sampled_from(BUNDLED), data=st.data())
def test_one_slip_still_leads_to_the_name(profile, data):
    long_enough = len(profile.name) >= 5
    at = data.draw(st.integers(0, len(profile.name) - 1))
    slip = profile.name[:at] + profile.name[at + 1 :]
    near = nearest_names(slip, BUNDLED, n=6)
    assert profile.name in near or not long_enough


def test_near_names_hold_sms_too():
    assert nearest_names("sm_88", BUNDLED)[0].startswith("sm_8")
    assert nearest_names("rtx4090ti", BUNDLED)[0] == "rtx4090"
    assert nearest_names("RTX 490", BUNDLED, n=1) == ("rtx4090",)
    assert nearest_names("zzzzzz", BUNDLED) == ()
    assert nearest_names("rtx4090", ()) == ()
    assert nearest_names("x" * 10_000_000, BUNDLED) == ()


def test_profiles_of_an_sm():
    assert {p.name for p in profiles_of(Sm(120), BUNDLED)} >= {"rtx5090", "rtx-pro-6000-blackwell"}
    assert all(p.sm == Sm(86) for p in profiles_of(Sm(86), BUNDLED))
    assert profiles_of(Sm(999), BUNDLED) == ()
