"""Plans: targets resolved, and a key that changes with everything that may change the result."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

import trtplug
from tests.bundle.samples import fill
from tests.models import conv_relu, save
from trtplug.backends.gpu import Gpu, GpuSearch
from trtplug.backends.options import BuildOptions, TrtOptions
from trtplug.build import plan as planning
from trtplug.build.command import BuildCommand
from trtplug.build.context import BuildContext
from trtplug.build.plan import declared_inputs, make_plan, resolve_targets
from trtplug.document import to_json
from trtplug.errors import BAD_INPUT, GpuMissingError, UnknownTargetError, UsageError
from trtplug.lock.policy import TacticPolicy
from trtplug.model.files import FileDigest, digest_model
from trtplug.model.precision_options import PrecisionOptions
from trtplug.plugin.evidence import NO_EVIDENCE
from trtplug.plugin.options import PluginOptions
from trtplug.profile import bundled_folders, load_profiles
from trtplug.settings import Settings
from trtplug.store import Store
from trtplug.target import Sm
from trtplug.tensor import parse_shape_range

if TYPE_CHECKING:
    from trtplug.profile import GpuProfile

SMS = (Sm(75), Sm(86), Sm(89), Sm(120))
COMMAND = BuildCommand(
    model=Path("m.onnx"),
    targets=("rtx4090",),
    profiles=((parse_shape_range("x=1x3x8x8"),),),
    out=Path("out"),
)


class Builder:
    """A backend as far as a plan looks at it."""

    name = "rtx"

    def __init__(
        self, version: str = "1.7.1.116", place: str = "", sms: tuple[Sm, ...] = SMS
    ) -> None:
        self._version, self._place, self._sms = version, place, sms

    def version(self) -> str:
        return self._version

    def device_fingerprint(self) -> str:
        return self._place

    def capabilities(self):
        return SimpleNamespace(sms=self._sms, timing_cache=True, plugins=False)


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> tuple[GpuProfile, ...]:
    settings = Settings(store=tmp_path_factory.mktemp("store"), profiles=None)
    return load_profiles(bundled_folders(settings))


def no_gpu() -> Sm:
    raise GpuMissingError(problem="no CUDA driver")


def context(tmp_path: Path, profiles, command: BuildCommand = COMMAND, **fields):
    given = {"backend": Builder(), "digest": FileDigest(sha256="0" * 64, self_contained=True)}
    return BuildContext(
        **{**given, **fields},
        command=command,
        gpu_profiles=profiles,
        store=Store(root=tmp_path),
        lock=None,
        evidence=None,
    )


def plan(tmp_path: Path, profiles, command: BuildCommand = COMMAND, **fields):
    return make_plan(context(tmp_path, profiles, command, **fields))


def resolve(profiles, *names: str, local=no_gpu) -> dict[Sm, tuple[str, ...]]:
    return resolve_targets(names, SMS, profiles, local)


@pytest.mark.parametrize("name", ["rtx4090", "RTX4090", "rtx-4090", "sm_89", "sm89", "SM_89"])
def test_profile_or_sm_in_each_spelling(profiles, name: str):
    assert list(resolve(profiles, name)) == [Sm(89)]


def test_gpus_of_one_sm_share_one_engine_and_those_named_come_first(tmp_path: Path, profiles):
    command = dataclasses.replace(COMMAND, targets=("l4", "sm_89", "rtx4090", "l4"))
    (target,) = plan(tmp_path, profiles, command).targets
    assert target.gpus[:2] == ("l4", "rtx4090")
    assert "l40s" in target.gpus
    assert len(set(target.gpus)) == len(target.gpus)


def test_all_is_what_the_builder_can(profiles):
    assert tuple(resolve(profiles, "all")) == SMS
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
        plan(tmp_path, profiles, dataclasses.replace(COMMAND, targets=()))
    assert "--target rtx4090" in caught.value.hint


def test_sm_that_the_backend_cannot_build_is_planned_as_such(tmp_path: Path, profiles):
    command = dataclasses.replace(COMMAND, targets=("h100-sxm", "rtx4090"))
    assert [t.supported for t in plan(tmp_path, profiles, command).targets] == [False, True]


CHANGES = {
    "model": Path("n.onnx"),
    "profiles": ((parse_shape_range("x=1x3x8x9"),),),
    "precision": PrecisionOptions(target="fp16"),
    "options": BuildOptions(tf32=False),
    "policy": TacticPolicy(cache="fresh"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_the_command_is_another_key(tmp_path: Path, profiles, name: str):
    before = plan(tmp_path, profiles).targets[0].key
    changed = dataclasses.replace(COMMAND, **{name: CHANGES[name]})
    assert plan(tmp_path, profiles, changed).targets[0].key != before


def test_a_further_profile_is_another_key(tmp_path: Path, profiles):
    more = (*COMMAND.profiles, (parse_shape_range("x=1x3x8x9"),))
    after = plan(tmp_path, profiles, dataclasses.replace(COMMAND, profiles=more))
    assert after.flags["profile_2"] == "x=1x3x8x9"
    assert after.targets[0].key != plan(tmp_path, profiles).targets[0].key


def test_a_change_of_model_builder_tool_target_or_profiles_is_another_key(
    tmp_path: Path, profiles, monkeypatch: pytest.MonkeyPatch
):
    keys = [plan(tmp_path, profiles).targets[0].key]
    other = FileDigest(sha256="1" * 64, self_contained=True)
    keys.append(plan(tmp_path, profiles, digest=other).targets[0].key)
    keys.append(plan(tmp_path, profiles, backend=Builder("1.7.1.117")).targets[0].key)
    keys.append(plan(tmp_path, profiles, backend=Builder(place="a driver")).targets[0].key)
    command = dataclasses.replace(COMMAND, targets=("sm_86",))
    keys.append(plan(tmp_path, profiles, command).targets[0].key)
    fewer = tuple(p for p in profiles if p.name != "t4")
    keys.append(plan(tmp_path, fewer).targets[0].key)
    monkeypatch.setattr(planning, "_kernels_digest", lambda _: "2" * 64)
    keys.append(plan(tmp_path, profiles).targets[0].key)
    monkeypatch.setattr(trtplug, "__version__", "9.9.9")
    keys.append(plan(tmp_path, profiles).targets[0].key)
    assert len(set(keys)) == len(keys)


FREE = {"repeat": 3, "force": True, "out": Path("o"), "jobs": 9, "wait": False}


@pytest.mark.parametrize("name", FREE)
def test_what_does_not_change_the_result_is_no_part_of_the_key(tmp_path: Path, profiles, name: str):
    changed = dataclasses.replace(COMMAND, **{name: FREE[name]})
    assert (
        plan(tmp_path, profiles, changed).targets[0].key == plan(tmp_path, profiles).targets[0].key
    )


def test_order_of_shapes_does_not_matter(tmp_path: Path, profiles):
    both = tuple(map(parse_shape_range, ("a=1", "b=2")))
    one = dataclasses.replace(COMMAND, profiles=(both,))
    other = dataclasses.replace(COMMAND, profiles=(both[::-1],))
    assert plan(tmp_path, profiles, one).targets == plan(tmp_path, profiles, other).targets


def test_every_field_of_the_command_is_either_in_the_key_or_said_not_to_be(tmp_path, profiles):
    """A new field of BuildCommand must be added to one of the two."""
    declared = {
        "model": ("model_file", "model_sha256"),
        "profiles": ("shapes", "flags"),
        "precision": ("precision", "flags"),
        "backend": ("backend", "backend_version", "place"),
        "options": ("flags",),
        "policy": ("timing_cache", "flags"),
        "plugin": ("flags", "kernels"),
    }
    free = {"targets", "repeat", "force", "out", "jobs", "wait", "limits"}  # targets: sm and gpus
    assert {f.name for f in dataclasses.fields(BuildCommand)} == declared.keys() | free
    inputs = declared_inputs(context(tmp_path, profiles))
    assert {name for names in declared.values() for name in names} <= inputs.keys()


def test_stored_entry_is_seen_unless_fresh_or_repeated(tmp_path: Path, profiles):
    key = plan(tmp_path, profiles).targets[0].key
    with Store(root=tmp_path).publishing(key, {}):
        pass
    assert plan(tmp_path, profiles).targets[0].in_store
    for name, value in (("repeat", 2), ("force", True)):
        changed = dataclasses.replace(COMMAND, **{name: value})
        assert not plan(tmp_path, profiles, changed).targets[0].in_store


# --- what runs each site ---


@pytest.fixture
def with_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profiles):
    """Plans for a model of one convolution on an H200, by a backend that takes plugins."""
    gpus = (Gpu(name="NVIDIA H200", sm=None),)
    monkeypatch.setattr(
        planning, "find_gpus", lambda: GpuSearch(gpus=gpus, driver="13.0", problem="")
    )
    model = save(conv_relu(), tmp_path / "m.onnx")
    command = dataclasses.replace(
        COMMAND,
        model=model,
        targets=("h100-sxm",),
        profiles=((),),
        precision=PrecisionOptions(target="fp16"),
        plugin=PluginOptions(mode="always"),
    )

    def make(**changed: object):
        return dataclasses.replace(
            context(tmp_path, profiles, dataclasses.replace(command, **changed)),
            digest=digest_model(model),
            backend=Builder(sms=(Sm(90),)),
            evidence=NO_EVIDENCE,
        )

    return make


def test_the_gpus_own_profile_predicts(with_plugins):
    (site,) = make_plan(with_plugins()).targets[0].sites
    assert " is predicted fastest on h200: " in site.reason


def test_a_limit_on_shared_memory_is_kept(with_plugins):
    options = BuildOptions(trt=TrtOptions(tactic_shared_memory_bytes=0))
    (site,) = make_plan(with_plugins(options=options)).targets[0].sites
    assert site.tactics == ("direct_hwc8",)


def test_kernels_count_only_where_there_can_be_any(with_plugins):
    assert declared_inputs(with_plugins(plugin=PluginOptions()))["kernels"] == ""
    assert len(declared_inputs(with_plugins())["kernels"]) == 64


def entry_with(tmp_path: Path, sites) -> str:
    (tmp_path / "bundle").mkdir()
    target = fill(tmp_path / "bundle").targets[0]
    return to_json(dataclasses.replace(target, sites=sites))


def test_an_engine_in_the_store_has_the_sites_that_it_was_built_with(
    with_plugins, tmp_path, monkeypatch
):
    made = make_plan(with_plugins()).targets[0]
    store = with_plugins().store
    with store.publishing(made.key, {}) as folder:
        (folder / "target.json").write_text(entry_with(tmp_path, made.sites))
    monkeypatch.setattr(BuildContext, "source", property(lambda _: pytest.fail("it was read")))
    again = make_plan(with_plugins()).targets[0]
    assert again == dataclasses.replace(made, in_store=True)


def test_an_entry_without_sites_is_of_an_older_version_and_the_model_says_them(
    with_plugins, tmp_path
):
    made = make_plan(with_plugins()).targets[0]
    with with_plugins().store.publishing(made.key, {}) as folder:
        (folder / "target.json").write_text(entry_with(tmp_path, None))
    again = make_plan(with_plugins()).targets[0]
    assert again == dataclasses.replace(made, in_store=True)


def test_the_digest_is_of_what_is_built_not_of_where_it_goes_or_comes_from(tmp_path, profiles):
    first = plan(tmp_path, profiles)
    targets = tuple(dataclasses.replace(t, in_store=True) for t in first.targets)
    assert dataclasses.replace(first, out="other", targets=targets).sha256 == first.sha256
    assert dataclasses.replace(first, precision="fp16").sha256 != first.sha256
    unserved = tuple(dataclasses.replace(t, sites=()) for t in first.targets)
    assert dataclasses.replace(first, targets=unserved).sha256 != first.sha256
