"""What a just-in-time plugin keeps of a site, in the builder and in an engine; knows no TensorRT.

An engine holds the site as JSON and the PTX of every tactic that it offers: which of them is to run
is told only when a context is made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from trtplug.backends.cuda_layer.interface import CudaLayer
from trtplug.backends.trt_plugin_sites import tactic_of
from trtplug.tactics.kit import KitSite, site_from_json, site_to_json
from trtplug.tactics.symbolic import check_range, kernel_name, launch_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.backends.cuda_layer.interface import Kernel, KernelArgument
    from trtplug.backends.trt_plugin_sites import PluginSites


@dataclass(frozen=True, slots=True, kw_only=True)
class JitKernels:
    """A site and its kernels."""

    site: KitSite
    ptx: Mapping[int, str]
    """Number of a tactic -> its kernel."""

    @classmethod
    def from_kit(cls, sites: PluginSites, high: int, low: int) -> JitKernels:
        """Those of a node's key.

        Raises:
            ValueError: the kit has no such site.
        """
        site = sites.find(high, low)
        return cls(site=site, ptx={t.number: sites.ptx(site, t.number) for t in site.tactics})

    @classmethod
    def from_fields(cls, site: str, kernels: Sequence[str]) -> JitKernels:
        """What `to_fields` gave.

        Raises:
            ValueError: damaged.
        """
        found = site_from_json(site)
        numbers = [t.number for t in found.tactics]
        return cls(site=found, ptx=dict(zip(numbers, kernels, strict=True)))

    def to_fields(self) -> tuple[str, list[str]]:
        """The site as JSON, and the PTX of its tactics in their order."""
        return site_to_json(self.site), [self.ptx[t.number] for t in self.site.tactics]

    def launch(
        self,
        launcher: Launcher,
        number: int,
        sizes: Sequence[int],
        inputs: Sequence[int],
        outputs: Sequence[int],
        stream_handle: int,
    ) -> None:
        """Runs a tactic.

        Args:
            launcher: with the CUDA layer.
            number: of the tactic.
            sizes: of x [batch, channels, height, width].
            inputs: addresses, in the order of the node's inputs.
            outputs: address of y.
            stream_handle: `CUstream`.

        Raises:
            ValueError: no such tactic, or sizes that no kernel was made for.
        """
        problem = self.site.problem
        check_range(problem, sizes, sizes)
        launching = launch_on(tactic_of(self.site, number), problem, sizes)
        numbers = problem.arguments(tuple(sizes))
        arguments: list[KernelArgument] = [
            *map(np.uint64, inputs), *map(np.int32, numbers), *map(np.uint64, outputs)
        ]  # fmt: skip
        kernel = launcher.kernel(self.ptx[number], kernel_name(problem))
        kernel.launch(
            launching.grid, launching.block, launching.shared_bytes, arguments, stream_handle
        )


@dataclass(slots=True)
class Launcher:
    """The CUDA layer and the kernels loaded through it, on each thread of their own.

    A context is current on a thread; TensorRT may run a plugin on any. The context is the primary
    one of the first device, as everywhere in trtplug.
    """

    open_layer: Callable[[], CudaLayer]
    _local: threading.local = field(default_factory=threading.local)

    def kernel(self, ptx: str, name: str) -> Kernel:
        """A kernel, loaded at its first use."""
        state: Any = self._local
        if not hasattr(state, "layer"):
            state.layer, state.kernels = self.open_layer(), {}
        if ptx not in state.kernels:
            state.kernels[ptx] = state.layer.kernel(ptx, name)
        kernel: Kernel = state.kernels[ptx]
        return kernel
