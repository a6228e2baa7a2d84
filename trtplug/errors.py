"""Every error trtplug raises on purpose: a stable code, an exit status, a message and a hint.

An error is made from fields, not from a sentence; its class has the sentence as a template. The
first paragraph of its docstring says when it is raised, as the table of errors prints it. All of
them survive `pickle` and JSON, since builds run in child processes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: bool) -> Any:  # noqa: ANN401
        """Of interest to type checkers only."""
        return lambda cls: cls


DONE = 0  # everything asked for was done
GATE_FAILED = 1  # done, but a check failed: files, outputs or locks differ, a kernel is wrong
BAD_INPUT = 2  # wrong use, or input that cannot be used
BUILD_FAILED = 3  # at least one build failed
MACHINE_LACKS = 4  # this machine lacks something that the command needs
FAULT = 70  # an internal error of trtplug
INTERRUPTED = 130  # stopped by Ctrl-C or SIGTERM


@dataclass_transform(eq_default=False)
class TrtplugError(Exception):
    """Base of all errors that trtplug raises on purpose.

    A subclass annotates its fields as a dataclass does, and is made like one. It is not one:
    making thirty dataclasses takes longer than parsing a command line.

    Templates are format strings over the fields. `{names}` of a tuple puts each item on an
    indented line of its own; `{names:, }` joins them with what follows the colon. A part in
    brackets is left out where its first field is empty or None.
    """

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = FAULT
    template: ClassVar[str]
    hint_template: ClassVar[str] = ""

    def __init_subclass__(cls, *, code: str, exit_status: int) -> None:
        cls.code, cls.exit_status = code, exit_status

    def __init__(self, *values: object, **named: object) -> None:
        given = {**dict(zip(self.fields(), values, strict=False)), **named}
        for name in self.fields():
            if name in given:
                setattr(self, name, given.pop(name))
            elif not hasattr(self, name):
                raise TypeError(f"{type(self).__name__} wants {name}")
        if given or len(values) > len(self.fields()):
            raise TypeError(f"{type(self).__name__} does not take {sorted(given)}")

    @classmethod
    def fields(cls) -> tuple[str, ...]:
        """Names of the fields, in order."""
        return tuple(n for n, kind in cls.__annotations__.items() if "ClassVar" not in str(kind))

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild from the fields: the default would call `__init__` with the joined message."""
        return error_from_plain, (error_to_plain(self),)

    @property
    def message(self) -> str:
        """One or more lines: what went wrong, where, got and wanted."""
        return self._fill(self.template)

    @property
    def hint(self) -> str:
        """What to do about it: the `advice` field where given; empty where there is none."""
        return getattr(self, "advice", "") or self._fill(self.hint_template)

    def _fill(self, template: str) -> str:
        values = {name: getattr(self, name) for name in self.fields()}
        wanted = re.sub(
            r"\[([^][{]*\{(\w+)[^][]*)\]", lambda m: m[1] if values[m[2]] else "", template
        )
        return wanted.format(
            **{n: _Items(v) if isinstance(v, (tuple, list)) else v for n, v in values.items()}
        )

    def __str__(self) -> str:
        return self.message


class _Items(list[object]):
    """A field of several items, as templates print it."""

    def __format__(self, separator: str) -> str:
        items = [str(item) for item in self]
        return separator.join(items) if separator else "".join(f"\n  {item}" for item in items)


def error_to_plain(error: TrtplugError) -> dict[str, Any]:
    """The error as JSON can hold it, to cross into another process."""
    return {"code": error.code} | {name: getattr(error, name) for name in error.fields()}


def error_from_plain(plain: Mapping[str, Any]) -> TrtplugError:
    """The inverse of `error_to_plain`."""
    (cls,) = (c for c in every_error() if c.code == plain["code"])
    return cls(**{name: plain[name] for name in cls.fields()})


def every_error() -> tuple[type[TrtplugError], ...]:
    """All concrete error classes, in order of their code."""
    return tuple(sorted(TrtplugError.__subclasses__(), key=lambda c: c.code))


