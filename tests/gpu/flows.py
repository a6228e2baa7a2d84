"""Steps on a real GPU: each is a few command lines and the results that must follow.

A flow runs in a folder of its own, `work/<name>`, and may read those of earlier flows beside it.
What it saw goes into `facts`.
"""

from __future__ import annotations

import glob
import json
import shutil
import statistics
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.gpu.child import StepFailedError
from tests.gpu.cli import trtplug
from tests.gpu.networks import chain, sized, wide
from tests.models import save

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gpu.cli import Ran

    Facts = dict[str, Any]
    Flow = Callable[[Path, Facts], None]

FP16 = ("--precision", "fp16")
_ROUNDS = 3
_TOLERANCE = 2e-2
"""Relative L2 error of a model in FP16 against the same in FP32 by ONNX Runtime."""


def check(true: object, words: str) -> None:
    """Fails the flow unless it is true.

    Raises:
        StepFailedError: it is not.
    """
    if not true:
        raise StepFailedError(words)


def run(here: Path, *arguments: object, status: int = 0, said: str = "") -> Ran:
    """One command line that must end with a status, and have said something on stderr."""
    ran = trtplug(here, *arguments)
    words = f"trtplug {' '.join(map(str, arguments))}: status {ran.status}, not {status}: "
    check(ran.status == status, words + " ".join(ran.err.strip().splitlines()[-3:])[-400:])
    check(said in ran.err, f"trtplug {arguments[0]} did not say {said!r}")
    return ran


def build(here: Path, *flags: object, out: str = "out", status: int = 0, said: str = "") -> Ran:
    """Builds `m.onnx` for the local GPU."""
    fixed = ("--backend", "trt", "--target", "local", "--out", out)
    return run(here, "build", "m.onnx", *fixed, *flags, status=status, said=said)


def document(here: Path, name: str = "report.json", out: str = "out") -> dict[str, Any]:
    """A document of the one target in a bundle."""
    (file,) = (here / out).glob(f"sm_*/{name}")
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def layers(here: Path, out: str = "out") -> list[dict[str, Any]]:
    """Layers of a report, as a record keeps them."""
    fields = ("name", "kernel", "selected_by", "margin")
    found = document(here, out=out)["layers"]
    return [{k: x.get(k) for k in fields} | {"tried": len(x["candidates"])} for x in found]


def whole(here: Path, out: str = "out") -> None:
    """A bundle is what its manifest and its lock say."""
    run(here, "verify-bundle", out)
    run(here, "lock", "verify", out, "--here")


def doctor(here: Path, facts: Facts) -> None:
    """What trtplug finds here."""
    doctor = json.loads(run(here, "doctor", "--format", "json").out)
    (trt,) = (b for b in doctor["backends"] if b["name"] == "trt")
    facts |= {"version": trt["version"], "sms": trt["sms"], "cuda_layer": doctor["cuda_layer"]}
    check(not trt["problem"], f"doctor: {trt['problem']}")


def build_cold(here: Path, facts: Facts) -> None:
    """Every layer is timed; the engine is run once; lock, report and tactics agree."""
    save(chain(), here / "m.onnx")
    build(here)
    report = document(here)
    facts["layers"] = layers(here)
    facts["cache"] = report["timing_cache"]
    check(report["timing_cache"]["word"] == "cold", f"the cache: {report['timing_cache']}")
    check("run once on random input" in report["assumptions"][0], "no trial run")
    check(any(x["tried"] > 1 for x in facts["layers"]), "no layer shows what was tried")
    whole(here)
    run(here, "tactics", "out")


def cache_hit(here: Path, facts: Facts) -> None:
    """The same build again times nothing, also where that is required."""
    save(chain(), here / "m.onnx")
    build(here, "--force", "--require-cache")
    report = document(here)
    facts["cache"] = report["timing_cache"]
    check(report["timing_cache"]["word"] == "hit", f"the cache: {report['timing_cache']}")
    run(here, "lock", "diff", "../build-cold/out", "out")


def lock_replay(here: Path, facts: Facts) -> None:
    """A lock gives the same kernels, and nothing is timed."""
    save(chain(), here / "m.onnx")
    run(here, "build", "m.onnx", "--locked", "../build-cold/out", "--out", "out")
    run(here, "lock", "diff", "../build-cold/out", "out")
    facts["cache"] = document(here)["timing_cache"]
    facts["selected_by"] = sorted({str(x["selected_by"]) for x in layers(here)})
    whole(here)


