"""The probes: each asks TensorRT on this GPU one thing, in a process of its own.

A probe puts what it saw into `facts`; it fails only where it could not ask. What the facts mean
says `tests.gpu.answers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.gpu import aot_probes, cache_probes, network_probes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.gpu.probe_parts import Facts

    Probe = Callable[[Path, Facts], None]

PROBES: dict[str, Probe] = {
    "plugin-tactics": cache_probes.plugin_tactics,
    "aot-cubin": aot_probes.aot_cubin,
    "aot-shared-memory": aot_probes.aot_shared_memory,
    "aot-refit": aot_probes.aot_refit,
    "aot-cluster": aot_probes.aot_cluster,
    "aot-arch-specific": aot_probes.aot_arch_specific,
    "argument-order": aot_probes.argument_order,
    "module-leak": aot_probes.module_leak,
    "cache-collision": cache_probes.cache_collision,
    "key-names": cache_probes.key_names,
    "tensor-alignment": network_probes.tensor_alignment,
    "padding-lanes": network_probes.padding_lanes,
    "reformat-cost": network_probes.reformat_cost,
    "conv-routes": network_probes.conv_routes,
    "local-function": network_probes.local_function,
}
