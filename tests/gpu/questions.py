"""What only a GPU can tell, each answered in one line from what the steps saw.

An answer is `yes`, `no` or `not known`, and why. What a step that crashed, timed out or was not run
would have told is not known, save where the crash itself is the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.gpu.steps import Outcome

    Facts = dict[str, Any]

Word = Literal["yes", "no", "not known"]
Answer = tuple[Word, str]

_EXACT = 1e-3
_LEAK_BYTES_A_CHANGE = 16 << 10
"""Modules take tens of KiB; free memory is told in steps of 2 MiB."""
_ALIGNMENT_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question."""

    name: str
    text: str
    step: str | None
    """Whose facts answer it; None where nothing here asks."""
    answer: Callable[[Facts], Answer]
    runs: bool = False
    """Whether it takes a kernel that runs, which none does on the double."""
    crash_is_no: bool = False
    """Whether a crash of the step answers it."""


def answer_all(
    questions: tuple[Question, ...], outcomes: Mapping[str, Outcome], *, double: bool
) -> list[dict[str, Any]]:
    """A record of each question, in order."""
    found = []
    for question in questions:
        word, why = _answer(question, outcomes, double=double)
        record = {"kind": "question", "name": question.name, "question": question.text}
        found.append({**record, "answer": word, "why": why, "step": question.step})
    return found


def _answer(question: Question, outcomes: Mapping[str, Outcome], *, double: bool) -> Answer:
    if question.step is None:
        return question.answer({})
    outcome = outcomes.get(question.step)
    if outcome is None or outcome.status == "not run":
        return "not known", f"{question.step} was not run: {outcome.why if outcome else 'left out'}"
    if outcome.status in ("crashed", "timed out"):
        word: Word = "no" if question.crash_is_no and outcome.status == "crashed" else "not known"
        return word, f"{question.step} {outcome.status}: {outcome.why}"
    if question.runs and double:
        return "not known", "the double of TensorRT runs no kernel"
    try:
        return question.answer(outcome.facts)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        failed = f"{outcome.status}: {outcome.why}" if outcome.why else f"no fact {error}"
        return "not known", f"{question.step} {failed}"


def _table(f: Facts) -> Answer:
    if not f["table"]:
        return "no", f"{f['native_tables']} tables of native operations, none of the plugin's"
    shown = ", ".join(f"{kernel} {number}" for kernel, number in f["candidates"])
    return "yes", f"it lists {shown}"


def _pinned(f: Facts) -> Answer:
    if f["pin"] != "built":
        return "no", f"{f['pin']}; {f.get('pinned_built', '')}".rstrip("; ")
    cold, now = f["tactic_cold"], f["tactic_pinned"]
    if cold == now:
        return "no", f"the edit was taken, and tactic {now} runs as before"
    return "yes", f"tactic {cold} ran before, {now} after"


def _miss(name: str) -> Callable[[Facts], Answer]:
    def answer(f: Facts) -> Answer:
        if f["strict_full"] != "built":
            return "not known", f"it fails with a full cache too: {f['strict_full']}"
        if f[name].startswith("not asked"):
            return "not known", f[name]
        return ("no", "it built all the same") if f[name] == "built" else ("yes", f[name])

    return answer


def _stable(f: Facts) -> Answer:
    count = f"{f['keys'][0]} and {f['keys'][1]} keys in two processes"
    if not f["same_keys"]:
        return "no", f"{count}, not the same ones"
    return "yes", f"{count}; after a driver update: not known, run this again then and compare"


def _same_winners(f: Facts) -> Answer:
    if not f["same_keys"]:
        return "not known", "the two builds have other keys"
    count = f["other_winners"]
    return ("no" if count else "yes"), f"{count} of {f['keys'][0]} keys have another winner"


def _works(f: Facts) -> Answer:
    if f["built"] != "yes":
        return "no", f"no engine: {f['built']}"
    if f["run"] != "yes":
        return "no", f"the engine does not run: {f['run']}"
    if f["error"] > _EXACT:
        return "no", f"wrong numbers, by up to {f['error']:.3g}"
    return "yes", "built, run, numbers right"


def _cubin(f: Facts) -> Answer:
    if f.get("ptx_run") != "yes" or f["ptx_error"] > _EXACT:
        return "not known", f"the same kernel as PTX does not work either: {f.get('ptx_built')}"
    return _works(f)


def _cluster(f: Facts) -> Answer:
    if f["sm"] < 90:
        return "not known", f"sm_{f['sm']} has no clusters"
    return _works(f)


def _refit(f: Facts) -> Answer:
    if f["built"] != "yes":
        return "no", f"no engine with REFIT: {f['built']}"
    if "refitter" in f:
        return "not known", f["refitter"]
    if "after" not in f:
        return "no", f"the plugin's weight is not among those that can be set: {f['names']}"
    changed = f["after"] != f["before"]
    return ("yes" if changed else "no"), f"added {f['before']} before, {f['after']} after"


