"""Children in name only: they build at once, in this process, whatever they are given."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from tests.backends.test_layer_listing import TEXT
from trtplug.backends.backend import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from trtplug.backends.request import BuildRequest, Event
    from trtplug.backends.run_child import Limits

ENGINE = b"ptrt" + bytes(100)


class QuickChildren:
    """As `trtplug.backends.run_child.Children`."""

    def __init__(
        self, command: tuple[str, ...], jobs: int, limits: Limits, passed_on: tuple[str, ...] = ()
    ) -> None:
        self._requests: list[BuildRequest] = []

    def __enter__(self) -> QuickChildren:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def warm(self, *_: object) -> None:
        pass

    def submit(self, requests: Iterable[BuildRequest]) -> None:
        self._requests += requests

    def withdraw(self) -> None:
        self._requests.clear()

    def outcomes(self, on_event: Callable[[str, Event], None]) -> Iterator[Outcome]:
        for request in self._requests:
            on_event(request.target, {"event": "phase", "name": "Building", "steps": 1})
            folder = Path(request.folder)
            (folder / "engine").write_bytes(ENGINE)
            (folder / "layers.txt").write_text(TEXT, encoding="utf-8")
            (folder / "build.log").write_bytes(b"[V] quick\n")
            yield Outcome(
                target=request.target,
                folder=request.folder,
                status="built",
                reasons=(),
                how="",
                warnings=(),
                seconds=0.001,
                peak_bytes=1,
                builder_version="1.7.1.116",
                library="libquick.so",
                engine_sha256=hashlib.sha256(ENGINE).hexdigest(),
                aslr_off=True,
            )
