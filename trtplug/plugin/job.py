"""What the builds of one command offer their builders; a table of contents of this package.

It is there before anything else is loaded, so what its work needs is imported in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from trtplug.backends.gpu import find_gpus
from trtplug.backends.options import BuildOptions
from trtplug.plugin.evidence import Evidence
from trtplug.plugin.options import PluginWish
from trtplug.profile import GpuProfile
from trtplug.store import Store, as_output_error, key_of, sha256_of
from trtplug.target import parse_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from trtplug.backends.request import Event
    from trtplug.model.source import Source
    from trtplug.plan import PlannedTarget
    from trtplug.plugin.choose import Ask
    from trtplug.plugin.offer import PluginOffer


if TYPE_CHECKING:
    Offers = dict[str, PluginOffer]
    """By target."""


KERNEL_LOG = "kernels.log"
"""The compiler's words about kernels that it refused; beside `build.log`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginJob:
    """What choices and kernels of one command are made with, where the backend takes plugins."""

    wish: PluginWish
    evidence: Evidence
    profiles: tuple[GpuProfile, ...]
    options: BuildOptions
    store: Store
    jobs: int
    """Kernels compiled at once."""

    def as_flags(self) -> dict[str, str]:
        """What of the wish is not at its default, for reports and keys."""
        return self.wish.as_flags(self.evidence.sha256)

    def kernels_digest(self) -> str:
        """What the kernels come from; empty where no site can get one.

        Raises:
            CompilerMissingError: NVRTC is needed, and is not installed.
        """
        if not self.may_choose:
            return ""
        from trtplug.kernels.nvrtc import version
        from trtplug.settings import resource_folder

        folder = resource_folder("plugins")
        sources = {str(file.relative_to(folder)): sha256_of(file) for file in folder.rglob("*.cuh")}
        return key_of({"sources": sources, "compiler": version()})

    @property
    def may_choose(self) -> bool:
        """Whether any site can get a plugin, so that the model is made before a builder starts."""
        return self.wish.may_choose

    def choices(self, source: Source, targets: Iterable[PlannedTarget]) -> Offers:
        """The choices alone: nothing is compiled or written.

        Raises:
            UsageError: a glob that matches nothing.
        """
        from trtplug.plugin.offer import choices_only

        return {t.target: choices_only(source, self._ask(t)) for t in targets}

    def offers(
        self,
        source: Source,
        targets: Iterable[PlannedTarget],
        bundle: Path,
        work: Path,
        on_event: Callable[[str, Event], None],
    ) -> Offers:
        """Choices, kernels, and the models that are built.

        Args:
            source: the model; it is not changed.
            targets: each once.
            bundle: under way; what the compiler refused goes beside the target's `build.log`.
            work: a folder that lasts as long as the builders run.
            on_event: hears of the progress.

        Raises:
            TrtplugError: as `trtplug.plugin.offer.make_offer`.
        """
        from trtplug.plugin.offer import make_offer

        offers = {}
        for target in targets:
            offer = make_offer(
                source,
                self._ask(target),
                work / f"plugin-{target.sm}",
                self.store,
                self.jobs,
                partial(on_event, target.target),
            )
            if offer.log:
                with as_output_error(bundle):
                    (bundle / target.sm / KERNEL_LOG).write_text(offer.log, encoding="utf-8")
            offers[target.target] = offer
        return offers

    def _ask(self, target: PlannedTarget) -> Ask:
        from trtplug.plugin.choose import make_ask

        gpus = find_gpus().gpus
        return make_ask(
            self.wish,
            self.evidence,
            gpus[0].name if gpus else "",
            parse_target(target.target).sm,
            target.gpus,
            self.profiles,
            self.options.trt.tactic_shared_memory_bytes,
        )
