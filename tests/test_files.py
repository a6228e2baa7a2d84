"""A file that a user named is read, or refused by name and with the reason."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from trtplug.errors import BAD_INPUT, FileUnreadableError
from trtplug.files import file_inside, publishing, read_bytes, read_text

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
        (_fifo, "not a regular file"),
        (_socket, "not a regular file"),
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
    def refuse(path: str, flags: int) -> int:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "m.onnx").write_text("")
    monkeypatch.setattr(os, "open", refuse)
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


def test_a_large_or_binary_document_is_refused(tmp_path: Path):
    file = tmp_path / "lock.json"
    file.write_bytes(b"\xff")
    with pytest.raises(FileUnreadableError, match="not UTF-8 text"):
        read_text(file)
    assert read_bytes(file, largest=1) == b"\xff"
    with pytest.raises(FileUnreadableError, match="it has 1 bytes; at most 0 are read"):
        read_bytes(file, largest=0)


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../x", "a/../../x", "C:\\x", "\\\\host\\x", "a\0b", "x" * 300]
)
def test_paths_out_of_a_folder_are_refused(tmp_path: Path, path: str):
    assert file_inside(tmp_path, path, follow_links=True) is None
    assert file_inside(tmp_path, path) is None


def test_links_are_refused_or_kept_inside(tmp_path: Path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "file").write_text("")
    (tmp_path / "in" / "link").symlink_to("file")
    (tmp_path / "in" / "out").symlink_to("..")
    (tmp_path / "in" / "loop").symlink_to("loop")
    assert file_inside(tmp_path / "in", "file") == tmp_path / "in" / "file"
    assert file_inside(tmp_path / "in", "missing/too") == tmp_path / "in" / "missing" / "too"
    for path in ("link", "out", "out/in/file", "loop"):
        assert file_inside(tmp_path / "in", path) is None
    assert file_inside(tmp_path / "in", "link", follow_links=True) is not None
    for path in ("out", "loop"):
        assert file_inside(tmp_path / "in", path, follow_links=True) is None


def test_a_file_is_published_whole_or_not_at_all(tmp_path: Path):
    file = tmp_path / "report.json"
    with publishing(file) as draft:
        draft.write_text("one")
        assert not file.exists()

    def fail(draft: Path) -> None:
        draft.write_text("two")
        raise KeyError

    with pytest.raises(KeyError), publishing(file) as draft:
        fail(draft)
    with publishing(file):
        pass
    assert file.read_text() == "one"
    assert list(tmp_path.iterdir()) == [file]
