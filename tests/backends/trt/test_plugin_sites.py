"""Sites of a kit as plugins ask for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.kernels.pair_problems import pair
from tests.kernels.problems import problem
from trtplug.backends.trt.plugins import (
    PluginSites,
    describe_site,
    read_key,
    tactic_of,
    tactics_by_formats,
)
from trtplug.errors import DocumentError
from trtplug.kernels.kit import KitKernel, KitSite, make_kit, mark_ptx, ptx_digest, write_kit
from trtplug.ops.plugin_layer import KEY_ATTRIBUTES, site_key

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = ("// one\n", "// two\n")
GEMM = KitSite(
    problem=problem((1, 16, 9, 9), 24, residual="before_activation"),
    kernels=tuple(
        KitKernel(tactic=name, ptx_sha256=ptx_digest(text))
        for name, text in zip(("igemm_64x64x64_s2", "igemm_32x64x64_s3"), TEXTS, strict=True)
    ),
)
PAIR = KitSite(
    problem=pair((1, 16, 8, 8), 24),
    kernels=(KitKernel(tactic="pair_64x32x64", ptx_sha256=ptx_digest(TEXTS[0])),),
)


class Field:
    def __init__(self, name: str, *values: int) -> None:
        self.name, self.data = name, np.array(values, np.int32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_kit(make_kit(90, [GEMM, PAIR]), {ptx_digest(t): t for t in TEXTS}, tmp_path)
    return tmp_path


def test_sites_are_found_by_their_key(folder: Path):
    sites = PluginSites(folder)
    assert sites.layer_types() == ("CBRPair", "CBRResidual")
    for site in (GEMM, PAIR):
        fields = [Field(n, v) for n, v in zip(KEY_ATTRIBUTES, site_key(site.digest), strict=True)]
        assert sites.find(*read_key([Field("other", 7), *fields])) == site
    with pytest.raises(ValueError, match="no site with the key 1, 2"):
        sites.find(1, 2)
    with pytest.raises(ValueError, match="lacks site_key_low"):
        read_key([Field("site_key_high", 1)])


def test_kernels_say_whose_they_are(folder: Path):
    sites = PluginSites(folder)
    for tactic, text in zip(GEMM.tactics, TEXTS, strict=True):
        assert tactic_of(GEMM, tactic.number) is tactic
        assert sites.ptx(GEMM, tactic.number) == mark_ptx(text, GEMM.digest, tactic.number)
    with pytest.raises(ValueError, match=f"site {GEMM.digest} has no tactic 1; it has"):
        sites.ptx(GEMM, 1)


def test_tactics_of_one_format_stand_together():
    ((formats, numbers),) = tactics_by_formats(GEMM).items()
    assert [f.layout for f in formats] == ["HWC8", "LINEAR", "LINEAR", "HWC8", "HWC8"]
    assert numbers == [t.number for t in GEMM.tactics]


def test_metadata_has_the_whole_digest():
    assert describe_site(GEMM) == f"trtplug site={GEMM.digest} op=CBR packing=tiles_64x64"


def test_a_missing_or_damaged_kernel_is_told_at_once(folder: Path):
    file = folder / f"{ptx_digest(TEXTS[1])}.ptx"
    file.write_text("// three\n")
    with pytest.raises(DocumentError, match="SHA-256"):
        PluginSites(folder)
    file.unlink()
    with pytest.raises(DocumentError, match=file.name):
        PluginSites(folder)
