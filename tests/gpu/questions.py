"""What only a GPU can tell, each answered in one line from what the steps saw.

An answer is `yes`, `no` or `not known`, and why. What a step that crashed, timed out or was not run
would have told is not known, save where the crash itself is the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.gpu import answers
from tests.gpu.answers import Answer, Facts, Word

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.gpu.steps import Outcome


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


QUESTIONS: tuple[Question, ...] = (
    Question(
        name="plugin-table",
        text="Does the VERBOSE log list a plugin's tactics in an autotuning table, with hashes?",
        step="plugin-tactics",
        answer=answers.table,
    ),
    Question(
        name="plugin-pin",
        text="Can a plugin's tactic be pinned through ITimingCache.update()?",
        step="plugin-tactics",
        answer=answers.pinned,
    ),
    Question(
        name="keys-stable",
        text="Are the timing cache's keys the same in every process on one GPU?",
        step="keys-stable",
        answer=answers.stable,
    ),
    Question(
        name="winners-stable",
        text="Do two builds with empty caches choose the same tactics?",
        step="keys-stable",
        answer=answers.same_winners,
    ),
    Question(
        name="key-names",
        text="Do keys of native layers change with the names of nodes?",
        step="key-names",
        answer=answers.key_names,
    ),
    Question(
        name="aot-cubin",
        text="Does an ahead-of-time plugin take a cubin in place of PTX?",
        step="aot-cubin",
        answer=answers.cubin,
        runs=True,
        crash_is_no=True,
    ),
    Question(
        name="aot-shared-memory",
        text="Can an ahead-of-time plugin use more than 48 KiB of dynamic shared memory?",
        step="aot-shared-memory",
        answer=answers.works,
        runs=True,
        crash_is_no=True,
    ),
    Question(
        name="aot-refit",
        text="Can a weight that an ahead-of-time plugin reads be refitted?",
        step="aot-refit",
        answer=answers.refit,
        runs=True,
        crash_is_no=True,
    ),
    Question(
        name="aot-cluster",
        text="Does an ahead-of-time plugin run with clusters that its PTX asks for?",
        step="aot-cluster",
        answer=answers.cluster,
        runs=True,
        crash_is_no=True,
    ),
    Question(
        name="aot-arch-specific",
        text="Does an ahead-of-time plugin take PTX for one SM alone (sm_90a), as wgmma needs it?",
        step="aot-arch-specific",
        answer=answers.arch_specific,
        runs=True,
        crash_is_no=True,
    ),
    Question(
        name="argument-order",
        text="Are a plugin's two outputs its kernel's last two arguments, in order?",
        step="argument-order",
        answer=answers.order,
        runs=True,
        crash_is_no=True,
    ),
    Question(
        name="reformat-cost",
        text="Does TensorRT put reformats around a linear FP16 plugin between convolutions?",
        step="reformat-cost",
        answer=answers.reformats,
        runs=True,
    ),
    Question(
        name="conv-routes",
        text="Do build routes name convolutions?",
        step="conv-routes",
        answer=answers.routes,
    ),
    Question(
        name="miss-flag-plugin",
        text="Does ERROR_ON_TIMING_CACHE_MISS stop a build that lacks a plugin's tactic?",
        step="plugin-tactics",
        answer=answers.miss("strict_no_plugin"),
    ),
    Question(
        name="miss-flag-native",
        text="Does ERROR_ON_TIMING_CACHE_MISS stop a build that lacks a native tactic?",
        step="plugin-tactics",
        answer=answers.miss("strict_no_native"),
    ),
    Question(
        name="no-such-tactic",
        text="Does a build fail whose cache asks for a tactic that is none?",
        step="plugin-tactics",
        answer=answers.no_tactic,
    ),
    Question(
        name="kernel-text",
        text="Does the engine hold the text of our kernels, so that it tells which tactic won?",
        step="plugin-always",
        answer=answers.marked,
    ),
    Question(
        name="plugin-metadata",
        text="Does the engine inspector show the metadata string of our plugin?",
        step="plugin-always",
        answer=answers.metadata,
    ),
    Question(
        name="module-leak",
        text="Does memory grow when an ahead-of-time plugin's shape changes (TensorRT issue 4849)?",
        step="module-leak",
        answer=answers.leak,
        runs=True,
    ),
    Question(
        name="cache-collision",
        text="Do stock plugins of one shape and other attributes share a key of the timing cache?",
        step="cache-collision",
        answer=answers.collide,
    ),
    Question(
        name="tensor-alignment",
        text="Do tensors inside the network lie at multiples of 16 bytes?",
        step="tensor-alignment",
        answer=answers.aligned,
        runs=True,
    ),
    Question(
        name="padding-lanes",
        text="Are the lanes of HWC8 beyond the channels zero?",
        step="padding-lanes",
        answer=answers.padding,
        runs=True,
    ),
    Question(
        name="local-function",
        text="Does the parser read the ONNX functions of a rewritten model, without a plugin?",
        step="local-function",
        answer=answers.function,
        crash_is_no=True,
    ),
    Question(
        name="plugin-numbers",
        text="Does the engine with our kernels give ONNX Runtime's numbers?",
        step="numbers",
        answer=answers.numbers,
        runs=True,
    ),
    Question(
        name="plugin-faster",
        text="Is the engine with our kernels faster than the native one, on one small model?",
        step="numbers",
        answer=answers.faster,
        runs=True,
    ),
    Question(
        name="jit-table",
        text="Are tactics of an IPluginV3 in Python listed in an autotuning table too?",
        step=None,
        answer=answers.not_asked("nothing here asks it: only ahead-of-time plugins are built"),
    ),
    Question(
        name="inner-formats",
        text="Does the builder weigh the reformats of a plugin's formats over the whole network?",
        step=None,
        answer=answers.not_asked("two builds do not tell; see the tables in plugin-always"),
    ),
)
