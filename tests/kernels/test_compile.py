"""Compiling: outcomes, the store, and PTX that assembles for every SM."""

import dataclasses

import pytest

from tests.kernels.assemble import assemble_ptx
from tests.kernels.kernels import find_tactic
from tests.kernels.problems import problem
from trtplug.kernels import nvrtc
from trtplug.kernels.compile import CompiledKernel, Refused, compile_kernel, compile_many
from trtplug.kernels.loop import disassemble
from trtplug.kernels.sm import SMS
from trtplug.kernels.source import MIN_BLOCKS, assemble
from trtplug.store import Store
from trtplug.target import Sm

SM80 = Sm(80)
COPY = """
extern "C" __global__ void k(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }
"""
DENSE = problem((1, 16, 8, 8), 16, activation="silu", residual="after_activation")
STEM = problem((1, 3, 9, 9), 16, strides=(2, 2), activation="relu")
DEPTHWISE = problem((1, 16, 8, 8), 16, group=16, activation="hard_swish", alpha=1 / 6, beta=0.5)
FLOAT = problem((1, 5, 8, 8), 7, dtype="float", activation="gelu")


@pytest.fixture
def store(tmp_path):
    return Store(root=tmp_path / "store")


def test_the_second_time_comes_from_the_store(store, monkeypatch):
    source = assemble("k", COPY)
    first = compile_kernel(source, SM80, store)
    assert isinstance(first, CompiledKernel)

    def refuse(*_):
        raise AssertionError("compiled again")

    monkeypatch.setattr(nvrtc, "compile_source", refuse)
    assert compile_kernel(source, SM80, store) == first


def test_a_store_that_cannot_be_written_costs_time_alone(tmp_path):
    (tmp_path / "file").write_text("")
    compiled = compile_kernel(assemble("k", COPY), SM80, Store(root=tmp_path / "file"))
    assert isinstance(compiled, CompiledKernel)


@pytest.mark.parametrize("change", ["text", "sm", "compiler"])
def test_any_change_of_what_decides_is_compiled_again(store, monkeypatch, change):
    compile_kernel(assemble("k", COPY), SM80, store)
    calls = []
    real = nvrtc.compile_source
    monkeypatch.setattr(nvrtc, "compile_source", lambda *a: calls.append(a) or real(*a))
    if change == "compiler":
        monkeypatch.setattr(nvrtc, "version", lambda: "99.0")
    text = COPY + "\n" if change == "text" else COPY
    compile_kernel(assemble("k", text), Sm(90) if change == "sm" else SM80, store)
    assert len(calls) == 1


def test_a_refused_source_is_an_outcome_with_the_compilers_words(store):
    outcome = compile_kernel(assemble("k", "this is no CUDA"), SM80, store)
    assert isinstance(outcome, Refused)
    assert outcome.status == "refused"
    assert "error" in outcome.log
    # Not kept: the next compiler may take it.
    assert not [p for p in store.root.glob("*/*") if p.is_dir()]


def test_an_sm_that_the_compiler_does_not_know_is_an_outcome():
    outcome = compile_kernel(assemble("k", COPY), Sm(42), None)
    assert isinstance(outcome, Refused)
    assert outcome.status == "unsupported-sm"
    assert "sm_80" in outcome.log


def test_many_go_on_past_a_refused_one_and_keep_their_order(store):
    good, bad = assemble("k", COPY), assemble("k", "no")
    seen = []
    wanted = [(good, SM80), (bad, SM80), (good, Sm(75)), (good, SM80)]
    outcomes = compile_many(wanted, store, 2, seen.append)
    assert [type(o) for o in outcomes] == [CompiledKernel, Refused, CompiledKernel, CompiledKernel]
    assert [o.sm for o in outcomes] == [SM80, SM80, Sm(75), SM80]
    assert seen == list(outcomes)


def test_what_is_no_cubin_is_refused_in_words():
    with pytest.raises(ValueError, match="nvdisasm"):
        disassemble([b"no code"], SM80)


def test_another_limit_of_registers_is_tried_where_the_first_spills():
    """A hundred numbers at once do not fit the 42 registers that 12 blocks leave a thread."""
    text = f"""extern "C" __global__ void __launch_bounds__(128, {MIN_BLOCKS}) k(float* x) {{
      float kept[100];
    #pragma unroll
      for (int i = 0; i < 100; ++i) kept[i] = x[threadIdx.x + i * 128];
      __syncthreads();
    #pragma unroll
      for (int i = 0; i < 100; ++i) x[threadIdx.x + i * 128] = kept[i] * kept[(i * 37 + 1) % 100];
    }}"""
    source = assemble("k", text, min_blocks=(12, 3))
    first = compile_kernel(dataclasses.replace(source, min_blocks=(12,)), Sm(86), None)
    assert first.usage.spill_bytes > 0
    assert compile_kernel(source, Sm(86), None).usage.spill_bytes == 0
    # Where all of them spill, the least counts.
    usages = [
        compile_kernel(dataclasses.replace(source, min_blocks=n), Sm(86), None).usage
        for n in ((12, 8), (8, 12))
    ]
    assert usages[0] == usages[1]
    assert 0 < usages[0].spill_bytes < first.usage.spill_bytes


@pytest.mark.parametrize("number", sorted(SMS))
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("igemm_32x64x64_s3", DENSE),
        ("stem_128x32x32", STEM),
        ("depthwise_1", DEPTHWISE),
        ("direct_hwc8", DENSE),
        ("direct_linear", FLOAT),
    ],
)
def test_the_lowered_ptx_assembles_for_every_sm(number, name, given):
    kernel = compile_kernel(find_tactic(name).generate(given, Sm(number)), Sm(number), None)
    assert isinstance(kernel, CompiledKernel), kernel.log
    # CUDA 13 renamed sm_101 to sm_110: older drivers know no such target.
    assert float(kernel.ptx_version) < 9.0 or number == 110
    assert assemble_ptx(kernel.ptx, f"sm_{number}") == ""


def test_one_version_lower_does_not_assemble():
    """So the version is the oldest: ptxas refuses the one before."""
    kernel = compile_kernel(find_tactic("igemm_32x64x64_s3").generate(DENSE, SM80), SM80, None)
    assert isinstance(kernel, CompiledKernel)
    assert kernel.ptx_version == "7.0"
    older = kernel.ptx.replace(".version 7.0", ".version 6.5")
    assert "requires PTX ISA .version 7.0" in assemble_ptx(older, "sm_80")


def test_bf16_assembles_for_sm_80():
    given = dataclasses.replace(DENSE, dtype="bfloat16")
    kernel = compile_kernel(find_tactic("igemm_32x64x64_s3").generate(given, SM80), SM80, None)
    assert isinstance(kernel, CompiledKernel), kernel.log
    assert kernel.ptx_version == "7.0"
    assert assemble_ptx(kernel.ptx, "sm_80") == ""