def lock_tampered(here: Path, facts: Facts) -> None:
    """A lock with one hash changed is refused, and nothing is kept."""
    save(chain(), here / "m.onnx")
    (folder,) = (p.parent for p in (here.parent / "build-cold/out").glob("sm_*/lock.json"))
    shutil.copytree(folder, here / "kept")
    file = here / "kept" / "lock.json"
    lock = json.loads(file.read_text(encoding="utf-8"))
    lock["tactics"][0]["tactic_hash"] = "0xbad"
    file.write_text(json.dumps(lock), encoding="utf-8")
    flags = ("--locked", "kept/lock.json", "--out", "out")
    run(here, "build", "m.onnx", *flags, status=3, said="lock-mismatch")
    check(not (here / "out").exists(), "a bundle was left")


def _runner_up(here: Path, *, plugin: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    """A layer of an earlier report, of our plugin or any, and the fastest of its others."""
    report = document(here)
    ours = {n for s in report["sites"] if s["outcome"] == "plugin" for n in s["layers"]}
    for layer in report["layers"]:
        others = [c for c in layer["candidates"] if not c["chosen"]]
        if others and (not plugin or layer["name"] in ours):
            timed = [c for c in others if c["time_us"] is not None] or others
            return layer, min(timed, key=lambda c: c["time_us"] or 0.0)
    of = " of our plugin" if plugin else ""
    raise StepFailedError(f"the report shows a second candidate of no layer{of}")


def _pin(here: Path, earlier: str, facts: Facts, *flags: str) -> None:
    layer, other = _runner_up(here.parent / earlier, plugin="--plugin" in flags)
    build(here, "--pin", f"{layer['name']}={other['tactic_hash']}", *flags)
    facts["pinned"] = [layer["name"], layer["kernel"], other["kernel"], other["tactic_hash"]]
    facts["layers"] = layers(here)
    (now,) = (x for x in document(here)["layers"] if x["name"] == layer["name"])
    check(now["selected_by"] == "pin", f"{layer['name']} was selected by {now['selected_by']}")
    whole(here)


def pin(here: Path, facts: Facts) -> None:
    """The runner-up of a layer, pinned by its hash."""
    save(chain(), here / "m.onnx")
    _pin(here, "build-cold", facts)


def ban(here: Path, facts: Facts) -> None:
    """The chosen kernel of a layer, banned: no layer has it."""
    save(chain(), here / "m.onnx")
    layer, _ = _runner_up(here.parent / "build-cold")
    kernel = layer["kernel"]
    build(here, "--ban", glob.escape(kernel))
    facts |= {"banned": kernel, "layers": layers(here)}
    check(kernel not in {x["kernel"] for x in facts["layers"]}, f"{kernel} is still there")


def keys_stable(here: Path, facts: Facts) -> None:
    """Another process with an empty cache: its keys and winners against the first build's."""
    save(chain(), here / "m.onnx")
    build(here, "--force", "--no-timing-cache")
    places = (here.parent / "build-cold", here)
    locks = [document(place, "lock.json")["tactics"] for place in places]
    first, second = ({t["key"]: t["tactic_hash"] for t in lock} for lock in locks)
    facts |= {
        "keys": [len(first), len(second)],
        "same_keys": first.keys() == second.keys(),
        "other_winners": sum(first[k] != second[k] for k in first.keys() & second.keys()),
    }


def _sites(here: Path, outcome: str, facts: Facts) -> None:
    report = document(here)
    facts["sites"] = [
        {"outcome": s["outcome"], "layers": s["layers"], "reason": s["choice"]["reason"]}
        for s in report["sites"]
    ]
    facts["layers"] = layers(here)
    facts["warnings"] = report["warnings"]
    others = [s for s in facts["sites"] if not s["outcome"].startswith(outcome)]
    check(facts["sites"] and not others, f"sites that are not {outcome}: {others}")
    whole(here)


def plugin_always(here: Path, facts: Facts) -> None:
    """Every site gets our kernels, and the engine runs with them."""
    save(wide(), here / "m.onnx")
    build(here, *FP16, "--plugin", "always")
    _sites(here, "plugin", facts)
    shown = document(here, "inspector.json")["Layers"]
    said = [str(x.get("Metadata", "")) for x in shown if isinstance(x, dict)]
    facts["metadata"] = [m for m in said if "trtplug site=" in m]
    choices = [s["choice"] for s in document(here)["sites"]]
    facts["tactics"] = [[c["tactic"], len(c["tactics"])] for c in choices]
    facts["plugin_layers"] = sum(s["outcome"] == "plugin" for s in facts["sites"])


def plugin_never(here: Path, facts: Facts) -> None:
    """No site gets our kernels."""
    save(wide(), here / "m.onnx")
    build(here, *FP16, "--plugin", "never")
    _sites(here, "native", facts)


def plugin_pin(here: Path, facts: Facts) -> None:
    """A tactic of our plugin, pinned as any other."""
    save(wide(), here / "m.onnx")
    _pin(here, "plugin-always", facts, *FP16, "--plugin", "always")


def options(here: Path, facts: Facts) -> None:
    """Options that every release has; a cache of other flags is no hit, and one is required."""
    save(chain(), here / "m.onnx")
    search = ("--avg-timing", 2, "--max-tactics", 4, "--optimization-level", 2, "--aux-streams", 1)
    more = ("--workspace", "1GiB", "--no-tf32", "--tiling", "none", "--sparsity")
    build(here, *search, *more, "--require-cache", status=1)
    report = document(here)
    facts |= {"flags": report["flags"], "cache": report["timing_cache"]}


def profiles(here: Path, facts: Facts) -> None:
    """Dynamic shapes in two optimization profiles, each run once."""
    save(sized(), here / "m.onnx")
    shape = ("--shape", "x=1x3x16x16:1x3x32x32:4x3x64x64")
    build(here, *shape, "--profile", "x=8x3x64x64")
    whole(here)


def strip(here: Path, facts: Facts) -> None:
    """An engine without weights is loaded, and not run."""
    save(chain(), here / "m.onnx")
    build(here, "--strip")
    check("it has no weights" in document(here)["assumptions"][0], "it was run all the same")


def light_model(here: Path, facts: Facts) -> None:
    """SqueezeNet of the onnx package; without a measurement every site of it stays native."""
    (onnx_folder,) = find_spec("onnx").submodule_search_locations  # type: ignore[union-attr,misc]
    data = Path(onnx_folder) / "backend" / "test" / "data" / "light"
    shutil.copyfile(data / "light_squeezenet.onnx", here / "m.onnx")
    build(here)
    report = document(here)
    facts["layers"] = len(report["layers"])
    facts["totals"] = report["totals"]
    outcomes = {s["outcome"] for s in report["sites"]}
    check("plugin" not in outcomes, "a site got the plugin without a measurement")
    facts["near_ties"] = sum(x["margin"] is not None and x["margin"] < 0.05 for x in layers(here))
    whole(here)


def numbers(here: Path, facts: Facts) -> None:
    """Outputs and times of the engine with our kernels, of the native one, and ONNX Runtime's."""
    from tests.gpu.numbers import gpu_state, reference_of, relative_error
    from tests.gpu.session import Session

    session = Session(here)
    found: dict[str, Facts] = {"plugin-never": {}, "plugin-always": {}}
    work = {}
    for name, seen in found.items():
        folder = here.parent / name
        (plan,) = (folder / "out").glob("sm_*/*.engine")
        feeds, wanted = reference_of(folder / "m.onnx")
        loaded = session.engine(plan.read_bytes())
        kinds = {n: loaded.numpy_type(n) for n in (*feeds, *wanted)}
        given = {n: a.astype(kinds[n]) for n, a in feeds.items()}
        outputs = {n: (a.shape, kinds[n]) for n, a in wanted.items()}
        error = relative_error(loaded.run(given, outputs), wanted)
        seen["relative_error"] = None if session.double else error
        work[name] = (loaded, given, outputs)
    facts |= found
    wrong = {n: seen["relative_error"] for n, seen in found.items() if not _close(seen)}
    check(not wrong, f"outputs differ from ONNX Runtime's: {wrong}")
    if session.double:  # whose clock counts calls
        return
    facts["gpu_before"] = gpu_state()
    for name, samples in _interleaved(work).items():
        found[name] |= {"samples_us": samples, "median_us": statistics.median(samples)}
    facts["gpu_after"] = gpu_state()
    for name, (loaded, *fed) in work.items():
        # Last: with a profiler every run waits for its layers.
        facts[name] = {**found[name], "layers_us": loaded.layer_times_us(*fed)}


def _interleaved(work: dict[str, Any]) -> dict[str, list[float]]:
    """Samples of each engine, taken in turns: a clock that drifts meets all of them."""
    samples: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(_ROUNDS):
        for name, (loaded, *fed) in work.items():
            samples[name] += loaded.median_us(*fed)[1]
    return samples


def _close(found: Facts) -> bool:
    """Whether an error is small; there is none on the double, which computes nothing."""
    error = found["relative_error"]
    return error is None or (isinstance(error, float) and error <= _TOLERANCE)


FLOWS: dict[str, Flow] = {
    "doctor": doctor,
    "build-cold": build_cold,
    "cache-hit": cache_hit,
    "lock-replay": lock_replay,
    "lock-tampered": lock_tampered,
    "pin": pin,
    "ban": ban,
    "plugin-always": plugin_always,
    "plugin-never": plugin_never,
    "plugin-pin": plugin_pin,
    "numbers": numbers,
    "keys-stable": keys_stable,
    "options": options,
    "profiles": profiles,
    "strip": strip,
    "light-model": light_model,
}
