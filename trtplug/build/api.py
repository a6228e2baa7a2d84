"""`trtplug.build`: the main job for Python callers."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from trtplug.backends.options import JOBS, REPEAT, TIMEOUT_S
from trtplug.errors import UsageError
from trtplug.model.arguments import (
    IoPrecision,
    PathLike,
    Precision,
    Shapes,
    to_path,
    to_precision,
    to_ranges,
    to_texts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trtplug.backends.options import BuildOptions
    from trtplug.backends.request import Event
    from trtplug.build.command import Built, Result
    from trtplug.lock.policy import TacticPolicy
    from trtplug.plan import Plan
    from trtplug.plugin.options import PluginOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One step of a build."""

    target: str
    """Such as `rtx-1.7:sm_89`."""
    event: str
    """`waiting` (for the GPU), `pass` (of several), `phase`, `step` and `end` (of a phase); at the
    end of a target `built`, `from_store` or `failed`."""
    name: str
    """Of the phase, as the builder calls it; for `failed` the error's code."""
    done: int | None = None
    """Steps of the phase, or the number of the pass."""
    total: int | None = None


def build(
    model: PathLike,
    *,
    targets: Iterable[str] = (),
    shapes: Shapes = (),
    out: PathLike = "out",
    precision: Precision = "keep",
    io_precision: IoPrecision = "keep",
    keep_fp32: Iterable[str] = (),
    backend: str = "auto",
    profiles: Iterable[Shapes] = (),
    options: BuildOptions | None = None,
    plugin: PluginOptions | None = None,
    tactics: TacticPolicy | None = None,
    jobs: int | None = None,
    repeat: int = 1,
    timeout_s: float | None = None,
    memory_limit_bytes: int | None = None,
    force: bool = False,
    wait: bool = True,
    progress: Callable[[Progress], None] | None = None,
) -> Built:
    """Builds one engine per target, and a bundle with their reports and locks.

    Args:
        model: an ONNX file.
        targets: GPU profiles (`rtx4090`), SMs (`sm_89`), `local` (the GPU here) or `all`.
        shapes: sizes of the inputs, as ranges where they may vary. Static inputs need none.
        out: folder of the bundle. A bundle that is there is replaced, anything else never.
        precision: type to compute in; `keep`: as the model says.
        io_precision: inputs and outputs keep their type, or `match` the precision.
        keep_fp32: globs over node names that stay in float32.
        backend: `auto`, `trt` (enterprise TensorRT, on a GPU) or `rtx` (TensorRT-RTX, needs none).
        profiles: further optimization profiles, one `Shapes` each.
        options: of the builder; its own defaults where None.
        plugin: which sites get trtplug's plugin (`trt` alone).
        tactics: pins, bans, timing cache, or a lock to replay (`trt` alone but for the lock).
        jobs: builds at once, 1 to 1024; one a processor by default.
        repeat: builds of each engine, to see whether they agree, 1 to 1000.
        timeout_s: time limit on each build, 0.1 to 1e9 seconds.
        memory_limit_bytes: limit on each builder's memory, in bytes.
        force: build even where the store has the engine.
        wait: wait while another build holds the GPU.
        progress: called in this thread at each step of a build. What it raises ends the build.

    Returns:
        The manifest of the bundle, and a report for each target that was built. A target that
        failed is in `manifest.failures`, and does not undo the others.

    Raises:
        UsageError: an option or a combination of options that makes no sense.
        UnknownTargetError: a target that is neither a profile, an SM, `local` nor `all`.
        ShapeError: the shapes do not fit the model's inputs.
        OutputInTheWayError: `out` is something else than a bundle.
        OutputError: `out` cannot be written.
        BackendMissingError: no builder is installed for what was asked.
        TrtplugError: any other reason that holds for every target. Nothing was written then.

    Example:
        >>> built = trtplug.build("model.onnx", targets=["sm_89"], shapes={"x": "1x3x32x32"},
        ...                       out="out", precision="fp16")
        >>> [(target.target, target.precision) for target in built.manifest.targets]
        [('rtx-1.7:sm_89', 'fp16')]
        >>> built.manifest.failures
        ()
        >>> built.reports["rtx-1.7:sm_89"].totals.sites
        1
    """
    from trtplug.backends.options import BuildOptions
    from trtplug.backends.run_child import LONGEST_BUILD_S, Limits
    from trtplug.build.command import BuildCommand
    from trtplug.build.run import run_build
    from trtplug.document import read_document
    from trtplug.lock.policy import TacticPolicy
    from trtplug.plugin.options import PluginOptions
    from trtplug.report.data import SCHEMA, Report
    from trtplug.settings import read_settings

    folder = to_path(out)
    policy = tactics or TacticPolicy()
    policy.check()
    command = BuildCommand(
        model=to_path(model),
        targets=to_texts("targets", targets),
        profiles=(to_ranges(shapes), *map(to_ranges, profiles)),
        out=folder,
        precision=to_precision(precision, io_precision, keep_fp32),
        backend=backend,
        options=options or BuildOptions(),
        wait=wait,
        limits=Limits(
            timeout_s=LONGEST_BUILD_S
            if timeout_s is None
            else _between("timeout_s", timeout_s, *TIMEOUT_S),
            memory_bytes=None
            if memory_limit_bytes is None
            else _between("memory_limit_bytes", memory_limit_bytes, 1, 2**63 - 1),
        ),
        jobs=_between("jobs", len(os.sched_getaffinity(0)) if jobs is None else jobs, *JOBS),
        repeat=_between("repeat", repeat, *REPEAT),
        force=force,
        policy=policy,
        plugin=plugin or PluginOptions(),
    )
    built = run_build(command, read_settings(), _Reporter(progress))
    # Reports of engines from the store are in the bundle alone.
    stored = {
        t.target: read_document(Report, SCHEMA, folder / t.sm / "report.json")
        for t in built.manifest.targets
        if t.target not in built.reports
    }
    return replace(built, reports={**stored, **built.reports})


_N = TypeVar("_N", int, float)


def _between(name: str, value: _N, least: _N, most: _N) -> _N:
    # Written so that nan is refused.
    if not least <= value <= most:
        raise UsageError(f"{name} {value!r} is not in the range {least} to {most}")
    return value


class _Reporter:
    """Hands the steps of a build to a callback."""

    def __init__(self, progress: Callable[[Progress], None] | None) -> None:
        self._say = progress or (lambda _: None)

    def planned(self, plan: Plan) -> None:
        """Nothing has begun yet."""

    def event(self, target: str, event: Event) -> None:
        """A step of one build."""
        kind = str(event["event"])
        if kind not in ("waiting", "pass", "phase", "step", "end"):
            return
        done, total = ("number", "of") if kind == "pass" else ("step", "steps")
        self._say(
            Progress(
                target=target,
                event=kind,
                name=str(event.get("name", "")),
                done=_whole(event.get(done)),
                total=_whole(event.get(total)),
            )
        )

    def ended(self, result: Result) -> None:
        """One target is done, or has failed."""
        made, error = result.made, result.error
        event = "failed" if made is None else "from_store" if made.from_store else "built"
        name = error.code if error is not None else ""
        self._say(Progress(target=result.target.target, event=event, name=name))


def _whole(value: object) -> int | None:
    return None if value is None else int(str(value))
