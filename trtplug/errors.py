"""Every error trtplug raises on purpose: a stable code, an exit status, a message and a hint.

An error class takes fields, not a sentence, and writes its own message: what, where, got, wanted.
All of them survive `pickle`, since builds run in child processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: bool) -> Any:  # noqa: ANN401
        """Of interest to type checkers only."""
        return lambda cls: cls


DONE = 0
"""Everything asked for was done."""
GATE_FAILED = 1
"""Done, but a gate failed: slower, inaccurate, differs from the manifest."""
BAD_INPUT = 2
"""Wrong use, or input that cannot be used."""
BUILD_FAILED = 3
"""At least one build failed."""
MACHINE_LACKS = 4
"""This machine lacks something that the command needs."""
FAULT = 70
"""A fault of trtplug's own."""
INTERRUPTED = 130
"""Stopped by Ctrl-C or SIGTERM."""


@dataclass_transform(eq_default=False)
class TrtplugError(Exception):
    """Base of all errors that trtplug raises on purpose.

    A subclass annotates its fields as a dataclass does, and is made like one. It is none: making
    thirty dataclasses takes longer than parsing a command line.
    """

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = FAULT

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
        return _rebuild, (type(self), {name: getattr(self, name) for name in self.fields()})

    @property
    def message(self) -> str:
        """One or more lines: what went wrong, where, got and wanted."""
        raise AssertionError(f"{type(self).__name__} does not write its message")

    @property
    def hint(self) -> str:
        """What to do about it; empty where the message says it."""
        return ""

    def __str__(self) -> str:
        return self.message


def _rebuild(cls: type[TrtplugError], values: dict[str, Any]) -> TrtplugError:
    return cls(**values)


def every_error() -> tuple[type[TrtplugError], ...]:
    """All concrete error classes of the package, in order of their code."""

    def below(cls: type[TrtplugError]) -> list[type[TrtplugError]]:
        return [c for s in cls.__subclasses__() for c in (s, *below(s))]

    return tuple(sorted(below(TrtplugError), key=lambda c: c.code))


# --- wrong use -------------------------------------------------------------------------------


class UsageError(TrtplugError):
    """A flag, a value or a combination that cannot be meant."""

    code: ClassVar[str] = "usage"
    exit_status: ClassVar[int] = BAD_INPUT
    problem: str
    advice: str = ""

    @property
    def message(self) -> str:
        """The problem as given."""
        return self.problem

    @property
    def hint(self) -> str:
        """The advice as given."""
        return self.advice


class ShapeError(TrtplugError):
    """Shapes given on the command line that do not fit the model, all of them at once."""

    code: ClassVar[str] = "shape"
    exit_status: ClassVar[int] = BAD_INPUT
    model: str
    problems: tuple[str, ...]
    flags: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """Every problem, one a line."""
        lines = "\n".join(f"  {p}" for p in self.problems)
        return f"the shapes do not fit {self.model}:\n{lines}"

    @property
    def hint(self) -> str:
        """The flags that would do."""
        return "give: " + " ".join(self.flags) if self.flags else ""


class UnknownTargetError(TrtplugError):
    """A `--target` that is neither a profile, an SM, `local` nor `all`."""

    code: ClassVar[str] = "unknown-target"
    exit_status: ClassVar[int] = BAD_INPUT
    name: str
    nearest: tuple[str, ...]

    @property
    def message(self) -> str:
        """The name, and the nearest ones."""
        near = f"; did you mean {' or '.join(self.nearest)}?" if self.nearest else ""
        return f"unknown target {self.name!r}{near}"

    @property
    def hint(self) -> str:
        """Where to look."""
        return "`trtplug targets` lists every name; an SM such as sm_89 works too"


class ConfigError(TrtplugError):
    """A trtplug.toml that cannot be used."""

    code: ClassVar[str] = "config"
    exit_status: ClassVar[int] = BAD_INPUT
    file: str
    problem: str

    @property
    def message(self) -> str:
        """File and problem."""
        return f"{self.file}: {self.problem}"


