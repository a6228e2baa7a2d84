"""A file that a user named is read, or refused by name and with the reason."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from trtplug.errors import BAD_INPUT, FileUnreadableError
from trtplug.model.files import read_bytes

if TYPE_CHECKING:
    from pathlib import Path


def test_bytes_of_a_file(tmp_path: Path):
    (tmp_path / "<script> $(x).onnx").write_bytes(b"\0\1")
    assert read_bytes(tmp_path / "<script> $(x).onnx") == b"\0\1"


def _folder(path: Path):
    path.mkdir()


def _fifo(path: Path):
    os.mkfifo(path)


def _socket(path: Path):
    socket.socket(socket.AF_UNIX).bind(str(path))


def _dangling(path: Path):
    path.symlink_to("nowhere")


def _loop(path: Path):
    path.symlink_to(path.name)


def _nothing(path: Path):
    pass


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_folder, "it is a folder"),
        (_fifo, "no regular file"),
        (_socket, "no regular file"),
        (_dangling, "no such file"),
        (_loop, "too many levels of symbolic links"),
        (_nothing, "no such file"),
    ],
)
def test_what_is_no_file_is_refused_and_never_waited_for(tmp_path, monkeypatch, make, words):
    monkeypatch.chdir(tmp_path)  # a socket's path may have 108 bytes
    path = tmp_path / "m.onnx"
    make(path.relative_to(tmp_path))
    with pytest.raises(FileUnreadableError, match=words) as caught:
        read_bytes(path)
    assert str(path) in caught.value.message
    assert caught.value.exit_status == BAD_INPUT


@pytest.mark.parametrize(
    "name",
    ["x" * 300, "nul\0", "file/below", "/proc/self/mem", "/dev/zero", os.fsdecode(b"\xff.onnx")],
)
def test_odd_names_are_refused(tmp_path: Path, name: str):
    (tmp_path / "file").write_text("")
    (tmp_path / os.fsdecode(b"\xff.onnx")).write_text("")
    with pytest.raises(FileUnreadableError) as caught:
        read_bytes(tmp_path / name)
    caught.value.message.encode()


def test_refusal_of_the_system_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "m.onnx").write_text("")
    monkeypatch.setattr(type(tmp_path), "read_bytes", refuse)
    with pytest.raises(FileUnreadableError, match="permission denied"):
        read_bytes(tmp_path / "m.onnx")


def test_unreadable_for_want_of_permission(tmp_path: Path):
    file = tmp_path / "m.onnx"
    file.write_text("")
    file.chmod(0)
    if os.access(file, os.R_OK):
        pytest.skip("needs a user other than root, whom no permission stops")
    with pytest.raises(FileUnreadableError, match="permission denied"):
        read_bytes(file)
