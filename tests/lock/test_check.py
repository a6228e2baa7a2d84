from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest

from tests.bundle.samples import fill
from tests.lock.locks import RTX, TRT, layer, tactic
from tests.timing.cache_stand_in import StandIn, identity, key
from tests.timing.test_identity import machine
from tests.timing.test_store import build
from trtplug.backends.gpu import Gpu
from trtplug.bundle.engine_file import canonical_sha256
from trtplug.bundle.manifest import write_manifest
from trtplug.document import to_json
from trtplug.errors import DocumentError, LockMismatchError, LockUnqualifiedError
from trtplug.lock.check import (
    qualify,
    replay_problems_after,
    replay_problems_before,
    require_qualified,
    require_replayed,
    require_same_digest,
    verify_locks,
)
from trtplug.lock.lock import LockCache, LockGpu
from trtplug.target import Sm
from trtplug.timing.admin import find_cache
from trtplug.timing.files import Sidecar
from trtplug.timing.identity import CacheIdentity
from trtplug.timing.store import TimingCacheStore
from trtplug.timing.transfer import write_cache

SIDECAR = Sidecar(
    schema="trtplug.timing-cache/1",
    tool_version="0.1.0",
    identity=CacheIdentity(
        gpu="NVIDIA H200",
        sm="sm_90",
        driver="580.95.05",
        cuda="13.0",
        builder="11.4.0.106",
        flags={"tf32": "on"},
    ),
    sha256="3" * 64,
    bytes=1,
    tactics=(),
    builds=(),
)
"""Of the lock `TRT`."""


@pytest.fixture
def bundle(tmp_path):
    """A bundle with a timing cache; returns its folder and its lock, not yet written."""
    folder = tmp_path / "out"
    folder.mkdir()
    manifest = fill(folder)
    target = replace(manifest.targets[0], backend_version=identity().builder)
    target = replace(target, flags=identity().flags)
    manifest = replace(manifest, targets=(target,))
    write_manifest(folder, manifest)
    store = TimingCacheStore(root=tmp_path / "timing")
    build(store, [1, 2], StandIn())
    entry = find_cache(store, identity().entry_id)
    write_cache(folder / "sm_89" / "timing.cache", entry)
    lock = replace(
        TRT,
        model=manifest.model,
        target=target.target,
        backend=target.backend,
        backend_version=target.backend_version,
        shapes=target.shapes,
        flags=target.flags,
        engine=replace(
            target.engine, canonical_sha256=canonical_sha256(folder / target.engine.file)
        ),
        gpu=LockGpu(
            **{f: getattr(identity(), f) for f in ("sm", "driver", "cuda")}, name=identity().gpu
        ),
        timing_cache=LockCache(file="sm_89/timing.cache", sha256=entry.sidecar.sha256, keys=2),
        tactics=tuple(tactic(key(n), f"0x{n}", f"conv{n}") for n in (1, 2)),
        layers=(layer("conv1", ["conv1"], tactic="0x1", key=key(1)),),
    )
    return folder, lock


def verify(folder, lock):
    (folder / "sm_89" / "lock.json").write_text(to_json(lock))
    (check,) = verify_locks(folder)
    return check.problems


def test_a_bundle_agrees_with_its_lock(bundle):
    assert verify(*bundle) == ()


CHANGED = {
    "model": ({"model": replace(TRT.model, sha256="f" * 64)}, "model: "),
    "target": ({"target": "rtx-1.7:sm_86"}, "target: rtx-1.7:sm_86, not rtx-1.7:sm_89"),
    "version": ({"backend_version": "9"}, "backend: rtx 9, not rtx 11.4.0.106"),
    "shapes": ({"shapes": ()}, "shapes: none, not x=1x3x8x8"),
    "precision": ({"precision": "fp16"}, "precision: fp16, not keep"),
    "flags": ({"flags": {"tf32": "off"}}, "flag tf32: off, not on"),
    "a tactic": (
        {"tactics": (tactic(key(1), "0x1"), tactic(key(2), "0x9", "conv2"))},
        f"sm_89/timing.cache: conv2 ({key(2)}): 0x2, not 0x9",
    ),
    "a key less": (
        {"tactics": (tactic(key(1), "0x1"),)},
        f"sm_89/timing.cache: {key(2)}: 0x2, not none",
    ),
    "a key more": (
        {"tactics": (tactic(key(1), "0x1"), tactic(key(2), "0x2"), tactic(key(3), "0x3"))},
        f"sm_89/timing.cache: {key(3)}: none, not 0x3",
    ),
    "a layer": (
        {"layers": (layer("conv1", ["conv1"], tactic="0x7", key=key(1)),)},
        "conv1: tactic 0x7, its key has 0x1",
    ),
    "a driver": ({"gpu": replace(TRT.gpu, driver="1")}, "sm_89/timing.cache: driver: "),
}


