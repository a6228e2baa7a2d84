from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lock.locks import RTX, TRT, layer, tactic
from trtplug.lock.diff import diff_locks
from trtplug.lock.lock import LockGpu, LockSite


def test_a_lock_does_not_differ_from_itself():
    for lock in (TRT, RTX):
        diff = diff_locks(lock, lock)
        assert not diff.differs
        assert not diff.choices_differ
        assert (diff.inputs, diff.outputs, diff.layers, diff.nodes) == ((), (), (), ())


INPUTS = {
    "model sha256": {"model": replace(TRT.model, sha256="f" * 64)},
    "target": {"target": "trt-11.4:sm_89"},
    "backend version": {"backend_version": "11.4.0.107"},
    "gpu name": {"gpu": replace(TRT.gpu, name="NVIDIA H100")},
    "gpu driver": {"gpu": replace(TRT.gpu, driver="1")},
    "gpu cuda": {"gpu": replace(TRT.gpu, cuda="12.8")},
    "shapes": {"shapes": ("x=2x3x8x8",)},
    "precision": {"precision": "fp16"},
    "flag tf32": {"flags": {"tf32": "off"}},
}


@pytest.mark.parametrize("field", INPUTS)
def test_each_input_is_named(field):
    diff = diff_locks(TRT, replace(TRT, **INPUTS[field]))
    assert [d.field for d in diff.inputs] == [field]
    assert diff.differs
    assert not diff.choices_differ


def test_a_lock_without_a_gpu_differs_in_each_of_its_fields():
    diff = diff_locks(TRT, replace(TRT, gpu=None))
    assert len(diff.inputs) == 4
    assert LockGpu.__slots__


def renamed(lock, suffix="_myl7_9"):
    """Every layer called otherwise."""
    return replace(
        lock,
        layers=tuple(
            replace(x, name=re.sub(r"_myl\d+_\d+", f"{suffix}{n}", x.name))
            for n, x in enumerate(lock.layers)
        ),
    )


def test_renamed_layers_are_found_again():
    diff = diff_locks(TRT, renamed(TRT))
    assert [c.kind for c in diff.layers] == ["renamed"] * 3
    assert not diff.differs


def test_a_renamed_layer_with_another_kernel_is_changed():
    other = renamed(replace(TRT, layers=(*TRT.layers[:2], replace(TRT.layers[2], kernel="new"))))
    diff = diff_locks(TRT, other)
    changed = [c for c in diff.layers if c.kind == "changed"]
    assert [(c.before_name, c.onnx_nodes) for c in changed] == [("conv1_myl0_2", ("conv1",))]
    assert [str(d) for d in changed[0].differences] == ["kernel: new, not fprop"]
    assert [(n.node, n.before, n.after) for n in diff.nodes] == [
        ("conv1", "correlation fprop 0x2", "correlation new 0x2")
    ]
    assert diff.differs


def test_another_tactic_of_the_same_kernel_is_a_change():
    one = replace(TRT.layers[2], tactic_hash="0x9")
    diff = diff_locks(TRT, replace(TRT, layers=(*TRT.layers[:2], one)))
    assert [str(d) for d in diff.layers[0].differences] == ["tactic: 0x9, not 0x2"]


def test_other_fusion_is_told_by_node():
    split = (
        TRT.layers[0],
        layer("conv0_myl0_1", ["conv0"], "fprop", "0x3"),
        layer("relu0_myl0_2", ["relu0"], "relu", kind="kgen"),
        TRT.layers[2],
    )
    diff = diff_locks(TRT, replace(TRT, layers=split))
    assert sorted((c.kind, c.name) for c in diff.layers) == [
        ("added", "conv0_myl0_1"),
        ("added", "relu0_myl0_2"),
        ("removed", "conv0+relu0_myl0_1"),
    ]
    assert [(n.node, n.after) for n in diff.nodes] == [
        ("conv0", "correlation fprop 0x3"),
        ("relu0", "kgen relu"),
    ]


