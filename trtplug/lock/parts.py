"""What a report, the builder's log and its timing cache say, as the parts of a lock."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trtplug.lock.lock import LockGpu, LockLayer, LockSite, LockTactic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtplug.backends.tactic_table import CandidateTable
    from trtplug.report.data import Report, ReportLayer, ReportSite
    from trtplug.timing.accounting import EditReason
    from trtplug.timing.identity import CacheIdentity


def lock_layers(report: Report) -> tuple[LockLayer, ...]:
    """Each layer with its kernel, in the engine's order."""
    return tuple(
        LockLayer(
            name=layer.name,
            type=layer.type,
            onnx_nodes=layer.onnx_nodes,
            kernel=layer.kernel,
            kernel_status=layer.kernel_status,
            cache_key=layer.cache_key,
            tactic_hash=_chosen_hash(layer),
        )
        for layer in report.layers
    )


def _chosen_hash(layer: ReportLayer) -> str | None:
    return next((c.tactic_hash for c in layer.candidates if c.chosen), None)


def lock_sites(report: Report) -> tuple[LockSite, ...]:
    """Each site with what runs it."""
    return tuple(_site(site) for site in report.sites)


def _site(site: ReportSite) -> LockSite:
    plugin = site.choice if site.outcome == "plugin" else None
    return LockSite(
        conv=site.conv,
        nodes=site.nodes,
        choice="plugin" if plugin else "native",
        tactic=plugin.tactic if plugin else None,
        ptx_sha256=plugin.kernel_sha256 if plugin else None,
        kit_sha256=plugin.kit_sha256 if plugin else None,
    )


def lock_tactics(
    winners: Mapping[str, str],
    tables: Sequence[CandidateTable],
    names: Mapping[str, str],
    asked_by: Mapping[str, EditReason],
) -> tuple[LockTactic, ...]:
    """Every entry of a timing cache, named where the log names it.

    Args:
        winners: key -> tactic hash of the cache after the build.
        tables: from the log; a hit of the compiler has none, so its operation is not known.
        names: the builder's name of an ONNX node -> its label.
        asked_by: key -> the wish that overruled the builder.
    """
    by_key = {table.key: table for table in tables}
    named = (_tactic(key, winners[key], by_key.get(key), names) for key in sorted(winners))
    return tuple(replace(tactic, asked_by=asked_by.get(tactic.key)) for tactic in named)


def _tactic(
    key: str, tactic_hash: str, table: CandidateTable | None, names: Mapping[str, str]
) -> LockTactic:
    if table is None:
        return LockTactic(key=key, tactic_hash=tactic_hash, op=None, kernel=None, onnx_nodes=())
    kernels = {c.tactic_hash: c.kernel for c in table.candidates}
    return LockTactic(
        key=key,
        tactic_hash=tactic_hash,
        op=table.op,
        kernel=kernels.get(tactic_hash),
        onnx_nodes=tuple(names.get(n, n) for n in table.onnx_layers),
    )


def lock_gpu(identity: CacheIdentity) -> LockGpu:
    """The GPU that the builder timed on."""
    return LockGpu(name=identity.gpu, sm=identity.sm, driver=identity.driver, cuda=identity.cuda)