@pytest.mark.parametrize("name", CHANGED)
def test_each_lie_of_a_lock_is_found(bundle, name):
    folder, lock = bundle
    fields, words = CHANGED[name]
    problem, *more = verify(folder, replace(lock, **fields))
    assert problem.startswith(words)
    # A field that is in both sidecar and manifest is reported for each.
    assert all(p.startswith(("sm_89/timing.cache: ", "timing_cache.keys is not ")) for p in more)
    assert len(more) <= 1


def test_changed_files_are_found(bundle):
    folder, lock = bundle
    engine = folder / lock.engine.file
    engine.write_bytes(engine.read_bytes() + b"x")
    (folder / "sm_89/timing.cache").write_bytes(b"junk")
    problems = verify(folder, lock)
    assert problems[0].endswith("SHA-256 does not match the lock")
    assert problems[1].startswith("sm_89/timing.cache: truncated: ")
    engine.unlink()
    (folder / "sm_89/timing.cache").unlink()
    assert [p.partition(": ")[2] for p in verify(folder, lock)] == [
        "missing, or outside the bundle"
    ] * 2


def test_another_whole_cache_is_found(bundle, tmp_path):
    folder, lock = bundle
    other = replace(lock.timing_cache, sha256="f" * 64)
    (problem,) = verify(folder, replace(lock, timing_cache=other))
    assert "SHA-256 does not match the lock" in problem


@pytest.mark.parametrize("path", ["/etc/passwd", "../../x", "sm_89/../../x", "a\0b"])
def test_paths_that_lead_out_are_not_followed(bundle, path):
    folder, lock = bundle
    cache = replace(lock.timing_cache, file=path)
    engine = replace(lock.engine, file=path)
    problems = verify(folder, replace(lock, timing_cache=cache, engine=engine))
    assert sum("outside the bundle" in p for p in problems) == 2


def test_a_bundle_without_a_lock_is_refused(bundle):
    with pytest.raises(DocumentError):
        verify_locks(bundle[0])


# --- this machine ---

VERSION = TRT.backend_version


def test_any_gpu_of_the_name_is_qualified():
    assert qualify(TRT, machine(), VERSION) == ()
    require_qualified(TRT, "lock.json", machine(), VERSION)


@pytest.mark.parametrize(
    ("fields", "version", "named"),
    [
        ({"gpus": (Gpu(name="NVIDIA H100", sm=Sm(90)),)}, VERSION, ["gpu"]),
        ({"gpus": (Gpu(name="NVIDIA L4", sm=Sm(89)),)}, VERSION, ["gpu", "sm"]),
        ({"driver": "1"}, VERSION, ["driver"]),
        ({"driver": None}, VERSION, ["driver"]),
        ({"cuda": "12.8"}, VERSION, ["cuda"]),
        ({}, "11.4.0.107", ["backend version"]),
        ({}, None, ["backend version"]),
        ({"gpus": ()}, VERSION, ["gpu", "sm"]),
    ],
)
def test_anything_else_is_unqualified(fields, version, named):
    here = machine(**fields)
    assert [d.field for d in qualify(TRT, here, version)] == named
    with pytest.raises(LockUnqualifiedError) as caught:
        require_qualified(TRT, "lock.json", here, version)
    assert len(caught.value.differences) == len(named)


def test_a_lock_that_needed_no_gpu_is_bound_to_its_builder_alone():
    bare = machine(gpus=(), driver=None, cuda=None)
    assert qualify(RTX, bare, RTX.backend_version) == ()
    assert [d.field for d in qualify(RTX, bare, "1.8.0.1")] == ["backend version"]


# --- replay ---


def test_a_faithful_replay_has_no_problem():
    made = replace(
        TRT,
        engine=replace(TRT.engine, sha256="9" * 64, canonical_sha256="8" * 64),
        timing_cache=replace(TRT.timing_cache, sha256="7" * 64),
        tool_version="9",
    )
    assert replay_problems_before(TRT, made, TRT.winners, SIDECAR) == ()
    assert replay_problems_after(TRT, made, TRT.winners) == ()
    require_replayed("lock.json", ())


def of_sidecar(**changed: object) -> Sidecar:
    return replace(SIDECAR, identity=replace(SIDECAR.identity, **changed))


