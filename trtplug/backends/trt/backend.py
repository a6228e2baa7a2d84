"""Enterprise TensorRT as a backend, seen from the parent: what it can do, without loading it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.backends.backend import Backend, Capabilities
from trtplug.backends.launch import GPU_VARIABLES, python_command
from trtplug.settings import installed_version

if TYPE_CHECKING:
    from trtplug.backends.cache_api import TimingCacheApi
    from trtplug.backends.options import BuildOptions
    from trtplug.target import Sm


_PACKAGES = ("tensorrt", "tensorrt-cu13", "tensorrt-cu12")


CHILD_MODULE = "trtplug.backends.trt.child_build"


class TrtBackend(Backend):
    """Builds for the local GPU alone: it times kernels there, and takes the fastest."""

    name = "trt"

    def version(self) -> str | None:
        """Version of the installed package, which is that of its bindings."""
        return installed_version(*_PACKAGES)

    def capabilities(self) -> Capabilities:
        """The SM of the first GPU, where all that it needs is here."""
        from trtplug.backends.trt.capabilities import HOW_TO_GET_PLUGINS

        sms: tuple[Sm, ...] = ()
        if not self.problem():
            from trtplug.backends import gpu

            sms = tuple(g.sm for g in gpu.find_gpus().gpus[:1])
        return Capabilities(
            sms=sms,
            needs_gpu=True,
            plugins=self.version() is None or has_plugin_package(),
            how_to_get_plugins=HOW_TO_GET_PLUGINS,
            timing_cache=True,
            reproducible=False,
        )

    def child_command(self) -> tuple[str, ...]:
        """This interpreter, running the adapter."""
        return python_command(CHILD_MODULE)

    def how_to_get(self) -> str:
        """What to install or use, for the first thing that is missing."""
        from trtplug.backends.cuda_layer.find import HOW_TO_GET, layer_package
        from trtplug.backends.trt.capabilities import OLDEST, version_key

        version = self.version()
        if version is None or version_key(version) < version_key(OLDEST):
            return f"pip install 'tensorrt>={OLDEST}', on a machine with an NVIDIA GPU"
        if layer_package() is None:
            return HOW_TO_GET
        return "use a machine with an NVIDIA GPU and its driver; --backend rtx builds without one"

    def problem(self) -> str:
        """Why it cannot build here; empty where it can."""
        version = self.version()
        if version is None:
            # Said at once: on most machines, nothing more need be loaded.
            return "it is not installed"
        from trtplug.backends import gpu
        from trtplug.backends.cuda_layer.find import layer_package
        from trtplug.backends.trt.capabilities import OLDEST, version_key

        if version_key(version) < version_key(OLDEST):
            return f"TensorRT {version} is older than {OLDEST}"
        if layer_package() is None:
            return "neither pycuda nor cuda-core is installed"
        return gpu.find_gpus().problem

    def check_options(self, options: BuildOptions) -> None:
        """Refuses what the installed release does not have.

        Raises:
            OptionUnsupportedError: an option, or a name given to one, that it lacks.
        """
        from trtplug.backends.trt.options import check_trt_options

        check_trt_options(options.trt, self.version() or "")

    def device_fingerprint(self) -> str:
        """Name of the GPU and versions of its driver: timings elsewhere are other timings."""
        from trtplug.backends import gpu

        search = gpu.find_gpus()
        names = [g.name for g in search.gpus[:1]]
        driver = gpu.driver_version() or "unknown"
        return ", ".join((*names, f"driver {driver}", f"CUDA {search.driver}"))

    def timing_caches(self) -> TimingCacheApi:
        """TensorRT's own operations on timing caches, each in a process of its own."""
        from trtplug.backends.trt.caches import TrtTimingCaches

        return TrtTimingCaches()

    def passed_on(self) -> tuple[str, ...]:
        """Which GPU is the first."""
        return GPU_VARIABLES


def has_plugin_package() -> bool:
    """Whether `tensorrt.plugin` is installed, which ahead-of-time plugins need; imports nothing.

    pip's wheels have it in `tensorrt_bindings`; other packages of TensorRT in `tensorrt` itself.
    """
    specs = (find_spec(name) for name in ("tensorrt_bindings", "tensorrt"))
    folders = (f for spec in specs if spec for f in spec.submodule_search_locations or ())
    return any((Path(folder) / "plugin" / "__init__.py").is_file() for folder in folders)
