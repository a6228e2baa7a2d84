"""The lock of an engine, from its report, the builder's log and its timing cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trtplug
from trtplug.lock.lock import SCHEMA, Lock, LockCache, LockGpu, LockLayer, LockSite, LockTactic
from trtplug.timing.files import CACHE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtplug.backends.tactic_table import CandidateTable
    from trtplug.bundle.manifest import ManifestModel, ManifestTarget
    from trtplug.report.candidates import Tactics
    from trtplug.report.data import Report, ReportSite
    from trtplug.timing.accounting import EditReason
    from trtplug.timing.files import CacheEntry


def make_lock(
    model: ManifestModel,
    made: ManifestTarget,
    library: str,
    report: Report,
    names: Mapping[str, str],
    tactics: Tactics,
    cached: CacheEntry | None,
) -> Lock:
    """Everything that went in, and every choice that came out.

    Args:
        model: that was built.
        made: the target, as the manifest lists it.
        library: file name of the builder's library.
        report: of the engine.
        names: the builder's name of an ONNX node -> its label.
        tactics: what is known of them, the build's log included.
        cached: the timing cache that ships beside the engine; None where there is none.
    """
    sidecar = cached.sidecar if cached else None
    identity = sidecar.identity if sidecar else None
    return Lock(
        schema=SCHEMA,
        tool_version=trtplug.__version__,
        model=model,
        target=made.target,
        backend=made.backend,
        backend_version=made.backend_version,
        library=library,
        gpu=(
            LockGpu(name=identity.gpu, sm=identity.sm, driver=identity.driver, cuda=identity.cuda)
            if identity
            else None
        ),
        shapes=made.shapes,
        precision=made.precision,
        flags=made.flags,
        engine=made.engine,
        timing_cache=(
            LockCache(file=f"{made.sm}/{CACHE}", sha256=sidecar.sha256, keys=len(sidecar.tactics))
            if sidecar
            else None
        ),
        layers=lock_layers(report),
        tactics=(
            lock_tactics(sidecar.winners, tactics.tables, names, tactics.overridden_by)
            if sidecar
            else None
        ),
        sites=tuple(map(_site, report.sites)),
    )


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
            tactic_hash=next((c.tactic_hash for c in layer.candidates if c.chosen), None),
        )
        for layer in report.layers
    )


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
    overridden_by: Mapping[str, EditReason],
) -> tuple[LockTactic, ...]:
    """Every entry of a timing cache, named where the log names it.

    Args:
        winners: key -> tactic hash of the cache after the build.
        tables: from the log; a hit of the compiler has none, so its operation is not known.
        names: the builder's name of an ONNX node -> its label.
        overridden_by: key -> the option that overrode the builder.
    """
    ops = {table.key: table.op for table in tables}
    kernels = {(t.key, c.tactic_hash): c.kernel for t in tables for c in t.candidates}
    nodes = {t.key: tuple(names.get(n, n) for n in t.onnx_layers) for t in tables}
    return tuple(
        LockTactic(
            key=key,
            tactic_hash=tactic_hash,
            op=ops.get(key),
            kernel=kernels.get((key, tactic_hash)),
            onnx_nodes=nodes.get(key, ()),
            asked_by=overridden_by.get(key),
        )
        for key, tactic_hash in sorted(winners.items())
    )
