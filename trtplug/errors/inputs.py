"""Input files that cannot be used."""

from __future__ import annotations

from typing import ClassVar

from trtplug.errors.base import BAD_INPUT, TrtplugError


class FileUnreadableError(TrtplugError):
    """The file cannot be read."""

    code: ClassVar[str] = "file-unreadable"
    exit_status: ClassVar[int] = BAD_INPUT
    path: str
    problem: str

    @property
    def message(self) -> str:
        """Path and problem."""
        return f"cannot read {self.path}: {self.problem}"


class ModelInvalidError(TrtplugError):
    """The file is not a valid ONNX model."""

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
    """External weights are missing, too short, or outside the model's folder."""

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
    """The attributes or inputs of a node contradict each other."""

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
    """A report, manifest, lock or plan cannot be read."""

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
    """Invalid GPU profile."""

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
    """ONNX's checker rejected the rewritten model; nothing was written."""

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
    """The model cannot be converted to this precision, or the precision changes nothing."""

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
