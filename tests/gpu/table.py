"""Every step, in the order in which they are run: what matters most comes first."""

from __future__ import annotations

from tests.gpu.steps import Step

_NEEDS = {
    "cache-hit": ("build-cold",),
    "lock-replay": ("build-cold",),
    "lock-tampered": ("build-cold",),
    "pin": ("build-cold",),
    "ban": ("build-cold",),
    "keys-stable": ("build-cold",),
    "plugin-pin": ("plugin-always",),
    "numbers": ("plugin-always", "plugin-never"),
}
_LIMITS_S = {"light-model": 150.0}


def all_steps() -> tuple[Step, ...]:
    """Flows and probes; what each does is the first line of its function's description."""
    from tests.gpu.flows import FLOWS
    from tests.gpu.probes import PROBES

    kinds = (("flow", FLOWS), ("probe", PROBES))
    steps = {
        name: Step(
            name=name,
            kind=kind,  # type: ignore[arg-type]
            what=(do.__doc__ or "").splitlines()[0],
            limit_s=_LIMITS_S.get(name, 90.0),
            needs=_NEEDS.get(name, ()),
        )
        for kind, table in kinds
        for name, do in table.items()
    }
    return tuple(steps[n] for n in _ORDER)


_ORDER = (
    "doctor",
    "build-cold",
    "plugin-tactics",
    "plugin-always",
    "plugin-never",
    "numbers",
    "cache-hit",
    "lock-replay",
    "pin",
    "aot-cubin",
    "aot-shared-memory",
    "argument-order",
    "reformat-cost",
    "plugin-pin",
    "lock-tampered",
    "ban",
    "keys-stable",
    "padding-lanes",
    "tensor-alignment",
    "cache-collision",
    "key-names",
    "module-leak",
    "aot-refit",
    "aot-cluster",
    "aot-arch-specific",
    "conv-routes",
    "local-function",
    "strip",
    "profiles",
    "options",
    "light-model",
)
