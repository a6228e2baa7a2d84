"""What the adapters call, against the real cuda-core and the real source of pycuda.

cuda-core imports without a driver, so its names and signatures are looked at as they are. pycuda
is built against a CUDA toolkit, which takes minutes and is not there on every machine: its names
are read from its source distribution instead, `.def("name", ...)` in its C++ bindings.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bindings.packages import installed, source_of
from trtplug.backends import cuda_layer

CUDA_CORE = "cuda-core==1.2.2"
PYCUDA = "pycuda==2026.1"

CORE_USES = {
    "Device": ("Device", 1, ()),
    "Device.set_current": ("", 0, ()),
    "Device.name": ("property", 0, ()),
    "Device.compute_capability": ("property", 0, ()),
    "Device.create_stream": ("", 0, ()),
    "Device.create_event": ("", 1, ()),
    "Device.allocate": ("", 1, ("stream",)),
    "EventOptions": ("EventOptions", 0, ("timing_enabled",)),
    "Stream.handle": ("property", 0, ()),
    "Stream.sync": ("", 0, ()),
    "Stream.record": ("", 1, ()),
    "Event.sync": ("", 0, ()),
    "Event.__sub__": ("operator", 1, ()),
    "LegacyPinnedMemoryResource": ("LegacyPinnedMemoryResource", 0, ()),
    "LegacyPinnedMemoryResource.allocate": ("", 1, ()),
    "Buffer.handle": ("property", 0, ()),
    "Buffer.copy_from": ("", 1, ("stream",)),
    "Buffer.copy_to": ("", 1, ("stream",)),
    "Buffer.close": ("", 0, ()),
    "ObjectCode.from_ptx": ("", 1, ()),
    "ObjectCode.get_kernel": ("", 1, ()),
    "Stream.from_handle": ("", 1, ()),
    "LaunchConfig": ("LaunchConfig", 0, ("grid", "block", "shmem_size")),
    "launch": ("", 5, ()),
}
"""Name -> kind, positional arguments, keywords, as the adapter uses it."""

PYCUDA_USES = {
    "": ("init", "mem_alloc", "memcpy_htod_async", "memcpy_dtoh_async", "module_from_buffer"),
    "Device": ("name", "compute_capability", "retain_primary_context"),
    "Context": ("push", "pop", "detach", "synchronize"),
    "Module": ("get_function",),
    "Function": ("_launch_kernel",),
    "Stream": ("handle", "synchronize"),
    "Event": ("record", "synchronize", "time_since"),
    "DeviceAllocation": ("free", "__int__"),
}
"""Class -> members that the adapter uses; "" is the module."""

_PROBE = """
import inspect, json, sys
import cuda.core as core

def kind(value):
    is_property = isinstance(value, property) or inspect.isgetsetdescriptor(value)
    return "property" if is_property else "call"

found = {}
for name, (_, positional, keywords) in json.loads(sys.argv[1]).items():
    first, _, member = name.partition(".")
    cls = getattr(core, first)
    value = inspect.getattr_static(cls, member) if member else cls
    if kind(value) == "property":
        found[name] = "property"
        continue
    bound = getattr(cls, member) if member else cls
    own = [None] if member and not isinstance(value, staticmethod) else []
    try:
        signature = inspect.signature(bound)
    except (TypeError, ValueError):
        if inspect.isclass(bound):
            # Made for real: these need no driver.
            bound(*[None] * positional, **dict.fromkeys(keywords, True))
            found[name] = "fits"
        else:
            found[name] = "operator"
        continue
    try:
        signature.bind(*own, *[None] * positional, **dict.fromkeys(keywords))
        found[name] = "fits"
    except TypeError as error:
        found[name] = str(error)