@pytest.mark.parametrize(
    ("sidecar", "words"),
    [
        (replace(SIDECAR, sha256="9" * 64), "timing.cache: SHA-256 does not match"),
        (of_sidecar(driver="1"), "timing.cache: driver: 1, not 580.95.05"),
        (of_sidecar(gpu="L4"), "timing.cache: gpu: L4, not NVIDIA H200"),
        (of_sidecar(sm="sm_89"), "timing.cache: sm: sm_89, not sm_90"),
        (of_sidecar(cuda="12.0"), "timing.cache: cuda: 12.0, not 13.0"),
        (of_sidecar(builder="9"), "timing.cache: builder: 9, not 11.4.0.106"),
        (of_sidecar(flags={}), "timing.cache: flag tf32: none, not on"),
    ],
)
def test_a_cache_whose_sidecar_tells_of_another_build_is_not_replayed(sidecar, words):
    (problem,) = replay_problems_before(TRT, TRT, TRT.winners, sidecar)
    assert problem.startswith(words)


def test_a_lock_that_contradicts_itself_or_has_no_cache_is_not_replayed():
    twice = replace(TRT, tactics=(*TRT.tactics, TRT.tactics[0]))
    problems = replay_problems_before(twice, twice, TRT.winners, SIDECAR)
    assert problems[0] == "the lock contradicts itself: 0xa: listed 2 times"
    bare = replace(TRT, timing_cache=None)
    assert replay_problems_before(bare, bare, TRT.winners, SIDECAR) == (
        "the lock names no timing cache",
    )


def test_a_lock_without_tactics_is_not_replayed():
    (problem,) = replay_problems_before(RTX, RTX, {}, SIDECAR)
    assert problem == "the lock records no tactics to replay"


TAMPERED = {
    "one hash": (TRT.winners | {"0xb": "0x9"}, "conv1 (0xb): 0x9, not 0x2"),
    "one key more": (TRT.winners | {"0xc": "0x3"}, "0xc: 0x3, not none"),
    "one key less": ({"0xa": "0x1"}, "conv1 (0xb): none, not 0x2"),
    "no keys": ({}, "conv0+relu0 (0xa): none, not 0x1"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_tampered_caches_are_refused_before_and_after(name):
    winners, words = TAMPERED[name]
    for problems in (
        replay_problems_before(TRT, TRT, winners, SIDECAR),
        replay_problems_after(TRT, TRT, winners),
    ):
        assert words in problems
        with pytest.raises(LockMismatchError) as caught:
            require_replayed("lock.json", problems)
        assert words in caught.value.message


INPUTS = {
    "model": {"model": replace(TRT.model, sha256="f" * 64)},
    "gpu": {"gpu": replace(TRT.gpu, name="NVIDIA H100")},
    "flags": {"flags": {"tf32": "off"}},
    "version": {"backend_version": "9"},
    "shapes": {"shapes": ()},
    "target": {"target": "trt-11.4:sm_89"},
    "precision": {"precision": "fp16"},
}


@pytest.mark.parametrize("name", INPUTS)
def test_other_inputs_are_refused(name):
    other = replace(TRT, **INPUTS[name])
    assert len(replay_problems_before(TRT, other, TRT.winners, SIDECAR)) == 1
    assert len(replay_problems_after(TRT, other, TRT.winners)) == 1


def test_layers_sites_and_nodes_that_came_out_otherwise_are_told():
    changed = replace(TRT, layers=(*TRT.layers[:2], replace(TRT.layers[2], kernel="new")))
    assert replay_problems_after(TRT, changed, TRT.winners) == (
        "layer conv1_myl0_2: kernel: new, not fprop",
        "node conv1: correlation new 0x2, not correlation fprop 0x2",
    )
    dropped = replace(TRT, sites=(replace(TRT.sites[0], choice="plugin"),))
    assert replay_problems_after(TRT, dropped, TRT.winners) == ("site conv0: plugin, not native",)
    renamed = replace(
        TRT, layers=tuple(dataclasses.replace(x, name=f"{x.name}9") for x in TRT.layers)
    )
    assert replay_problems_after(TRT, renamed, TRT.winners) == ()


def test_without_tactics_the_engines_must_agree():
    require_same_digest("lock.json", RTX, RTX)
    other = replace(RTX, engine=replace(RTX.engine, canonical_sha256="9" * 64))
    with pytest.raises(LockMismatchError, match="engine canonical sha256: 999"):
        require_same_digest("lock.json", RTX, other)
    # Plain bytes may differ: the canonical digest leaves counters out.
    require_same_digest("lock.json", RTX, replace(RTX, engine=replace(RTX.engine, sha256="9" * 64)))
