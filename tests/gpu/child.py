"""The child process of one step: `python -m tests.gpu.child flow|probe NAME`, in its own folder."""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from tests.gpu.steps import FACTS, RESULT


class Facts(dict[str, Any]):
    """What was seen, in a file at once: a crash of TensorRT must not take it along."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        self._file.write_text(json.dumps(self), encoding="utf-8")

    def __ior__(self, more: Any) -> Facts:  # type: ignore[override,misc]
        for name, value in more.items():
            self[name] = value
        return self


class StepFailedError(Exception):
    """Something is not as it should be, in words."""


def main() -> None:
    """Does the step, and leaves `result.json`; how the process ends says nothing."""
    kind, name = sys.argv[1:]
    here = Path.cwd()
    facts = Facts(here / FACTS)
    status, why = "passed", ""
    try:
        if kind == "flow":
            from tests.gpu.flows import FLOWS as table
        else:
            from tests.gpu.probes import PROBES as table
        table[name](here, facts)
    except StepFailedError as error:
        status, why = "failed", str(error)
    except Exception as error:  # noqa: BLE001 - foreign libraries: one failed record, not the end
        traceback.print_exc()
        status, why = "failed", f"{type(error).__name__}: {error}"[:500]
    partial = here / f"{RESULT}.partial"
    partial.write_text(json.dumps({"status": status, "why": why}))
    partial.rename(here / RESULT)
    sys.stderr.flush()
    # Teardown of the libraries could crash, and says nothing about the step.
    os._exit(0)


if __name__ == "__main__":
    # As `tests.gpu.child`: a StepFailedError of `__main__` would be another class.
    from tests.gpu import child

    child.main()
