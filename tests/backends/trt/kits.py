"""Kits with compiled kernels, and what TensorRT receives run in the emulator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.bindings.packages import installed, source_of
from tests.bindings.versions import VERSIONS, run_with_bindings
from tests.kernels.kernels import compiled
from trtplug.emulator.parse import parse_module
from trtplug.kernels.catalog import CATALOG
from trtplug.kernels.emulate import Checked, expected, input_arrays, random_tensors, run_kernel
from trtplug.kernels.family import Launch
from trtplug.kernels.kit import KitKernel, KitSite, make_kit, ptx_digest, write_kit
from trtplug.target import Sm

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtplug.kernels.kit import Kit

SM = 90
SCRIPTS = Path(__file__).parent.with_name("scripts")


def site_of(problem: Any, lead: str, most: int = 2) -> tuple[KitSite, dict[str, str]]:
    """A site with the tactic `lead` and others that read its packing; and their PTX by digest."""
    legal = CATALOG.legal(problem, Sm(SM))
    (first,) = (t for t in legal if t.name == lead)
    chosen = [t for t in legal if t.packing(problem) == first.packing(problem)]
    chosen = [first, *(t for t in chosen if t is not first)][:most]
    texts = {t.name: compiled(t, problem, SM).ptx for t in chosen}
    kernels = tuple(KitKernel(tactic=n, ptx_sha256=ptx_digest(p)) for n, p in texts.items())
    site = KitSite(problem=problem, kernels=kernels)
    return site, {ptx_digest(p): p for p in texts.values()}


def kit_in(folder: Path, sites: Sequence[tuple[KitSite, Mapping[str, str]]]) -> Kit:
    """A kit of them, written to a folder."""
    kit = make_kit(SM, [site for site, _ in sites])
    write_kit(kit, {d: t for _, ptx in sites for d, t in ptx.items()}, folder)
    return kit


def told_to_tensorrt(
    release: str,
    folder: Path,
    requests: Sequence[dict[str, Any]],
    name: str = "real_quick_plugins.py",
) -> list[Any]:
    """What the real bindings of a release make of our plugins, see the script."""
    script = str(SCRIPTS / name)
    bindings = installed(VERSIONS[release])
    # What pip installs beside the bindings, and what programs import.
    (front,) = source_of(VERSIONS[release].replace("-bindings", "")).glob("*/tensorrt")
    places = f"{bindings}:{front.parent}"
    text = run_with_bindings(bindings, [script, places, str(folder), json.dumps(requests)])
    said: list[Any] = json.loads(text[text.index("[{") :])
    return said


def request(site: KitSite, at: Sequence[Sequence[int]] = ()) -> dict[str, Any]:
    x = site.problem.x
    ends = {"min": x.min, "opt": x.opt, "max": x.max}
    return {"site": site.digest, **ends, "at": [list(a) for a in at or (x.opt,)]}


def emulated(site: KitSite, candidate: dict[str, Any], launch: dict[str, Any]) -> Checked:
    """The verdict on a kernel launched with what TensorRT received, for inputs of a size."""
    sizes = tuple(launch["sizes"])
    (tactic,) = (t for t in site.tactics if t.number == candidate["tactic"])
    arrays, wanted = inputs_and_reference(site, tactic, sizes)
    assert tuple(launch["output"]) == wanted.shape
    return run_kernel(
        parse_module(candidate["ptx"]),
        candidate["kernel"],
        Launch(
            grid=tuple(launch["grid"]),
            block=tuple(launch["block"]),
            shared_bytes=launch["shared"],
        ),
        arrays,
        launch["arguments"],
        wanted,
        dtype=site.problem.dtype,
        layout=candidate["formats"][-1],
        checks=None,
        blocks=None,
    )


def inputs_and_reference(site: KitSite, tactic: Any, sizes: Any) -> tuple[dict[str, Any], Any]:
    problem = site.problem
    tensors = random_tensors(problem, sizes, np.random.default_rng(0))
    return input_arrays(tactic, problem, tensors), expected(problem, tensors)
