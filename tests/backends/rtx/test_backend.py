"""What RTX is said to do, compared with the bindings themselves."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from trtplug.backends.rtx import backend as rtx
from trtplug.backends.rtx.backend import RtxBackend
from trtplug.target import Sm

ASK = "import tensorrt_rtx as t; print(t.__version__, *t.ComputeCapability.__members__)"


@pytest.mark.rtx
def test_sms_are_those_of_the_bindings():
    said = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True)
    version, *names = said.stdout.split()
    assert version == RtxBackend().version()
    known = {int(m[1]) for n in names if (m := re.fullmatch(r"SM(\d+)", n))}
    assert known == {sm.number for sm in RtxBackend().capabilities().sms}


def test_asking_loads_no_builder():
    code = (
        "import sys; from trtplug.backends.rtx.backend import RtxBackend as R; b = R();"
        "b.version(), b.capabilities(), b.child_command(), b.how_to_get();"
        "sys.exit('tensorrt_rtx' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_where_it_is_not_installed_it_builds_for_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rtx, "installed_version", lambda *names: None)
    assert RtxBackend().version() is None
    assert RtxBackend().capabilities().sms == ()
    assert "pip install" in RtxBackend().how_to_get()


def test_turing_to_blackwell():
    assert {Sm(75), Sm(89), Sm(120)} <= set(RtxBackend().capabilities().sms)
