"""trtplug: one ONNX model in; one tuned, checked TensorRT engine per GPU out, with a report.

`docs/python.md` shows the functions below; errors are those of `trtplug.errors`. Importing this
package loads nothing heavy: no TensorRT, no onnx, no numpy.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trtplug.api import inspect, load_lock, load_manifest, load_report, rewrite, sites
    from trtplug.build.api import build

__version__ = "0.1.0"

__all__ = [
    "__version__",
    "build",
    "inspect",
    "load_lock",
    "load_manifest",
    "load_report",
    "rewrite",
    "sites",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "trtplug.build.api" if name == "build" else "trtplug.api"
    function = getattr(importlib.import_module(module), name)
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


# Two folders are called as functions are. Python binds a folder's name here when it first loads it,
# so both (a docstring each) are loaded now, and the names are the functions' from here on.
for _folder in ("build", "rewrite"):
    importlib.import_module(f"trtplug.{_folder}")
    globals().pop(_folder, None)