class UsageError(TrtplugError, code="usage", exit_status=BAD_INPUT):
    """Unknown flag, bad value or conflicting options."""

    template = "{problem}"
    problem: str
    advice: str = ""


class ShapeError(TrtplugError, code="shape", exit_status=BAD_INPUT):
    """The given shapes do not fit the model; lists every problem."""

    template = "the shapes do not fit {model}:{problems}"
    hint_template = "[give: {flags: }]"
    model: str
    problems: tuple[str, ...]
    flags: tuple[str, ...] = ()


class UnknownTargetError(TrtplugError, code="unknown-target", exit_status=BAD_INPUT):
    """Unknown `--target`: not a GPU profile, an SM, `local` or `all`."""

    template = "unknown target {name!r}[; did you mean {nearest: or }?]"
    hint_template = "`trtplug targets` lists every name; an SM such as sm_89 works too"
    name: str
    nearest: tuple[str, ...]


class ConfigError(TrtplugError, code="config", exit_status=BAD_INPUT):
    """Invalid trtplug.toml."""

    template = "{file}: {problem}"
    file: str
    problem: str


class OptionUnsupportedError(TrtplugError, code="option-unsupported", exit_status=BAD_INPUT):
    """The installed builder does not have this option or value."""

    template = (
        "{option}: backend {backend} {version} does not have it"
        "[; it came with TensorRT {since}][; TensorRT {removed} removed it]"
    )
    option: str
    backend: str
    version: str
    since: str | None = None
    removed: str | None = None
    advice: str = ""


# Input files.


class FileUnreadableError(TrtplugError, code="file-unreadable", exit_status=BAD_INPUT):
    """The file cannot be read."""

    template = "cannot read {path}: {problem}"
    path: str
    problem: str


class ModelInvalidError(TrtplugError, code="model-invalid", exit_status=BAD_INPUT):
    """The file is not a valid ONNX model."""

    template = "{path} cannot be used as an ONNX model: {problem}"
    path: str
    problem: str
    advice: str = ""


class ExternalDataError(TrtplugError, code="external-data", exit_status=BAD_INPUT):
    """External weights are missing, too short, or outside the model's folder."""

    template = "{path}: tensor {tensor!r} keeps its data in {location!r}: {problem}"
    hint_template = "put the data file beside the model, or save the model again with its weights"
    path: str
    tensor: str
    location: str
    problem: str


class NodeInvalidError(TrtplugError, code="node-invalid", exit_status=BAD_INPUT):
    """The attributes or inputs of a node contradict each other."""

    template = "{path}: node {node!r} ({op_type}): {problem}"
    path: str
    node: str
    op_type: str
    problem: str


class DocumentError(TrtplugError, code="document", exit_status=BAD_INPUT):
    """A report, manifest, lock or plan cannot be read."""

    template = "{path} is not a usable {wanted} document: {problem}"
    path: str
    wanted: str
    problem: str


class ProfileInvalidError(TrtplugError, code="profile-invalid", exit_status=BAD_INPUT):
    """Invalid GPU profile."""

    # A test reads those that ship, so a broken one is the user's own.
    template = "profile {path}: {problem}"
    hint_template = "profiles/README.md lists the fields; TRTPLUG_PROFILES names your own folder"
    path: str
    problem: str


class ReferenceFailedError(TrtplugError, code="reference-failed", exit_status=BAD_INPUT):
    """ONNX Runtime cannot load or run a model."""

    template = "ONNX Runtime cannot run {path}: {problem}"
    path: str
    problem: str


class RewriteInvalidError(TrtplugError, code="rewrite-invalid", exit_status=BAD_INPUT):
    """ONNX's checker rejected the rewritten model; nothing was written."""

    template = "{path}, rewritten, is not valid ONNX: {problem}"
    hint_template = "check the original first: `python -m onnx.bin.checker MODEL`"
    path: str
    problem: str


class PrecisionError(TrtplugError, code="precision", exit_status=BAD_INPUT):
    """The model cannot be converted to this precision, or the precision changes nothing."""

    template = "{path} cannot be converted to {precision}: {problem}"
    path: str
    precision: str
    problem: str
    advice: str = ""


