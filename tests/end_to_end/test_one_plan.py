"""What `--dry-run` shows is what a build carries out: the same value, digest for digest."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.doubles.site import Site, make_site
from tests.models import conv_chain, save
from trtplug.bundle.manifest import read_manifest
from trtplug.document import from_json
from trtplug.plan import SCHEMA, Plan

if TYPE_CHECKING:
    from pathlib import Path

FLAGS = {
    "rtx": ("--backend", "rtx", "--target", "sm_89", "--target", "sm_86"),
    "trt always": ("--backend", "trt", "--target", "local", "--plugin", "always"),
    "trt one site": ("--backend", "trt", "--target", "local", "--plugin", "always",
                     "--plugin-sites", "conv1"),
    "trt never": ("--backend", "trt", "--target", "local", "--plugin", "never"),
    "trt auto": ("--backend", "trt", "--target", "local"),
}  # fmt: skip


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = make_site(tmp_path, quick_plugins=True)
    save(conv_chain(2), made.work / "m.onnx")
    return made


def shown(site: Site, *flags: str) -> Plan:
    ran = site.trtplug("build", "m.onnx", *flags, "--dry-run", "--format", "json")
    assert ran.status == 0, ran.err
    return from_json(Plan, SCHEMA, ran.out, "the plan")


@pytest.mark.parametrize("name", FLAGS)
def test_the_plan_that_is_shown_is_the_plan_that_is_carried_out(site: Site, name: str):
    flags = (*FLAGS[name], "--precision", "fp16")
    plan = shown(site, *flags)
    ran = site.trtplug("build", "m.onnx", *flags)
    assert ran.status == 0, ran.err
    manifest = read_manifest(site.work / "out")
    assert manifest.plan_sha256 == plan.sha256
    assert [(t.target, t.gpus, t.sites) for t in manifest.targets] == [
        (t.target, t.gpus, t.sites) for t in plan.targets
    ]
    for target in plan.targets:
        assert (target.sites is None) == (name == "rtx")
        check_report(site, target.sm, target.sites or ())
    # From the store it is the same plan, and the same bundle.
    again = shown(site, *flags)
    assert all(t.in_store for t in again.targets)
    assert again.sha256 == plan.sha256
    assert site.trtplug("build", "m.onnx", *flags).status == 0
    assert read_manifest(site.work / "out").plan_sha256 == plan.sha256


def check_report(site: Site, sm: str, sites) -> None:
    """Each site of the report has the choice, the reason and the tactics of the plan."""
    report = json.loads((site.work / "out" / sm / "report.json").read_text())
    made = {s["conv"]: s["choice"] for s in report["sites"]}
    for planned in sites:
        choice = made[planned.site]
        assert (choice["choice"], choice["reason"]) == (planned.choice, planned.reason)
        assert choice["tactics"] == list(planned.tactics)


def test_other_choices_are_another_plan(site: Site):
    digests = {name: shown(site, *flags).sha256 for name, flags in FLAGS.items()}
    assert len(set(digests.values())) == len(digests)
