"""Which package gives CUDA here: pycuda, or cuda-core where that is not installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.errors import BackendMissingError
from trtplug.settings import installed_version

if TYPE_CHECKING:
    from trtplug.backends.cuda_layer.interface import CudaLayer

PACKAGES = ("pycuda", "cuda-core")
"""In the order in which they are taken."""

HOW_TO_GET = (
    "pip install pycuda (it builds from source: CUDA toolkit and a C++ compiler), "
    "or pip install 'cuda-core[cu13]'"
)


def layer_package() -> tuple[str, str] | None:
    """Package that will be used, and its version; None where there is none. Loads nothing."""
    for name in PACKAGES:
        version = installed_version(name)
        if version is not None:
            return name, version
    return None


def open_layer(position: int = 0) -> CudaLayer:
    """A context of a device, current on this thread.

    Raises:
        BackendMissingError: neither package is installed.
    """
    found = layer_package()
    if found is None:
        raise BackendMissingError(
            backend="trt", problem="neither pycuda nor cuda-core is installed", advice=HOW_TO_GET
        )
    if found[0] == "pycuda":
        from trtplug.backends.cuda_layer.pycuda_layer import PycudaLayer

        return PycudaLayer(position)
    from trtplug.backends.cuda_layer.cuda_core_layer import CoreLayer

    return CoreLayer(position)