# Output.


class OutputError(TrtplugError, code="output", exit_status=MACHINE_LACKS):
    """The output folder or file cannot be written."""

    template = "cannot write {path}: {problem}"
    hint_template = "nothing was left half-written; free the space or choose another --out"
    path: str
    problem: str


class OutputInTheWayError(TrtplugError, code="output-in-the-way", exit_status=BAD_INPUT):
    """`--out` exists and is not a bundle of trtplug."""

    template = "{path} will not be replaced: {problem}"
    hint_template = "choose another --out, or move what is there"
    path: str
    problem: str


# Backends and builds.


class BackendMissingError(TrtplugError, code="backend-missing", exit_status=MACHINE_LACKS):
    """No usable backend is installed."""

    template = "backend {backend} cannot be used here: {problem}"
    hint_template = "`trtplug doctor` says what is missing and how to get it"
    backend: str
    problem: str
    advice: str = ""


class GpuMissingError(TrtplugError, code="gpu-missing", exit_status=MACHINE_LACKS):
    """`--target local` on a machine without a usable GPU."""

    template = "no GPU to build for: {problem}"
    hint_template = "name the target instead, such as --target rtx4090 or --target sm_89"
    problem: str


class GpuBusyError(TrtplugError, code="gpu-busy", exit_status=MACHINE_LACKS):
    """Another build uses the GPU, and `--no-wait` was given."""

    template = "another build is running on {gpu}[ ({holder})]"
    hint_template = "leave out --no-wait: two builds at once would time each other's kernels"
    gpu: str
    holder: str


class TargetUnsupportedError(TrtplugError, code="target-unsupported", exit_status=BUILD_FAILED):
    """The backend cannot build for this target."""

    template = "backend {backend} cannot build for {target}; it builds for {supported:, }"
    hint_template = "{who}"
    target: str
    backend: str
    supported: tuple[str, ...]
    who: str


class PluginDroppedError(TrtplugError, code="plugin-dropped", exit_status=BUILD_FAILED):
    """`--plugin always` was given, and a planned plugin is not in the engine."""

    hint_template = "build.log has the builder's reason; --plugin auto only warns about it"
    target: str
    sites: tuple[str, ...]

    @property
    def message(self) -> str:
        """Target and sites."""
        names = ", ".join(map(repr, self.sites))
        return f"the engine has no plugin layer for {names} ({self.target})"


class ParseFailedError(TrtplugError, code="parse-failed", exit_status=BUILD_FAILED):
    """The backend's ONNX parser rejected the model."""

    template = "the builder's parser refused the model ({target}):{refusals}"
    target: str
    refusals: tuple[str, ...]
    advice: str = ""


class BuildFailedError(TrtplugError, code="build-failed", exit_status=BUILD_FAILED):
    """The builder failed and reported why."""

    template = "the build for {target} failed:{reasons}"
    target: str
    reasons: tuple[str, ...]
    advice: str = ""

    @property
    def message(self) -> str:
        """The builder's own errors."""
        return super().message + ("" if self.reasons else "\n  the builder gave no reason")


class TrialFailedError(TrtplugError, code="trial-failed", exit_status=BUILD_FAILED):
    """The finished engine cannot be loaded, or its trial run failed."""

    template = "{problem}"
    problem: str


class BuilderCrashedError(TrtplugError, code="builder-crashed", exit_status=BUILD_FAILED):
    """The builder's process crashed."""

    template = (
        "the builder crashed while building for {target} ({how}); its last lines:{last_lines}"
    )
    hint_template = "build.log in the bundle has all of it"
    target: str
    how: str
    last_lines: tuple[str, ...]
    advice: str = ""


class BuildTimeoutError(TrtplugError, code="build-timeout", exit_status=BUILD_FAILED):
    """The build exceeded its time limit."""

    template = "the build for {target} passed its time limit of {limit_s:g} s and was stopped"
    hint_template = "raise --timeout"
    target: str
    limit_s: float


