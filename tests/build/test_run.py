"""The main job: refused before it starts, reported as it goes, closed in every case."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.backends.double import DoubleBackend
from tests.cli_runner import children_of
from tests.models import conv_relu, save
from trtplug.backends import find
from trtplug.backends.find import NullBackend
from trtplug.build.command import BuildCommand
from trtplug.build.plan import plan_build
from trtplug.build.run import run_build, starts_ahead
from trtplug.bundle.manifest import read_manifest
from trtplug.errors import (
    OptionUnsupportedError,
    OutputInTheWayError,
    ShapeError,
    TrtplugError,
)
from trtplug.plugin.options import PluginOptions
from trtplug.settings import Settings

if TYPE_CHECKING:
    from trtplug.backends.request import Event
    from trtplug.build.command import Result
    from trtplug.plan import Plan


class Notes:
    """A listener that records its calls, and may raise at one of them."""

    def __init__(self, raise_at: str = "", error: type[BaseException] = KeyboardInterrupt) -> None:
        self.calls: list[str] = []
        self._raise_at, self._error = raise_at, error

    def planned(self, plan: Plan) -> None:
        self._note("planned")

    def event(self, target: str, event: Event) -> None:
        self._note(str(event["event"]))

    def ended(self, result: Result) -> None:
        self._note(f"ended {result.target.sm}")

    def _note(self, text: str) -> None:
        self.calls.append(text)
        if self._raise_at and text.startswith(self._raise_at):
            raise self._error


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(find, "BACKENDS", (DoubleBackend(), NullBackend()))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def command(action: str = "build", **fields: object) -> BuildCommand:
    model = save(conv_relu(), Path(f"{action}.onnx"))
    wanted = {"model": model, "targets": ("sm_89", "sm_90", "sm_86"), "jobs": 2}
    return BuildCommand(**{**wanted, "out": Path("out"), **fields})


def settings(here: Path) -> Settings:
    return Settings(store=here.parent / "store", profiles=None)


def test_manifest_is_in_the_order_asked_however_the_builds_end(here: Path):
    notes = Notes()
    manifest = run_build(command(), settings(here), notes).manifest
    assert manifest == read_manifest(here / "out")
    assert [t.sm for t in manifest.targets] == ["sm_89", "sm_86"]
    assert [f.target for f in manifest.failures] == ["rtx-1.7:sm_90"]
    assert notes.calls[:2] == ["planned", "ended sm_90"]
    assert {"ended sm_89", "ended sm_86"} <= set(notes.calls)


@pytest.mark.parametrize("moment", ["planned", "ended sm_90", "phase", "ended sm_8"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_nothing_is_left_when_it_is_stopped(here: Path, moment: str, error: type[BaseException]):
    with pytest.raises(error):
        run_build(command("build"), settings(here), Notes(moment, error))
    assert children_of(os.getpid()) == []
    assert [p.name for p in here.iterdir()] == ["build.onnx"]


def test_stop_while_builders_hang_leaves_nothing(here: Path):
    with pytest.raises(KeyboardInterrupt):
        run_build(command("hang"), settings(here), Notes("phase"))
    assert children_of(os.getpid()) == []
    assert [p.name for p in here.iterdir()] == ["hang.onnx"]


def test_what_is_in_the_way_is_refused_before_the_model_is_read(here: Path):
    (here / "out").write_text("mine")
    notes = Notes()
    wanted = command(model=Path("nowhere.onnx"))
    with pytest.raises(OutputInTheWayError):
        run_build(wanted, settings(here), notes)
    assert notes.calls == []


def test_error_of_the_model_holds_for_all_targets_and_leaves_nothing(here: Path):
    save(conv_relu(shape=("N", 3, "H", "W")), here / "dynamic.onnx")
    with pytest.raises(ShapeError):
        run_build(command(model=Path("dynamic.onnx")), settings(here), Notes())
    assert sorted(p.name for p in here.iterdir()) == ["build.onnx", "dynamic.onnx"]


def test_planning_writes_nothing_and_starts_nothing(here: Path):
    _, plan = plan_build(command(), settings(here))
    assert [t.supported for t in plan.targets] == [True, False, True]
    assert children_of(os.getpid()) == []
    assert not settings(here).store.exists()
    assert [p.name for p in here.iterdir()] == ["build.onnx"]


def test_unknown_backend_or_model_is_refused_in_planning(here: Path):
    for fields in ({"backend": "tvm"}, {"model": Path("nowhere.onnx")}, {"targets": ("rtx1",)}):
        with pytest.raises(TrtplugError):
            plan_build(command(**fields), settings(here))


# --- plugins ---------------------------------------------------------------------------------


class PluginBackend(DoubleBackend):
    """One that takes plugins, as far as a plan looks at it."""

    def capabilities(self):
        return dataclasses.replace(super().capabilities(), plugins=True)


def planned_with(monkeypatch: pytest.MonkeyPatch, settings: Settings, **given: object):
    monkeypatch.setattr(find, "BACKENDS", (PluginBackend(), NullBackend()))
    return plan_build(command(plugin=PluginOptions(**given)), settings)


def test_no_builder_starts_ahead_of_a_plugin(here: Path, monkeypatch, own_store: Path):
    settings = Settings(store=own_store, profiles=None)
    assert starts_ahead(plan_build(command(), settings)[0])
    context, native = planned_with(monkeypatch, settings)
    assert not starts_ahead(context)
    context, chosen = planned_with(monkeypatch, settings, mode="always")
    assert not starts_ahead(context)
    assert chosen.flags["plugin"] == "always"
    assert chosen.targets[0].key != native.targets[0].key


def test_a_backend_without_plugins_has_none_and_refuses_always(here: Path, own_store: Path):
    settings = Settings(store=own_store, profiles=None)
    options = PluginOptions(mode="never", pairs=False)
    context, plan = plan_build(command(plugin=options), settings)
    assert context.evidence is None
    assert not [name for name in plan.flags if name.startswith("plugin")]
    with pytest.raises(OptionUnsupportedError) as refused:
        plan_build(command(plugin=PluginOptions(mode="always")), settings)
    assert refused.value.option == "--plugin always"
    assert "--backend trt" in refused.value.hint


def test_the_plan_has_a_choice_for_each_site(here: Path, monkeypatch, own_store: Path):
    settings = Settings(store=own_store, profiles=None)
    _, plan = planned_with(monkeypatch, settings, mode="always")
    by_target = {t.sm: t.sites for t in plan.targets}
    # The double's sm_90 is none that its builder serves.
    assert by_target["sm_90"] is None
    assert [(s.site, s.choice) for s in by_target["sm_89"]] == [("conv0", "plugin")]