print(json.dumps(found))
"""


def core_says(uses: dict[str, tuple[str, int, tuple[str, ...]]]) -> dict[str, str]:
    folder = installed(CUDA_CORE)
    done = subprocess.run(
        [sys.executable, "-c", _PROBE, json.dumps(uses)],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, str] = json.loads(done.stdout)
    return said


def test_cuda_core_has_what_is_called_with_these_parameters():
    said = core_says(CORE_USES)
    known = ("property", "operator")
    wanted = {n: kind if kind in known else "fits" for n, (kind, *_) in CORE_USES.items()}
    assert said == wanted


def test_the_look_at_cuda_core_sees_what_is_wrong():
    said = core_says({"Device.allocate": ("", 1, ()), "Stream.record": ("", 3, ())})
    assert set(said.values()) & {"fits", "property"} == set()


def test_pycuda_has_what_is_called():
    (source,) = source_of(PYCUDA).glob("*/src/wrapper/wrap_cudadrv.cpp")
    defined = pycuda_names(source.read_text(encoding="utf-8"))
    missing = {
        f"{cls}.{name}"
        for cls, names in PYCUDA_USES.items()
        for name in names
        if name not in defined.get(cls, ())
    }
    assert missing == set()
    assert "memcpy_from_nowhere" not in defined[""]


def pycuda_names(text: str) -> dict[str, set[str]]:
    """Class -> what its binding defines; "" for the functions of the module."""
    found: dict[str, set[str]] = {"": set()}
    found[""] |= set(re.findall(r'py::def\("(\w+)"', text))
    found[""] |= set(re.findall(r"DEF_SIMPLE_FUNCTION\((\w+)\)", text))
    for block in re.split(r"(?=py::class_<)", text)[1:]:
        body = block.partition("\n  }")[0]
        name = re.search(r'\(\s*"(\w+)"', body)
        if name:
            members = re.findall(r'\.(?:def|add_property)\("(\w+)"', body)
            members += re.findall(r"DEF_SIMPLE_METHOD\((\w+)\)", body)
            found.setdefault(name[1], set()).update(members)
    return found


def test_pycuda_constructors_and_copies_take_these_arguments():
    (source,) = source_of(PYCUDA).glob("*/src/wrapper/wrap_cudadrv.cpp")
    text = source.read_text(encoding="utf-8")
    assert re.search(r'"Stream", py::init<unsigned int>\(py::arg\("flags"\)=0\)', text)
    for name in ("memcpy_htod_async", "memcpy_dtoh_async"):
        pattern = rf'"{name}".*?args\("dest"\), py::arg\("src"\), py::arg\("stream"\)'
        assert re.search(pattern, text, re.DOTALL)
    assert re.search(r'"module_from_buffer", module_from_buffer,\s*\(py::arg\("buffer"\),', text)
    (source,) = source_of(PYCUDA).glob("*/pycuda/driver.py")
    call = source.read_text(encoding="utf-8").partition("def function_call(")[2]
    for name in ("grid", "block", "shared"):
        assert f'kwargs.pop("{name}"' in call.partition("\n    def ")[0]
    assert "isinstance(arg, np.number)" in source.read_text(encoding="utf-8")
    # Read and write any contiguous buffer: bytes in, bytearray out.
    assert "PyBUF_ANY_CONTIGUOUS | PyBUF_WRITABLE" in text


@pytest.mark.parametrize(
    ("module", "receivers", "names"),
    [
        (
            "pycuda_layer",
            (
                *("driver", "_driver", "_device", "_context", "stream", "event", "_memory"),
                *("_module", "_function"),
            ),
            {n for names in PYCUDA_USES.values() for n in names} | set(PYCUDA_USES),
        ),
        (
            "cuda_core_layer",
            (
                "core",
                "_core",
                "device",
                "_device",
                "stream",
                "event",
                "_memory",
                "_host",
                "_kernel",
                "staging",
            ),
            {part for n in CORE_USES for part in n.split(".")},
        ),
    ],
)
def test_the_lists_above_are_all_that_the_adapters_use(module, receivers, names):
    source = (Path(cuda_layer.__file__).parent / f"{module}.py").read_text(encoding="utf-8")
    ours = {
        "stream",
        "event",
        "synchronize",
        "handle",
        "address",
        "size_bytes",
        "_driver",
        "driver",
    }
    used = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            value = node.value
            holder = value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", "")
            if holder in receivers:
                used.add(node.attr)
    assert used - names - ours == set()
    assert len(used & names) >= 9