def test_layers_of_the_same_nodes_are_told_apart_by_type():
    two = (
        layer("a", ["conv0"], "fprop"),
        layer("b", ["conv0"], "pointwise", kind="kgen"),
    )
    swapped = (replace(two[1], name="x"), replace(two[0], name="y"))
    diff = diff_locks(replace(TRT, layers=two), replace(TRT, layers=swapped))
    assert [c.kind for c in diff.layers] == ["renamed", "renamed"]
    assert diff.nodes == ()


def test_a_reformat_more_is_an_added_layer():
    more = (*TRT.layers, layer("move_myl0_9", kind="kgen"))
    diff = diff_locks(TRT, replace(TRT, layers=more))
    assert [(c.kind, c.name) for c in diff.layers] == [("added", "move_myl0_9")]
    assert diff.differs


def test_a_tactic_that_one_build_does_not_tell_is_no_change():
    """A hit in the timing cache prints no table; the kernel's name says what runs."""
    layers = tuple(replace(one, tactic_hash=None, cache_key=None) for one in TRT.layers)
    tactics = tuple(replace(one, op=None, onnx_nodes=()) for one in TRT.tactics)
    hit = replace(TRT, layers=layers, tactics=tactics)
    for diff in (diff_locks(TRT, hit), diff_locks(hit, TRT)):
        assert not diff.differs
    other = replace(hit, layers=(*layers[:2], replace(layers[2], kernel="another")))
    diff = diff_locks(TRT, other)
    assert [c.name for c in diff.layers] == ["conv1_myl0_2"]
    assert [n.node for n in diff.nodes] == ["conv1"]


def test_keys_of_other_models_in_the_same_cache_are_no_change():
    hit = replace(TRT, tactics=(*TRT.tactics, tactic("0xc", "0x3")))
    assert not diff_locks(TRT, hit).differs
    assert not diff_locks(hit, TRT).differs
    # A key that the build timed itself is one of its own.
    timed = replace(TRT, tactics=(*TRT.tactics, tactic("0xc", "0x3", "conv2")))
    assert [d.field for d in diff_locks(TRT, timed).tactics] == ["conv2 (0xc)"]
    # And so is one whose winner is another.
    won = replace(TRT, tactics=(TRT.tactics[0], tactic("0xb", "0x9")))
    assert [d.field for d in diff_locks(TRT, won).tactics] == ["conv1 (0xb)"]


def test_keys_that_follow_their_names_are_no_change():
    """Keys follow layer names: another name, another key, though nothing else changed."""
    rekeyed = replace(
        TRT, tactics=(tactic("0xc", "0x1", "new", ["conv0", "relu0"]), TRT.tactics[1])
    )
    assert diff_locks(TRT, rekeyed).tactics == ()
    retimed = replace(
        TRT, tactics=(tactic("0xc", "0x9", "new", ["conv0", "relu0"]), TRT.tactics[1])
    )
    assert [d.field for d in diff_locks(TRT, retimed).tactics] == [
        "conv0+relu0 (0xa)",
        "new (0xc)",
    ]
    nameless = replace(TRT, tactics=(tactic("0xc", "0x1"), TRT.tactics[1]))
    assert [d.field for d in diff_locks(TRT, nameless).tactics] == ["conv0+relu0 (0xa)"]


def test_only_as_many_keys_are_taken_for_others_as_there_are():
    twice = tuple(tactic(k, "0x1", "op", ["n"]) for k in ("0xa", "0xb"))
    once = (tactic("0xc", "0x1", "op", ["n"]),)
    diff = diff_locks(replace(TRT, tactics=twice), replace(TRT, tactics=once))
    assert [d.field for d in diff.tactics] == ["op (0xb)"]