class BuildMemoryError(TrtplugError, code="build-memory", exit_status=BUILD_FAILED):
    """The build exceeded its memory limit, or the system killed it when memory ran out."""

    hint_template = "raise --memory-limit, or build fewer targets at once with --jobs 1"
    target: str
    peak_bytes: int
    limit_bytes: int | None

    @property
    def message(self) -> str:
        """Target, peak and limit."""
        peak = f"{self.peak_bytes / 2**20:.0f} MiB"
        what = f"the build for {self.target}"
        if self.limit_bytes is None:
            return f"{what} was killed from outside at {peak}: out of host memory, most likely"
        limit = f"{self.limit_bytes / 2**20:.0f} MiB"
        return f"{what} passed its memory limit of {limit} (it held {peak}) and was stopped"


class PluginNameClashError(TrtplugError, code="plugin-name-clash", exit_status=BUILD_FAILED):
    """A plugin cannot be registered: its name, version and namespace are taken."""

    template = "trtplug's plugin {ours} cannot be registered: {other} already has its name"
    hint_template = "leave out its --plugin-library, or build with --plugin never"
    ours: str
    other: str


# Timing caches, locks and pinned tactics.


class CacheUnusableError(TrtplugError, code="cache-unusable", exit_status=BAD_INPUT):
    """The timing cache is damaged or has no usable sidecar."""

    template = "{path} cannot be used as a timing cache: {problem}"
    hint_template = "{advice}"
    path: str
    problem: str
    advice: str = "`trtplug cache export` writes a cache and its sidecar; keep the two together"


class CacheMismatchError(TrtplugError, code="cache-mismatch", exit_status=BAD_INPUT):
    """The timing cache is for another GPU, driver, CUDA, TensorRT or set of flags."""

    template = "{path} is not a timing cache for {wanted}:{differences}"
    path: str
    wanted: str
    differences: tuple[str, ...]
    advice: str = ""


class TacticUnavailableError(TrtplugError, code="tactic-unavailable", exit_status=BAD_INPUT):
    """A `--pin`, `--ban` or `--prefer` is not possible."""

    template = "{layer}: {problem}[; there are:{legal}]"
    hint_template = "`trtplug tactics BUNDLE` lists every layer with its tactics"
    layer: str
    problem: str
    legal: tuple[str, ...]
    """Tactics of that layer, or layers where the layer is not known."""


class LockMismatchError(TrtplugError, code="lock-mismatch", exit_status=BUILD_FAILED):
    """The build with `--locked` differs from the lock; nothing was written."""

    template = "the build does not agree with {path}:{differences}"
    hint_template = (
        "build without --locked to record a new lock; `trtplug lock diff` compares the two"
    )
    path: str
    differences: tuple[str, ...]


class LockUnqualifiedError(TrtplugError, code="lock-unqualified", exit_status=MACHINE_LACKS):
    """The lock was recorded with another GPU, driver or version and cannot be used here."""

    template = "{path} was recorded with another GPU, driver or version:{differences}"
    hint_template = "record it again here: build without --locked"
    path: str
    differences: tuple[str, ...]


# Kernels and the emulator.


class PtxError(TrtplugError, code="ptx", exit_status=FAULT):
    """The emulator does not support a PTX instruction."""

    template = "PTX line {line}: {problem}"
    problem: str
    line: int
    """1-based line of the PTX text."""


class LaunchError(TrtplugError, code="launch", exit_status=FAULT):
    """Kernel launch with a wrong grid, block or arguments."""

    template = "cannot launch {kernel}: {problem}"
    kernel: str
    problem: str


class CompilerMissingError(TrtplugError, code="compiler-missing", exit_status=MACHINE_LACKS):
    """NVRTC is not installed or cannot be loaded."""

    template = "kernels cannot be compiled here: {problem}"
    hint_template = "pip install 'trtplug[kernels]' installs NVRTC and its tools; no GPU is needed"
    problem: str


class ToolMissingError(TrtplugError, code="tool-missing", exit_status=MACHINE_LACKS):
    """A CUDA tool is not installed."""

    template = "{tool} is not installed: neither beside NVRTC nor on PATH"
    hint_template = "pip install {package}, or put a CUDA toolkit's bin folder on PATH"
    tool: str
    package: str
