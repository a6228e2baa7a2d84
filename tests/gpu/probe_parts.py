"""What several probes share."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.gpu.kernels import add, compile_probe
from tests.gpu.plugins import Offer

if TYPE_CHECKING:
    from tests.gpu.session import Session

    Facts = dict[str, Any]

SHAPE = (1, 8, 16, 16)
OUT = {"y": (SHAPE, np.float32)}


def sm_of(session: Session) -> int:
    major, minor = session.layer.device().compute_capability
    return major * 10 + minor


def random_x() -> Any:
    return np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)


def adding(session: Session, name: str, attributes: tuple[str, ...] = ()) -> Offer:
    """A plugin of two tactics that add 1000 and 2000: the output tells which one runs."""
    sm = sm_of(session)
    ptx = {t: compile_probe(add(1000 * t), sm).ptx for t in (1, 2)}
    return Offer(name=name, code=lambda tactic, _: ptx[tactic], attributes=attributes)


def tactic_in(session: Session, plan: bytes) -> int | None:
    """Which tactic of `_adding` an engine runs."""
    loaded = session.engine(plan)
    if session.double:  # it runs nothing, and its inspector tells the tactic
        layers = json.loads(loaded.inspector_text())["Layers"]
        names = [x["TacticName"] for x in layers if x["LayerType"] == "PluginV3"]
        return int(names[0].rpartition("_")[2]) if len(names) == 1 else None
    y = loaded.run({"x": random_x()}, OUT)["y"]
    return round(float(y.mean()) / 1000)
