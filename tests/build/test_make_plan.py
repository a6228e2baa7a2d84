"""Plans: targets resolved, and a key that changes with everything that may change the result."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

import trtplug
from trtplug.build.make_plan import Builder, Wish, key_inputs, make_plan, resolve_targets
from trtplug.errors import BAD_INPUT, GpuMissingError, UnknownTargetError, UsageError
from trtplug.profile import bundled_folders, load_profiles
from trtplug.settings import Settings
from trtplug.store import Store
from trtplug.target import Sm

if TYPE_CHECKING:
    from pathlib import Path

    from trtplug.profile import GpuProfile

BUILDER = Builder(name="rtx", version="1.7.1.116", sms=(Sm(75), Sm(86), Sm(89), Sm(120)))
WISH = Wish(
    model_file="m.onnx",
    model_sha256="0" * 64,
    targets=("rtx4090",),
    shapes=("x=1x3x8x8",),
    precision="keep",
    flags={"tf32": "on", "workspace_bytes": "default"},
    repeat=1,
    fresh=False,
    out="out",
)


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> tuple[GpuProfile, ...]:
    settings = Settings(store=tmp_path_factory.mktemp("store"), profiles=None)
    return load_profiles(bundled_folders(settings))


def no_gpu() -> Sm:
    raise GpuMissingError(problem="no CUDA driver")


def plan(tmp_path: Path, profiles, wish: Wish = WISH, builder: Builder = BUILDER, local=no_gpu):
    return make_plan(wish, builder, profiles, Store(root=tmp_path), local)


def resolve(profiles, *names: str, local=no_gpu) -> dict[Sm, tuple[str, ...]]:
    return resolve_targets(names, BUILDER, profiles, local)


@pytest.mark.parametrize("name", ["rtx4090", "RTX4090", "rtx-4090", "sm_89", "sm89", "SM_89"])
def test_profile_or_sm_in_each_spelling(profiles, name: str):
    assert list(resolve(profiles, name)) == [Sm(89)]


def test_gpus_of_one_sm_share_one_engine_and_those_named_come_first(tmp_path: Path, profiles):
    wish = dataclasses.replace(WISH, targets=("l4", "sm_89", "rtx4090", "l4"))
    (target,) = plan(tmp_path, profiles, wish).targets
    assert target.gpus[:2] == ("l4", "rtx4090")
    assert "l40s" in target.gpus
    assert len(set(target.gpus)) == len(target.gpus)


def test_all_is_what_the_builder_can(profiles):
    assert tuple(resolve(profiles, "all")) == BUILDER.sms
    assert tuple(resolve(profiles, "sm_120", "ALL")) == (Sm(120), Sm(75), Sm(86), Sm(89))


def test_local_is_the_gpu_at_hand(profiles):
    assert resolve(profiles, "local", local=lambda: Sm(90)) == {Sm(90): ()}
    with pytest.raises(GpuMissingError):
        resolve(profiles, "local")


@pytest.mark.parametrize(
    ("name", "near"),
    [("rtx490", "rtx4090"), ("sm_88", "sm_89"), ("h100-smx", "h100-sxm"), ("rtx-4091", "rtx4090")],
)
def test_unknown_target_names_the_nearest(profiles, name: str, near: str):
    with pytest.raises(UnknownTargetError) as caught:
        resolve(profiles, "rtx4090", name)
    assert near in caught.value.nearest
    assert f"unknown target '{name}'; did you mean " in caught.value.message
    assert caught.value.exit_status == BAD_INPUT


@pytest.mark.parametrize("name", ["", "x" * 10_000, "\udcff", "sm_10", "\0", "../x"])
def test_odd_names_are_unknown(profiles, name: str):
    with pytest.raises(UnknownTargetError):
        resolve(profiles, name)


def test_no_target_at_all_says_what_to_give(tmp_path: Path, profiles):
    with pytest.raises(UsageError, match="no target was given") as caught:
        plan(tmp_path, profiles, dataclasses.replace(WISH, targets=()))
    assert "--target rtx4090" in caught.value.hint


def test_sm_that_the_backend_cannot_build_is_planned_as_such(tmp_path: Path, profiles):
    wish = dataclasses.replace(WISH, targets=("h100-sxm", "rtx4090"))
    assert [t.supported for t in plan(tmp_path, profiles, wish).targets] == [False, True]


CHANGES = {
    "model_sha256": "1" * 64,
    "model_file": "n.onnx",
    "shapes": ("x=1x3x8x9",),
    "precision": "fp16",
    "flags": {"tf32": "off", "workspace_bytes": "default"},
    "kernels": "2" * 64,
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_the_wish_is_another_key(tmp_path: Path, profiles, name: str):
    before = plan(tmp_path, profiles).targets[0].key
    changed = dataclasses.replace(WISH, **{name: CHANGES[name]})
    assert plan(tmp_path, profiles, changed).targets[0].key != before


def test_a_change_of_builder_tool_target_or_profiles_is_another_key(
    tmp_path: Path, profiles, monkeypatch: pytest.MonkeyPatch
):
    keys = [plan(tmp_path, profiles).targets[0].key]
    other = dataclasses.replace(BUILDER, version="1.7.1.117")
    keys.append(plan(tmp_path, profiles, builder=other).targets[0].key)
    wish = dataclasses.replace(WISH, targets=("sm_86",))
    keys.append(plan(tmp_path, profiles, wish).targets[0].key)
    fewer = tuple(p for p in profiles if p.name != "t4")
    keys.append(plan(tmp_path, fewer).targets[0].key)
    monkeypatch.setattr(trtplug, "__version__", "9.9.9")
    keys.append(plan(tmp_path, profiles).targets[0].key)
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("name", ["repeat", "fresh", "out"])
def test_what_does_not_change_the_result_is_no_part_of_the_key(tmp_path: Path, profiles, name: str):
    changed = dataclasses.replace(WISH, **{name: {"repeat": 3, "fresh": True, "out": "o"}[name]})
    assert (
        plan(tmp_path, profiles, changed).targets[0].key == plan(tmp_path, profiles).targets[0].key
    )


def test_order_of_shapes_does_not_matter(tmp_path: Path, profiles):
    one = dataclasses.replace(WISH, shapes=("a=1", "b=2"))
    other = dataclasses.replace(WISH, shapes=("b=2", "a=1"))
    assert plan(tmp_path, profiles, one).targets == plan(tmp_path, profiles, other).targets


def test_every_field_of_the_wish_is_either_in_the_key_or_said_not_to_be():
    declared = set(key_inputs(Sm(89), (), WISH, BUILDER, "p"))
    free = {"targets", "repeat", "fresh", "out"}  # targets are there as sm and gpus
    assert {f.name for f in dataclasses.fields(Wish)} - free <= declared


def test_stored_entry_is_seen_unless_fresh_or_repeated(tmp_path: Path, profiles):
    key = plan(tmp_path, profiles).targets[0].key
    with Store(root=tmp_path).publishing(key, {}):
        pass
    assert plan(tmp_path, profiles).targets[0].in_store
    for name, value in (("repeat", 2), ("fresh", True)):
        changed = dataclasses.replace(WISH, **{name: value})
        assert not plan(tmp_path, profiles, changed).targets[0].in_store
