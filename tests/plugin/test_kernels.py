"""Kernels of chosen sites: those that the compiler refuses drop out, with its words kept."""

from __future__ import annotations

import pytest

from tests.models import conv_chain, conv_relu, save
from tests.plugin.samples import query_for, source_of
from trtplug.kernels import compile as compiling
from trtplug.kernels import nvrtc
from trtplug.kernels.catalog import CATALOG
from trtplug.kernels.choose import KernelTarget
from trtplug.kernels.kit import ptx_digest
from trtplug.kernels.nvrtc import Compiled
from trtplug.plugin.choose import choose_sites, kernels_digest, plugin_units
from trtplug.plugin.offer import compile_units
from trtplug.plugin.units import list_candidates
from trtplug.store import Store
from trtplug.target import Sm

H200 = KernelTarget(sm=Sm(90), profile=None)


@pytest.fixture
def refuse(monkeypatch):
    """Has the compiler refuse kernels whose source holds any of these words."""

    def by(*words):
        compile_source = nvrtc.compile_source

        def compile_or_refuse(source, sm, *defines):
            if any(w in source.text for w in words):
                return Compiled(ptx=None, cubin=None, log="error: made to refuse\nline 2\n")
            return compile_source(source, sm, *defines)

        monkeypatch.setattr(compiling.nvrtc, "compile_source", compile_or_refuse)

    return by


def units(tmp_path, model, precision="fp16", **given):
    source = source_of(save(model, tmp_path / "m.onnx"), precision=precision)
    candidates = list_candidates(source)
    return plugin_units(candidates, choose_sites(candidates, query_for(**given)), CATALOG)


def test_equal_sites_share_kernels(tmp_path):
    chosen = units(tmp_path, conv_chain(3))
    done = []
    ready = compile_units(chosen, H200, Store(root=tmp_path / "s"), 2, done.append)
    assert len(done) == 3 * len(chosen[0].tactics)
    assert len({u.site.digest for u in ready.units}) == 1
    assert set(ready.ptx) == {k.ptx_sha256 for u in ready.units for k in u.site.kernels}
    assert all(ptx_digest(text) == name for name, text in ready.ptx.items())
    assert (ready.lost, ready.refused, ready.log) == ({}, (), "")


def test_a_kernel_that_does_not_compile_drops_out(tmp_path, refuse):
    chosen = units(tmp_path, conv_relu(shape=(8, 64, 56, 56), out_channels=64))
    first, second = (t.name for t in chosen[0].tactics)
    refuse(f"// {first}\n")
    ready = compile_units(chosen, H200, None, 2)
    (unit,) = ready.units
    assert [k.tactic for k in unit.site.kernels] == [second]
    assert unit.tactic.name == second
    assert ready.lost == {}
    assert ready.log.startswith("== trtplug_cbr for sm_90, source ")
    assert ready.log.endswith(": refused\nerror: made to refuse\nline 2\n")


def test_a_site_without_any_kernel_left_is_native(tmp_path, refuse):
    chosen = units(tmp_path, conv_relu())
    refuse("Site")
    ready = compile_units(chosen, H200, None, 2)
    assert ready.units == ()
    (reason,) = ready.lost.values()
    assert reason.startswith("no kernel compiled of ")
    assert reason.endswith("kernels.log has the compiler's messages")
    assert ready.ptx == {}


def test_an_sm_that_the_compiler_does_not_know(tmp_path, monkeypatch):
    chosen = units(tmp_path, conv_relu())
    monkeypatch.setattr(compiling.nvrtc, "supported_sms", lambda: frozenset({89}))
    ready = compile_units(chosen, H200, None, 2)
    assert ready.units == ()
    assert "unsupported-sm" in ready.log


def test_the_digest_changes_with_the_compiler(monkeypatch):
    first = kernels_digest()
    assert len(first) == 64
    monkeypatch.setattr(nvrtc, "version", lambda: "99.9")
    assert kernels_digest() != first