# --- input files -----------------------------------------------------------------------------


class FileUnreadableError(TrtplugError):
    """A path that cannot be read as a file."""

    code: ClassVar[str] = "file-unreadable"
    exit_status: ClassVar[int] = BAD_INPUT
    path: str
    problem: str

    @property
    def message(self) -> str:
        """Path and problem."""
        return f"cannot read {self.path}: {self.problem}"


class ModelInvalidError(TrtplugError):
    """A file that is no ONNX model, or one that breaks the standard."""

    code: ClassVar[str] = "model-invalid"
    exit_status: ClassVar[int] = BAD_INPUT
    path: str
    problem: str
    advice: str = ""

    @property
    def message(self) -> str:
        """Path and problem."""
        return f"{self.path} cannot be used as an ONNX model: {self.problem}"

    @property
    def hint(self) -> str:
        """The advice as given."""
        return self.advice


class ExternalDataError(TrtplugError):
    """External weights that are missing, too short, or outside the model's folder."""

    code: ClassVar[str] = "external-data"
    exit_status: ClassVar[int] = BAD_INPUT
    path: str
    tensor: str
    location: str
    problem: str

    @property
    def message(self) -> str:
        """Model, tensor, location and problem."""
        where = f"tensor {self.tensor!r} keeps its data in {self.location!r}"
        return f"{self.path}: {where}: {self.problem}"

    @property
    def hint(self) -> str:
        """How to mend it."""
        return "put the data file beside the model, or save the model again with its weights"


class NodeInvalidError(TrtplugError):
    """A node whose attributes or inputs contradict each other."""

    code: ClassVar[str] = "node-invalid"
    exit_status: ClassVar[int] = BAD_INPUT
    path: str
    node: str
    op_type: str
    problem: str

    @property
    def message(self) -> str:
        """Model, node and problem."""
        return f"{self.path}: node {self.node!r} ({self.op_type}): {self.problem}"


class DocumentError(TrtplugError):
    """A JSON document of ours (report, manifest, lock, plan) that cannot be read."""

    code: ClassVar[str] = "document"
    exit_status: ClassVar[int] = BAD_INPUT
    path: str
    wanted: str
    problem: str

    @property
    def message(self) -> str:
        """Path, schema wanted, problem."""
        return f"{self.path} is not a usable {self.wanted} document: {self.problem}"


class ProfileInvalidError(TrtplugError):
    """A GPU profile that breaks its schema."""

    code: ClassVar[str] = "profile-invalid"
    # Those that ship are read by a test, so a broken one is the user's own.
    exit_status: ClassVar[int] = BAD_INPUT
    path: str
    problem: str

    @property
    def message(self) -> str:
        """Path and problem."""
        return f"profile {self.path}: {self.problem}"

    @property
    def hint(self) -> str:
        """Where the schema is described."""
        return "profiles/README.md lists the fields; TRTPLUG_PROFILES names the folder of your own"


class PtxError(TrtplugError):
    """PTX that the emulator cannot take: an instruction it does not know is never skipped."""

    code: ClassVar[str] = "ptx"
    exit_status: ClassVar[int] = FAULT
    problem: str
    line: int
    """1-based line of the PTX text."""

    @property
    def message(self) -> str:
        """Line and problem."""
        return f"PTX line {self.line}: {self.problem}"


class LaunchError(TrtplugError):
    """A launch that does not fit the kernel: grid, block, arguments."""

    code: ClassVar[str] = "launch"
    exit_status: ClassVar[int] = FAULT
    kernel: str
    problem: str

    @property
    def message(self) -> str:
        """Kernel and problem."""
        return f"cannot launch {self.kernel}: {self.problem}"


