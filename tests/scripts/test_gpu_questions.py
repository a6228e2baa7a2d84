"""What answers of scripts/gpu_check say of facts as a GPU would give them; no GPU here gave any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.backends.trt.uses import RECEIVERS, uses_of
from tests.bindings.versions import VERSIONS, bindings
from tests.gpu import session
from tests.gpu.questions import QUESTIONS, answer_all
from tests.gpu.steps import Outcome, Step
from trtplug.backends.trt.capabilities import find_capability

BY_NAME = {q.name: q for q in QUESTIONS}
TACTICS = {
    "table": True,
    "candidates": [["A", "0x1"], ["B", "0x2"]],
    "native_tables": 1,
    "pin": "built",
    "tactic_cold": 1,
    "tactic_pinned": 2,
    "no_tactic": "built, with 0x7",
    "strict_full": "built",
    "strict_no_plugin": "built",
    "strict_no_native": "Error: a miss",
}
WORKS = {"built": "yes", "run": "yes", "error": 0.0}
BOTH = {
    "plugin-always": {"relative_error": 1e-3, "median_us": 5.0, "samples_us": [4.9, 5.1]},
    "plugin-never": {"relative_error": 1e-3, "median_us": 6.0, "samples_us": [5.9, 6.1]},
}
SLOW = {**BOTH["plugin-never"], "samples_us": [5.0, 6.1]}
TIMES = {"conv0": 2.0, "Reformatting CopyNode for Input Tensor 0 to probe0": 1.0}


@pytest.mark.parametrize(
    ("name", "facts", "answer", "words"),
    [
        ("plugin-table", TACTICS, "yes", "it lists A 0x1, B 0x2"),
        ("plugin-table", {**TACTICS, "table": False}, "no", "1 tables of native operations"),
        ("plugin-pin", TACTICS, "yes", "tactic 1 ran before, 2 after"),
        ("plugin-pin", {**TACTICS, "tactic_pinned": 1}, "no", "tactic 1 runs as before"),
        ("plugin-pin", {"pin": "update() refused it"}, "no", "update() refused it"),
        ("plugin-pin", {"pin": "not built", "pinned_built": "why"}, "no", "not built; why"),
        ("miss-flag-plugin", TACTICS, "no", "it built all the same"),
        ("miss-flag-native", TACTICS, "yes", "Error: a miss"),
        ("miss-flag-native", {**TACTICS, "strict_full": "Error"}, "not known", "full cache too"),
        ("miss-flag-native", {**TACTICS, "strict_no_native": "not asked: x"}, "not known", "x"),
        ("no-such-tactic", TACTICS, "no", "built, with 0x7"),
        ("no-such-tactic", {"no_tactic": "Error: 0xbad"}, "yes", "Error: 0xbad"),
        ("no-such-tactic", {"no_tactic": "not asked: why"}, "not known", "why"),
        ("kernel-text", {"tactics": [["a", 2], [None, 1]]}, "yes", "of 1 sites, read: a"),
        ("kernel-text", {"tactics": [["a", 2], [None, 2]]}, "no", "of 2 sites, read: a"),
        ("kernel-text", {"tactics": [["a", 1]]}, "not known", "one tactic alone"),
        ("keys-stable", {"keys": [3, 3], "same_keys": True}, "yes", "driver update: not known"),
        ("keys-stable", {"keys": [3, 4], "same_keys": False}, "no", "not the same"),
        ("winners-stable", {"keys": [3, 3], "same_keys": True, "other_winners": 1}, "no", "1 of 3"),
        ("key-names", {"again": True, "renamed": False, "keys": [2, 2, 2]}, "yes", "2 keys"),
        ("key-names", {"again": True, "renamed": True, "keys": [2, 2, 2]}, "no", "2 keys"),
        ("key-names", {"again": False}, "not known", "other keys"),
        ("aot-cubin", {"ptx_run": "yes", "ptx_error": 0.0, **WORKS}, "yes", "numbers right"),
        ("aot-cubin", {"ptx_built": "an error"}, "not known", "as PTX does not work either"),
        ("aot-shared-memory", {**WORKS, "run": "RuntimeError: x"}, "no", "does not run"),
        ("aot-shared-memory", {"built": "no tactic"}, "no", "no engine: no tactic"),
        ("aot-shared-memory", {**WORKS, "error": 1.0}, "no", "wrong numbers"),
        ("aot-cluster", {"sm": 80}, "not known", "sm_80 has no clusters"),
        ("aot-cluster", {"sm": 90, **WORKS}, "yes", "numbers right"),
        ("aot-arch-specific", {"sm": 89}, "not known", "sm_89 has no target of its own"),
        ("aot-arch-specific", {"sm": 90, **WORKS}, "yes", "numbers right"),
        ("aot-refit", {"built": "yes", "before": 1.0, "after": 5.0}, "yes", "added 1.0 before"),
        ("aot-refit", {"built": "yes", "before": 1.0, "after": 1.0}, "no", "1.0 after"),
        ("aot-refit", {"built": "yes", "before": 1.0, "names": ["b"]}, "no", "not among"),
        ("argument-order", {"built": "yes", "added": [1.0, 2.0]}, "yes", "x + [1.0, 2.0]"),
        ("argument-order", {"built": "yes", "added": [2.0, 1.0]}, "no", "x + [2.0, 1.0]"),
        (
            "reformat-cost",
            {"native": {"median_us": 4.0}, "plugin": {"median_us": 7.0, "layers_us": TIMES}},
            "yes",
            "1 by their names; 7.00 us with it, 4.00 us without (medians); its layers: conv0 2.00",
        ),
        ("conv-routes", {"offered": False}, "not known", "11.1"),
        ("conv-routes", {"offered": True, "routes": 9, "conv": ["-a"]}, "yes", "1 of 9"),
        ("plugin-metadata", {"metadata": ["m"], "plugin_layers": 2}, "no", "of 2 plugin layers, 1"),
        (
            "module-leak",
            {"built": "yes", "device_bytes": 60_000_000, "host_bytes": 0, "changes": 600},
            "yes",
            "60000000 bytes of the device",
        ),
        (
            "module-leak",
            {"built": "yes", "device_bytes": 2 << 20, "host_bytes": 0, "changes": 600},
            "no",
            "after 600 runs",
        ),
        ("cache-collision", {"built": "yes", "keys": ["a", "b"]}, "no", "2 keys"),
        ("tensor-alignment", {"built": "yes", "offsets": [0, 512, 36]}, "no", "[0, 512, 36]"),
        ("tensor-alignment", {"built": "yes", "offsets": [0, 512, 32]}, "yes", "[0, 512, 32]"),
        ("padding-lanes", {"behind_input": 0, "behind_conv": 7}, "no", "behind conv: 7 of 256"),
        ("padding-lanes", {"behind_input": 0, "behind_conv": "x"}, "not known", "x"),
        ("local-function", {"built": "yes", "error": 1e-4}, "yes", "0.0001"),
        ("local-function", {"built": "yes", "error": 0.7}, "no", "0.7"),
        ("plugin-numbers", BOTH, "yes", "plugin-always 0.001"),
        ("plugin-faster", BOTH, "yes", "5.00 us against 6.00 us (medians); every sample is faster"),
        ("plugin-faster", {**BOTH, "plugin-never": SLOW}, "no", "the samples overlap"),
        ("jit-table", {}, "not known", "nothing here asks it"),
    ],
)
def test_facts_and_what_is_said_of_them(name: str, facts: dict[str, Any], answer: str, words: str):
    record = asked(name, "passed", facts)
    assert record["answer"] == answer
    assert words in record["why"]


def asked(
    name: str, status: Any, facts: dict[str, Any], why: str = "", *, double: bool = False
) -> dict[str, Any]:
    question = BY_NAME[name]
    step = Step(name=question.step or "none", kind="probe", what="")
    outcome = Outcome(step=step, status=status, why=why, facts=facts)
    (record,) = answer_all((question,), {step.name: outcome}, double=double)
    return record


def test_every_question_is_asked_above_or_has_no_facts():
    marks = test_facts_and_what_is_said_of_them.pytestmark  # type: ignore[attr-defined]
    tried = {row[0] for row in marks[0].args[1]}
    assert {q.name for q in QUESTIONS} - tried == {"inner-formats"}


def test_a_step_that_did_not_end_well():
    crashed = asked("aot-refit", "crashed", {"built": "yes"}, "signal SIGSEGV")
    assert (crashed["answer"], crashed["why"]) == ("no", "aot-refit crashed: signal SIGSEGV")
    crashed = asked("plugin-table", "crashed", {}, "signal SIGSEGV")
    assert crashed["answer"] == "not known"
    stopped = asked("aot-refit", "timed out", {}, "stopped after 90 s")
    assert (stopped["answer"], stopped["why"]) == (
        "not known",
        "aot-refit timed out: stopped after 90 s",
    )
    failed = asked("plugin-table", "failed", {}, "no TensorRT plugins")
    assert failed["why"] == "plugin-tactics failed: no TensorRT plugins"
    # What was seen before a step failed still counts.
    assert asked("plugin-table", "failed", TACTICS, "later")["answer"] == "yes"


def test_the_double_answers_nothing_that_takes_a_running_kernel():
    said = asked("aot-shared-memory", "passed", WORKS, double=True)
    assert said["answer"] == "not known"


# --- names of TensorRT that the probes use -----------------------------------------------------

SOURCES = ("session", "cache_probes", "aot_probes", "network_probes")


@pytest.mark.parametrize("release", list(VERSIONS))
def test_names_that_probes_use_are_in_the_real_bindings(
    release: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(RECEIVERS, "refitter", "Refitter")
    real, wrong, seen = bindings(release), [], set()
    for source in SOURCES:
        text = (Path(session.__file__).parent / f"{source}.py").read_text(encoding="utf-8")
        for use in uses_of(text, source):
            if use.name == "__file__":
                continue
            seen.add(use.name)
            row = find_capability(use.name)
            if row is not None and not row.in_version(release):
                continue  # asked for with hasattr
            if real.find(use.name) is None:
                wrong.append(f"{use.where}: there is no {use.name}")
            elif use.call is not None and not real.fits(use.name, *use.call):
                wrong.append(f"{use.where}: {use.name} does not take {use.call}")
    assert wrong == []
    assert {
        "Refitter.set_named_weights",
        "ITimingCache.update",
        "IExecutionContext.profiler",
    } <= seen
