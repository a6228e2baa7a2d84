"""What a just-in-time plugin keeps, and how it launches."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tests.tactics.problems import problem
from trtplug.backends.trt_jit_kernels import JitKernels, Launcher
from trtplug.tactics.kit import KitKernel, KitSite, ptx_digest

TEXTS = {10: "// ten\n", 11: "// eleven\n"}
SITE = KitSite(
    problem=problem((4, 16, 9, 9), 24, least=(1, 16, 9, 9)),
    kernels=tuple(
        KitKernel(tactic=name, ptx_sha256=ptx_digest(text))
        for name, text in zip(
            ("igemm_128x128x32_s2", "igemm_128x128x32_s3"), TEXTS.values(), strict=True
        )
    ),
)
KERNELS = JitKernels(site=SITE, ptx=TEXTS)


class Layer:
    """Writes down what is loaded and launched."""

    def __init__(self) -> None:
        self.loaded: list[str] = []
        self.launched: list[tuple] = []

    def kernel(self, ptx: str, name: str):
        self.loaded.append(ptx)
        return self

    def launch(self, *given) -> None:
        self.launched.append(given)


def test_fields_hold_all_of_it():
    assert JitKernels.from_fields(*KERNELS.to_fields()) == KERNELS


@pytest.mark.parametrize(
    ("site", "kernels"), [("{}", []), ("[]", []), (KERNELS.to_fields()[0], ["one only"])]
)
def test_damaged_fields_are_refused(site: str, kernels: list[str]):
    with pytest.raises(ValueError, match=r"."):
        JitKernels.from_fields(site, kernels)


def test_a_launch_has_pointers_then_numbers_then_the_output():
    layer = Layer()
    launcher = Launcher(lambda: layer)
    KERNELS.launch(launcher, 11, (3, 16, 9, 9), (1, 2, 3), (4,), 99)
    ((grid, block, shared, arguments, stream),) = layer.launched
    assert (grid, block, shared, stream) == ((2, 1, 1), (128, 1, 1), 0, 99)
    assert arguments == [1, 2, 3, 3, 4]
    assert [type(a) for a in arguments] == [np.uint64] * 3 + [np.int32, np.uint64]
    KERNELS.launch(launcher, 11, (1, 16, 9, 9), (1, 2, 3), (4,), 99)
    assert layer.loaded == [TEXTS[11]], "a kernel is loaded once"


@pytest.mark.parametrize(("number", "batch"), [(12, 1), (11, 5)])
def test_what_was_not_made_is_not_launched(number: int, batch: int):
    layer = Layer()
    with pytest.raises(ValueError, match=r"no tactic 12|met \[5, 16, 9, 9\]"):
        KERNELS.launch(Launcher(lambda: layer), number, (batch, 16, 9, 9), (1, 2, 3), (4,), 99)
    assert layer.launched == []


def test_every_thread_has_a_context_of_its_own():
    layers: list[Layer] = []

    def open_layer() -> Layer:
        layers.append(Layer())
        return layers[-1]

    launcher = Launcher(open_layer)
    for _ in range(2):
        thread = threading.Thread(target=launcher.kernel, args=("// k", "k"))
        thread.start()
        thread.join()
    launcher.kernel("// k", "k")
    launcher.kernel("// k", "k")
    assert len(layers) == 3