class ReferenceFailedError(TrtplugError):
    """ONNX Runtime cannot load or run a model."""

    code: ClassVar[str] = "reference-failed"
    exit_status: ClassVar[int] = BAD_INPUT
    path: str
    problem: str

    @property
    def message(self) -> str:
        """Model and ONNX Runtime's own words."""
        return f"ONNX Runtime cannot run {self.path}: {self.problem}"


class RewriteInvalidError(TrtplugError):
    """A rewritten model that ONNX's checker refuses; nothing was written."""

    code: ClassVar[str] = "rewrite-invalid"
    exit_status: ClassVar[int] = BAD_INPUT
    path: str
    problem: str

    @property
    def message(self) -> str:
        """Model and the checker's own words."""
        return f"{self.path}, rewritten, breaks the ONNX standard: {self.problem}"

    @property
    def hint(self) -> str:
        """Where the fault lies most often."""
        return "most often the model breaks it itself: `python -m onnx.bin.checker MODEL` says"


class PrecisionError(TrtplugError):
    """A precision that the model cannot be given, or that would change nothing."""

    code: ClassVar[str] = "precision"
    exit_status: ClassVar[int] = BAD_INPUT
    path: str
    precision: str
    problem: str
    advice: str = ""

    @property
    def message(self) -> str:
        """Model, precision, problem."""
        return f"{self.path} cannot be made {self.precision}: {self.problem}"

    @property
    def hint(self) -> str:
        """The advice as given."""
        return self.advice


# --- output ----------------------------------------------------------------------------------


class OutputError(TrtplugError):
    """The output folder or file cannot be written."""

    code: ClassVar[str] = "output"
    exit_status: ClassVar[int] = MACHINE_LACKS
    path: str
    problem: str

    @property
    def message(self) -> str:
        """Path and problem."""
        return f"cannot write {self.path}: {self.problem}"

    @property
    def hint(self) -> str:
        """What is left behind."""
        return "nothing was left half-written; free the space or choose another --out"


class OutputInTheWayError(TrtplugError):
    """`--out` names something that is not a bundle of ours."""

    code: ClassVar[str] = "output-in-the-way"
    exit_status: ClassVar[int] = BAD_INPUT
    path: str
    problem: str

    @property
    def message(self) -> str:
        """Path and problem."""
        return f"{self.path} will not be replaced: {self.problem}"

    @property
    def hint(self) -> str:
        """How to go on."""
        return "choose another --out, or move what is there"


# --- backends and builds ---------------------------------------------------------------------


class BackendMissingError(TrtplugError):
    """No backend that could do the job is installed here."""

    code: ClassVar[str] = "backend-missing"
    exit_status: ClassVar[int] = MACHINE_LACKS
    backend: str
    problem: str
    advice: str = ""

    @property
    def message(self) -> str:
        """Backend and problem."""
        return f"backend {self.backend} cannot be used here: {self.problem}"

    @property
    def hint(self) -> str:
        """How to get it."""
        return self.advice or "`trtplug doctor` says what is missing and how to get it"


class GpuMissingError(TrtplugError):
    """`--target local` on a machine without a usable GPU."""

    code: ClassVar[str] = "gpu-missing"
    exit_status: ClassVar[int] = MACHINE_LACKS
    problem: str

    @property
    def message(self) -> str:
        """What was found."""
        return f"no GPU to build for: {self.problem}"

    @property
    def hint(self) -> str:
        """How to go on."""
        return "name the target instead, such as --target rtx4090 or --target sm_89"


class TargetUnsupportedError(TrtplugError):
    """A target that the backend cannot build for."""

    code: ClassVar[str] = "target-unsupported"
    exit_status: ClassVar[int] = BUILD_FAILED
    target: str
    backend: str
    supported: tuple[str, ...]
    who: str

    @property
    def message(self) -> str:
        """Target, and what the backend can build for."""
        return (
            f"backend {self.backend} cannot build for {self.target}; "
            f"it builds for {', '.join(self.supported)}"
        )

    @property
    def hint(self) -> str:
        """Who could."""
        return self.who


