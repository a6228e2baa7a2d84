"""Kits: there and back, what a site's identity holds, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kernels.pair_problems import pair, pairs
from tests.kernels.problems import problem, problems
from trtplug.errors import DocumentError
from trtplug.kernels.catalog import CATALOG
from trtplug.kernels.kit import (
    KIT_FILE,
    KitKernel,
    KitSite,
    make_kit,
    ptx_digest,
    read_kit,
    read_ptx,
    write_kit,
)
from trtplug.target import Sm

PTX = {ptx_digest(text): text for text in ("// one\n", "// two\n", "// größer\n")}
ONE, TWO, _ = PTX


def site(given=None, tactic="igemm_128x64x32_s3", ptx=ONE) -> KitSite:
    given = given or problem((1, 64, 14, 14), 64)
    return KitSite(problem=given, kernels=(KitKernel(tactic=tactic, ptx_sha256=ptx),))


def is_legal(given) -> bool:
    """Kernels wider than the masks of taps have no tactic for a pair."""
    return bool(CATALOG.legal(given, Sm(90)))


@given(st.one_of(problems(("float", "float16")), pairs().filter(is_legal)))
def test_a_site_survives_writing_and_reading(tmp_path_factory, given):
    one = site(given, CATALOG.legal(given, Sm(90))[0].name)
    kit = make_kit(90, [one, one])
    folder = tmp_path_factory.mktemp("kit")
    write_kit(kit, PTX, folder)
    again = read_kit(folder)
    assert again.sm == 90
    assert again.sites == {one.digest: one}
    assert read_ptx(folder, ONE) == PTX[ONE]
    assert [p.name for p in folder.glob("*.ptx")] == [f"{ONE}.ptx"]


def test_the_identity_is_all_that_a_time_depends_on():
    base = problem((1, 64, 14, 14), 64)
    others = [
        site(problem((1, 64, 14, 14), 64, activation="relu")),
        site(problem((1, 64, 14, 14), 64, residual="before_activation")),
        site(problem((2, 64, 14, 14), 64, least=(1, 64, 14, 14))),
        site(problem((1, 64, 14, 14), 64, dtype="bfloat16")),
        site(base, ptx=TWO),
        site(base, tactic="igemm_128x64x32_s4"),
        site(pair((1, 64, 14, 14), 64), tactic="pair_128x64x32"),
    ]
    digests = {s.digest for s in (site(base), *others)}
    assert len(digests) == 8


def test_two_convolutions_alike_are_one_site():
    one = problem((1, 64, 14, 14), 64)
    other = replace(one, x=replace(one.x, name="elsewhere"))
    assert site(one).digest == site(other).digest
    assert len(make_kit(90, [site(one), site(other)]).sites) == 1


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ((), "one at least"),
        (("igemm_128x64x32_s3",) * 2, "each tactic once"),
        (("igemm_128x64x32_s3", "direct_hwc8"), "packings of one site"),
        (("pair_128x64x32",), "CBR has no tactic"),
        (("nothing",), "CBR has no tactic"),
    ],
)
def test_kernels_that_cannot_stand_side_by_side_are_refused(names, words):
    kernels = tuple(KitKernel(tactic=n, ptx_sha256=ONE) for n in names)
    with pytest.raises(ValueError, match=words):
        KitSite(problem=problem((1, 64, 14, 14), 64), kernels=kernels)


def damaged(folder, **fields) -> None:
    written = json.loads((folder / KIT_FILE).read_text())
    (folder / KIT_FILE).write_text(json.dumps(written | fields))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"schema": "trtplug.plugin-kit/2"}, "is not trtplug.plugin-kit/1"),
        ({"sm": None}, "NoneType"),
        ({"sites": {"aa": {}}}, "'x'"),
        ({"sites": []}, "values"),
    ],
)
def test_a_damaged_kit_is_refused(tmp_path, fields, words):
    write_kit(make_kit(90, [site()]), PTX, tmp_path)
    damaged(tmp_path, **fields)
    with pytest.raises(DocumentError) as caught:
        read_kit(tmp_path)
    assert words in caught.value.message


def test_an_edited_site_or_kernel_is_refused(tmp_path):
    write_kit(make_kit(90, [site()]), PTX, tmp_path)
    text = (tmp_path / KIT_FILE).read_text()
    (tmp_path / KIT_FILE).write_text(text.replace('"outputs": 64', '"outputs": 72'))
    with pytest.raises(DocumentError, match="match its digest"):
        read_kit(tmp_path)
    (tmp_path / f"{ONE}.ptx").write_text("// other\n")
    with pytest.raises(DocumentError, match="SHA-256"):
        read_ptx(tmp_path, ONE)


def test_reading_the_module_loads_nothing_heavy():
    code = (
        "import sys, trtplug.kernels.kit, trtplug.ops.plugin_layer;"
        "sys.exit(bool({'numpy', 'onnx'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