def test_keys_without_nodes_are_never_taken_for_others():
    one, two = (replace(TRT, tactics=(tactic(k, "0x1", "op"),)) for k in ("0xa", "0xb"))
    assert [d.field for d in diff_locks(one, two).tactics] == ["op (0xa)", "op (0xb)"]


def test_a_winner_that_changed_is_named_by_its_operation():
    other = replace(TRT, tactics=(TRT.tactics[0], replace(TRT.tactics[1], tactic_hash="0x9")))
    (found,) = diff_locks(TRT, other).tactics
    assert str(found) == "conv1 (0xb): 0x9, not 0x2"


def test_sites_differ_by_choice_tactic_and_ptx():
    plugin = LockSite(
        conv="conv0",
        nodes=("conv0", "relu0"),
        choice="plugin",
        tactic="igemm_64",
        ptx_sha256="a" * 64,
    )
    (found,) = diff_locks(TRT, replace(TRT, sites=(plugin,))).sites
    assert str(found) == f"conv0: plugin igemm_64 ptx {'a' * 16}, not native"
    edited = replace(plugin, ptx_sha256="b" * 64)
    with_plugin = replace(TRT, sites=(plugin,))
    assert diff_locks(with_plugin, replace(TRT, sites=(edited,))).choices_differ


def test_sites_differ_by_what_was_offered_where_the_tactic_is_not_known():
    site = LockSite(
        conv="conv", nodes=("conv",), choice="plugin", tactic=None, ptx_sha256=None,
        kit_sha256="ab" * 32,
    )  # fmt: skip
    before = replace(TRT, sites=(site,))
    assert not diff_locks(before, before).choices_differ
    (difference,) = diff_locks(
        before, replace(TRT, sites=(replace(site, kit_sha256="cd" * 32),))
    ).sites
    assert "offer abab" in str(difference)
    assert "offer cdcd" in str(difference)


def test_bytes_count_only_where_nothing_else_tells_the_choice():
    def other(lock):
        engine = replace(lock.engine, sha256="9" * 64, canonical_sha256="8" * 64)
        return replace(lock, engine=engine)

    assert not diff_locks(TRT, other(TRT)).differs
    assert len(diff_locks(TRT, other(TRT)).outputs) == 2
    assert diff_locks(RTX, other(RTX)).differs
    # Equal but for counters in names: the canonical digest agrees.
    counters = replace(RTX, engine=replace(RTX.engine, sha256="9" * 64))
    assert not diff_locks(RTX, counters).differs


LAYERS = st.lists(
    st.builds(
        layer,
        st.sampled_from(["a_myl0_1", "b", "c_0xff"]),
        st.sets(st.sampled_from("nmo"), max_size=2).map(sorted),
        st.sampled_from(["k1", "k2", None]),
        st.sampled_from(["0x1", None]),
        st.none(),
        st.sampled_from(["kgen", "gemm"]),
    ),
    max_size=6,
)


@given(LAYERS, LAYERS)
def test_every_layer_is_paired_or_told(before, after):
    diff = diff_locks(replace(TRT, layers=tuple(before)), replace(TRT, layers=tuple(after)))
    removed = sum(c.kind == "removed" for c in diff.layers)
    added = sum(c.kind == "added" for c in diff.layers)
    assert len(before) - removed == len(after) - added
    back = diff_locks(replace(TRT, layers=tuple(after)), replace(TRT, layers=tuple(before)))
    assert sum(c.kind == "removed" for c in back.layers) == added
    assert {n.node for n in diff.nodes} == {n.node for n in back.nodes}


@given(LAYERS, st.integers(0, 99))
def test_order_alone_changes_no_choice_of_a_node(layers, seed):
    shuffled = list(layers)
    random.Random(seed).shuffle(shuffled)
    diff = diff_locks(replace(TRT, layers=tuple(layers)), replace(TRT, layers=tuple(shuffled)))
    assert diff.nodes == ()
    assert not any(c.kind in ("added", "removed") for c in diff.layers)