class ParseFailedError(TrtplugError):
    """The backend's parser refused the model."""

    code: ClassVar[str] = "parse-failed"
    exit_status: ClassVar[int] = BUILD_FAILED
    target: str
    refusals: tuple[str, ...]
    advice: str = ""

    @property
    def message(self) -> str:
        """Each refusal: node, type, reason."""
        lines = "\n".join(f"  {r}" for r in self.refusals)
        return f"the builder's parser refused the model ({self.target}):\n{lines}"

    @property
    def hint(self) -> str:
        """The advice as given."""
        return self.advice


class BuildFailedError(TrtplugError):
    """The builder gave up and said why."""

    code: ClassVar[str] = "build-failed"
    exit_status: ClassVar[int] = BUILD_FAILED
    target: str
    reasons: tuple[str, ...]
    advice: str = ""

    @property
    def message(self) -> str:
        """The builder's own errors."""
        lines = "\n".join(f"  {r}" for r in self.reasons) or "  the builder gave no reason"
        return f"the build for {self.target} failed:\n{lines}"

    @property
    def hint(self) -> str:
        """The advice as given."""
        return self.advice


class BuilderCrashedError(TrtplugError):
    """The builder's process died."""

    code: ClassVar[str] = "builder-crashed"
    exit_status: ClassVar[int] = BUILD_FAILED
    target: str
    how: str
    last_lines: tuple[str, ...]
    advice: str = ""

    @property
    def message(self) -> str:
        """How it died, and its last words."""
        lines = "\n".join(f"  {r}" for r in self.last_lines)
        what = f"the builder crashed while building for {self.target} ({self.how})"
        return f"{what}; its last lines:\n{lines}"

    @property
    def hint(self) -> str:
        """The advice as given."""
        return self.advice or "build.log in the bundle has all of it"


class BuildTimeoutError(TrtplugError):
    """The build passed its time limit."""

    code: ClassVar[str] = "build-timeout"
    exit_status: ClassVar[int] = BUILD_FAILED
    target: str
    limit_s: float

    @property
    def message(self) -> str:
        """Target and limit."""
        limit = f"its time limit of {self.limit_s:g} s"
        return f"the build for {self.target} passed {limit} and was stopped"

    @property
    def hint(self) -> str:
        """How to go on."""
        return "raise --timeout"


class BuildMemoryError(TrtplugError):
    """The build passed its memory limit, or the system killed it for memory."""

    code: ClassVar[str] = "build-memory"
    exit_status: ClassVar[int] = BUILD_FAILED
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

    @property
    def hint(self) -> str:
        """How to go on."""
        return "raise --memory-limit, or build fewer targets at once with --jobs 1"


# --- kernels ---------------------------------------------------------------------------------


class CompilerMissingError(TrtplugError):
    """NVRTC is not installed here, or cannot be loaded."""

    code: ClassVar[str] = "compiler-missing"
    exit_status: ClassVar[int] = MACHINE_LACKS
    problem: str

    @property
    def message(self) -> str:
        """What is missing."""
        return f"kernels cannot be compiled here: {self.problem}"

    @property
    def hint(self) -> str:
        """How to get it."""
        return "pip install 'trtplug[kernels]' brings NVRTC and its tools; no GPU is needed"


class ToolMissingError(TrtplugError):
    """A program of CUDA's that is not installed."""

    code: ClassVar[str] = "tool-missing"
    exit_status: ClassVar[int] = MACHINE_LACKS
    tool: str
    package: str

    @property
    def message(self) -> str:
        """The program."""
        return f"{self.tool} is not installed: neither beside NVRTC nor on PATH"

    @property
    def hint(self) -> str:
        """How to get it."""
        return f"pip install {self.package}, or put a CUDA toolkit's bin folder on PATH"