def _reformats(f: Facts) -> Answer:
    native, plugin = f["native"], f["plugin"]
    if plugin["layers_us"] is None:
        return "not known", "these bindings have no profiler"
    names = [n for n in plugin["layers_us"] if "reformat" in n.lower() or "copy" in n.lower()]
    whole = f"{plugin['median_us']:.2f} us with it, {native['median_us']:.2f} us without (medians)"
    shown = ", ".join(f"{n} {t:.2f} us" for n, t in plugin["layers_us"].items())
    return ("yes" if names else "no"), f"{len(names)} by their names; {whole}; its layers: {shown}"


def _routes(f: Facts) -> Answer:
    if not f["offered"]:
        return "not known", "this TensorRT offers no build routes (they came with 11.1, on Linux)"
    shown = ", ".join(f["conv"]) or "none"
    return ("yes" if f["conv"] else "no"), f"{len(f['conv'])} of {f['routes']} name it: {shown}"


def _metadata(f: Facts) -> Answer:
    kept, layers = len(f["metadata"]), f["plugin_layers"]
    return ("yes" if kept >= layers > 0 else "no"), f"of {layers} plugin layers, {kept} have it"


def _no_tactic(f: Facts) -> Answer:
    said = f["no_tactic"]
    if said.startswith("not asked"):
        return "not known", said
    return ("no" if said.startswith("built") else "yes"), said


def _marked(f: Facts) -> Answer:
    several = [name for name, offered in f["tactics"] if offered > 1]
    if not several:
        return "not known", "every site was offered one tactic alone"
    known = [name for name in several if name is not None]
    shown = ", ".join(known) or "none"
    return (
        "yes" if len(known) == len(several) else "no"
    ), f"of {len(several)} sites, read: {shown}"


def _leak(f: Facts) -> Answer:
    if f["built"] != "yes":
        return "not known", f"no engine: {f['built']}"
    if f["device_bytes"] is None:
        return "not known", "the driver does not tell how much memory is free"
    each = max(f["device_bytes"], f["host_bytes"]) / f["changes"]
    seen = f"{f['device_bytes']} bytes of the device, {f['host_bytes']} of the host"
    word: Word = "yes" if each > _LEAK_BYTES_A_CHANGE else "no"
    return word, f"{seen}, after {f['changes']} runs with another shape each"


def _collide(f: Facts) -> Answer:
    if f["built"] != "yes":
        return "not known", f"no engine: {f['built']}"
    count = len(f["keys"])
    return ("yes" if count == 1 else "no"), f"{count} keys for two plugins"


def _order(f: Facts) -> Answer:
    if f["built"] != "yes":
        return "no", f"no engine: {f['built']}"
    return ("yes" if f["added"] == [1.0, 2.0] else "no"), f"outputs hold x + {f['added']}"


def _aligned(f: Facts) -> Answer:
    if f["built"] != "yes":
        return "not known", f"no engine: {f['built']}"
    offsets = f["offsets"]
    bad = [n for n in offsets if n % _ALIGNMENT_BYTES]
    return ("no" if bad else "yes"), f"three tensors of odd size lie at {offsets} of their pages"


def _padding(f: Facts) -> Answer:
    counts = {n: f[n] for n in ("behind_input", "behind_conv")}
    if not all(isinstance(n, int) for n in counts.values()):
        return "not known", str(counts)
    shown = ", ".join(f"{n.replace('_', ' ')}: {v} of 256" for n, v in counts.items())
    return ("no" if any(counts.values()) else "yes"), f"pixels whose padding is not zero: {shown}"


def _key_names(f: Facts) -> Answer:
    if not f["again"]:
        return "not known", "two builds of one network have other keys"
    return ("no" if f["renamed"] else "yes"), f"{f['keys'][0]} keys, nodes called otherwise"


def _function(f: Facts) -> Answer:
    if f["built"] != "yes":
        return "no", f["built"]
    good = f["error"] is not None and f["error"] < 2e-2
    return ("yes" if good else "no"), f"relative error against ONNX Runtime: {f['error']}"


def _numbers(f: Facts) -> Answer:
    errors = {n: f[n]["relative_error"] for n in ("plugin-always", "plugin-never")}
    shown = ", ".join(f"{n} {e:.2g}" for n, e in errors.items())
    return ("yes" if max(errors.values()) <= 2e-2 else "no"), f"relative errors: {shown}"


def _faster(f: Facts) -> Answer:
    ours, native = f["plugin-always"], f["plugin-never"]
    shown = f"{ours['median_us']:.2f} us against {native['median_us']:.2f} us (medians)"
    if max(ours["samples_us"]) < min(native["samples_us"]):
        return "yes", f"{shown}; every sample is faster"
    if min(ours["samples_us"]) > max(native["samples_us"]):
        return "no", f"{shown}; every sample is slower"
    return "no", f"{shown}; the samples overlap"


def _not_asked(why: str) -> Callable[[Facts], Answer]:
    return lambda _: ("not known", why)


