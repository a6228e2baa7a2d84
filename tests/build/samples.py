"""A plan for tests of those that show one."""

from __future__ import annotations

from trtplug.plan import SCHEMA, Plan, PlannedTarget


def plan_of(*targets: PlannedTarget) -> Plan:
    """A plan of these targets."""
    return Plan(
        schema=SCHEMA,
        tool_version="0",
        model_file="m.onnx",
        model_sha256="0" * 64,
        backend="rtx",
        backend_version="1.7.1.116",
        shapes=(),
        precision="keep",
        flags={"tf32": "on"},
        repeat=1,
        out="out",
        targets=targets,
    )
