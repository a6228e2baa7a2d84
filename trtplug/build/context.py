"""What one build command works with, whichever targets it has."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from trtplug.backends.backend import Backend
from trtplug.build.command import BuildCommand
from trtplug.model.files import FileDigest
from trtplug.plugin.evidence import Evidence
from trtplug.profile import GpuProfile
from trtplug.store import Store

if TYPE_CHECKING:
    from trtplug.lock.lock import Lock  # noqa: TC004
    from trtplug.model.source import Source
    from trtplug.plugin.units import PluginCandidate
    from trtplug.report.model_facts import ModelFacts


@dataclass(frozen=True, kw_only=True)
class BuildContext:
    """The command, and what was found for it; the model is read once, when it is first needed.

    Loading onnx takes longer than starting a builder, so no property is read before builders start
    where the plan does not depend on the model.
    """

    command: BuildCommand
    """With backend and target of the lock where it is to be replayed and gave none."""
    digest: FileDigest
    """Of the model."""
    backend: Backend
    gpu_profiles: tuple[GpuProfile, ...]
    store: Store
    lock: Lock | None
    """To be replayed."""
    evidence: Evidence | None
    """Measurements to choose plugins by; None where the backend takes no plugins."""

    @cached_property
    def source(self) -> Source:
        """The model in its precision, with the repairs that a builder needs.

        Raises:
            TrtplugError: as `trtplug.model.source.read_source`.
        """
        from trtplug.model.source import read_source

        first, *more = self.command.profiles
        return read_source(
            self.command.model, self.digest.sha256, first, self.command.precision, tuple(more)
        )

    @cached_property
    def candidates(self) -> tuple[PluginCandidate, ...]:
        """Sites and pairs of the model that a plugin could run."""
        from trtplug.plugin.units import list_candidates

        return list_candidates(self.source)

    @cached_property
    def facts(self) -> ModelFacts:
        """What reports say of the model.

        Raises:
            NodeInvalidError: a node contradicts itself, or the shapes.
            ShapeError: the shapes leave a tensor without any element.
        """
        from trtplug.report.model_facts import gather_facts

        return gather_facts(self.source.model, self.source.ranges)