QUESTIONS: tuple[Question, ...] = (
    Question(
        name="plugin-table",
        text="Does the VERBOSE log list a plugin's tactics in an autotuning table, with hashes?",
        step="plugin-tactics",
        answer=_table,
    ),
    Question(
        name="plugin-pin",
        text="Can a plugin's tactic be pinned through ITimingCache.update()?",
        step="plugin-tactics",
        answer=_pinned,
    ),
    Question(
        name="keys-stable",
        text="Are the timing cache's keys the same in every process on one GPU?",
        step="keys-stable",
        answer=_stable,
    ),
    Question(
        name="winners-stable",
        text="Do two builds with empty caches choose the same tactics?",
        step="keys-stable",
        answer=_same_winners,
    ),
    Question(
        name="key-names",
        text="Do keys of native layers change with the names of nodes?",
        step="key-names",
        answer=_key_names,
    ),
    Question(
        name="aot-cubin",
        text="Does an ahead-of-time plugin take a cubin in place of PTX?",
        step="aot-cubin",
        answer=_cubin,
        runs=True,
        crash_is_no=True,
    ),
    Question(
        name="aot-shared-memory",
        text="Can an ahead-of-time plugin use more than 48 KiB of dynamic shared memory?",
        step="aot-shared-memory",
        answer=_works,
        runs=True,
        crash_is_no=True,
    ),
    Question(
        name="aot-refit",
        text="Can a weight that an ahead-of-time plugin reads be refitted?",
        step="aot-refit",
        answer=_refit,
        runs=True,
        crash_is_no=True,
    ),
    Question(
        name="aot-cluster",
        text="Does an ahead-of-time plugin run with clusters that its PTX asks for?",
        step="aot-cluster",
        answer=_cluster,
        runs=True,
        crash_is_no=True,
    ),
    Question(
        name="argument-order",
        text="Are a plugin's two outputs its kernel's last two arguments, in order?",
        step="argument-order",
        answer=_order,
        runs=True,
        crash_is_no=True,
    ),
    Question(
        name="reformat-cost",
        text="Does TensorRT put reformats around a linear FP16 plugin between convolutions?",
        step="reformat-cost",
        answer=_reformats,
        runs=True,
    ),
    Question(
        name="conv-routes",
        text="Do build routes name convolutions?",
        step="conv-routes",
        answer=_routes,
    ),
    Question(
        name="miss-flag-plugin",
        text="Does ERROR_ON_TIMING_CACHE_MISS stop a build that lacks a plugin's tactic?",
        step="plugin-tactics",
        answer=_miss("strict_no_plugin"),
    ),
    Question(
        name="miss-flag-native",
        text="Does ERROR_ON_TIMING_CACHE_MISS stop a build that lacks a native tactic?",
        step="plugin-tactics",
        answer=_miss("strict_no_native"),
    ),
    Question(
        name="no-such-tactic",
        text="Does a build fail whose cache asks for a tactic that is none?",
        step="plugin-tactics",
        answer=_no_tactic,
    ),
    Question(
        name="kernel-text",
        text="Does the engine hold the text of our kernels, so that it tells which tactic won?",
        step="plugin-always",
        answer=_marked,
    ),
    Question(
        name="plugin-metadata",
        text="Does the engine inspector show the metadata string of our plugin?",
        step="plugin-always",
        answer=_metadata,
    ),
    Question(
        name="module-leak",
        text="Does memory grow when an ahead-of-time plugin's shape changes (TensorRT issue 4849)?",
        step="module-leak",
        answer=_leak,
        runs=True,
    ),
    Question(
        name="cache-collision",
        text="Do stock plugins of one shape and other attributes share a key of the timing cache?",
        step="cache-collision",
        answer=_collide,
    ),
    Question(
        name="tensor-alignment",
        text="Do tensors inside the network lie at multiples of 16 bytes?",
        step="tensor-alignment",
        answer=_aligned,
        runs=True,
    ),
    Question(
        name="padding-lanes",
        text="Are the lanes of HWC8 beyond the channels zero?",
        step="padding-lanes",
        answer=_padding,
        runs=True,
    ),
    Question(
        name="local-function",
        text="Does the parser read the ONNX functions of a rewritten model, without a plugin?",
        step="local-function",
        answer=_function,
        crash_is_no=True,
    ),
    Question(
        name="plugin-numbers",
        text="Does the engine with our kernels give ONNX Runtime's numbers?",
        step="numbers",
        answer=_numbers,
        runs=True,
    ),
    Question(
        name="plugin-faster",
        text="Is the engine with our kernels faster than the native one, on one small model?",
        step="numbers",
        answer=_faster,
        runs=True,
    ),
    Question(
        name="jit-table",
        text="Are tactics of an IPluginV3 in Python listed in an autotuning table too?",
        step=None,
        answer=_not_asked("nothing here asks it: only ahead-of-time plugins are built"),
    ),
    Question(
        name="inner-formats",
        text="Does the builder weigh the reformats of a plugin's formats over the whole network?",
        step=None,
        answer=_not_asked("two builds do not tell; see the tables in plugin-always"),
    ),
)
