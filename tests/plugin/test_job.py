"""What a build hands to the offer: the GPU at hand, the wish, and where logs go."""

from __future__ import annotations

import dataclasses

import pytest

from tests.models import conv_relu, save
from tests.plugin.samples import source_of
from trtplug.backends.gpu import Gpu, GpuSearch
from trtplug.backends.options import BuildOptions, TrtOptions
from trtplug.kernels import compile as compiling
from trtplug.kernels import nvrtc
from trtplug.kernels.nvrtc import Compiled
from trtplug.plan import PlannedTarget
from trtplug.plugin import job as for_build
from trtplug.plugin.evidence import NO_EVIDENCE
from trtplug.plugin.job import KERNEL_LOG, PluginJob
from trtplug.plugin.options import PluginOptions
from trtplug.profile import load_profiles
from trtplug.settings import resource_folder
from trtplug.store import Store

TARGET = PlannedTarget(
    target="trt-11.4:sm_90", sm="sm_90", gpus=("h100-sxm",), supported=True, key="", in_store=False
)


@pytest.fixture
def job(tmp_path, monkeypatch) -> PluginJob:
    gpus = (Gpu(name="NVIDIA H200", sm=None),)
    found = GpuSearch(gpus=gpus, driver="13.0", problem="")
    monkeypatch.setattr(for_build, "find_gpus", lambda: found)
    return PluginJob(
        wish=PluginOptions(mode="always"),
        evidence=NO_EVIDENCE,
        profiles=load_profiles((resource_folder("profiles"),)),
        options=BuildOptions(),
        store=Store(root=tmp_path / "store"),
        jobs=2,
    )


@pytest.fixture
def source(tmp_path):
    return source_of(save(conv_relu(), tmp_path / "m.onnx"), precision="fp16")


def offers(job, source, folder, events=None):
    (folder / "sm_90").mkdir()

    def hear(target, event):
        if events is not None:
            events.append((target, event["event"]))

    return job.offers(source, (TARGET,), folder, folder / "work", hear)


def test_the_gpus_own_profile_predicts(job, source):
    (offer,) = job.choices(source, (TARGET,)).values()
    assert " is predicted fastest on h200: " in offer.choices.sites[0].reason


def test_a_limit_on_shared_memory_is_kept(job, source):
    options = BuildOptions(trt=TrtOptions(tactic_shared_memory_bytes=0))
    (offer,) = dataclasses.replace(job, options=options).choices(source, (TARGET,)).values()
    assert offer.choices.sites[0].tactics == ("direct_hwc8",)


def test_offers_of_a_target_go_into_a_folder_of_its_own(job, source, tmp_path):
    events = []
    (offer,) = offers(job, source, tmp_path, events).values()
    assert offer.model == tmp_path / "work/plugin-sm_90/model.onnx"
    assert offer.kit == tmp_path / "work/plugin-sm_90/kit"
    assert {target for target, _ in events} == {TARGET.target}
    assert not (tmp_path / "sm_90" / KERNEL_LOG).exists()


def test_what_the_compiler_refused_lies_beside_the_build_log(job, source, tmp_path, monkeypatch):
    refused = Compiled(ptx=None, cubin=None, log="error: no\n")
    monkeypatch.setattr(compiling.nvrtc, "compile_source", lambda *_: refused)
    (offer,) = offers(job, source, tmp_path).values()
    assert offer.model is None
    assert "error: no" in (tmp_path / "sm_90" / KERNEL_LOG).read_text()


def test_kernels_count_only_where_there_can_be_any(job, monkeypatch):
    native = dataclasses.replace(job, wish=PluginOptions())
    assert native.kernels_digest() == ""
    first = job.kernels_digest()
    assert len(first) == 64
    monkeypatch.setattr(nvrtc, "version", lambda: "99.9")
    assert job.kernels_digest() != first
