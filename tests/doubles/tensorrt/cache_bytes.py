"""The bytes of a timing cache, as TensorRT 10.15 writes them; imports nothing of the double.

Source: an editable cache of 10.15.1 (NVIDIA/TensorRT-Model-Connect, families/sam3/
timing_cache_data.py). Not known: what the bools, the two int64 and the compiler's parameters mean,
what `5150` is, whether 11.x writes the same, and in which order `str(TimingCacheKey)` prints the 16
bytes of a key; here it is theirs in the file.
"""

from __future__ import annotations

import struct

VERSION = 240
REFORMAT, CASK_CONVOLUTION, SHUFFLE = 0x80000006, 0x80000009, 0x8000000D
CASK_POOLING, PLUGIN_V3 = 0x8000002F, 0x80000049

_LAST = 2**63 - 1
_NONE = 2**64 - 1


def value(kind: int, form: str, given: float) -> bytes:
    return struct.pack("<HH" + form, 0x8000 | kind, 1, given)


def array(kind: int, count: int, raw: bytes) -> bytes:
    return struct.pack("<HHHQ", 0x8001, 0x8000 | kind, 1, count) + raw


def text(raw: bytes) -> bytes:
    return value(0x08, "Q", len(raw)) + array(0x03, len(raw), raw)


def classic_entry(key: bytes, runner: int, tactic: int, time_ms: float) -> bytes:
    result = (
        value(0x0B, "f", time_ms),
        value(0x0A, "B", 1),
        value(0x06, "I", runner),
        value(0x0A, "B", 1),
        value(0x08, "Q", tactic),
        value(0x09, "q", 0),
        value(0x09, "q", _LAST),
    )
    return array(0x06, 4, key) + value(0x08, "Q", 1) + b"".join(result)


def compiler_line(key: bytes, tactic: int, time_ms: float) -> str:
    words = " ".join(map(str, struct.unpack("<4I", key)))
    return f"{words} {tactic} {time_ms:.6e} {_NONE} 0 1 {tactic * 7919 % _NONE}\n"


def pack(
    uuid: bytes,
    commit: str,
    classic: list[tuple[bytes, int, int, float]],
    compiler: list[tuple[bytes, int, float]],
    *,
    version: int = VERSION,
    compiled: bytes = b"0\n\n",
) -> bytes:
    """A whole cache.

    Args:
        uuid: of the GPU, 16 bytes.
        commit: of the build, 16 hexadecimal digits.
        classic: key, runner, tactic and milliseconds.
        compiler: key, tactic and milliseconds.
        version: of the layout.
        compiled: code that was compiled.
    """
    lines = "".join(compiler_line(*entry) for entry in sorted(compiler))
    body = b"".join(
        (
            value(0x18, "Q", 16) + array(0x0C, 16, uuid),
            value(0x18, "Q", 16) + array(0x0C, 16, commit.encode()),
            value(0x08, "Q", len(classic)),
            *(classic_entry(*entry) for entry in classic),
            text(f"file_format_version=1\n5150\n{lines}".encode()),
            text(compiled),
        )
    )
    return struct.pack("<4sIQI", b"ptrt", version, len(body), 0) + body


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, form: str) -> tuple:
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values

    def value(self, form: str) -> float:
        return self.take("HH" + form)[2]

    def array(self, width: int) -> bytes:
        count = self.take("HHHQ")[3]
        raw = self.data[self.at : self.at + count * width]
        if len(raw) != count * width:
            raise ValueError("cut short")
        self.at += count * width
        return raw


def unpack(data: bytes) -> tuple | None:
    """UUID, commit, classic and compiler entries; None for what is no cache."""
    try:
        magic, version, size, _ = struct.unpack_from("<4sIQI", data)
        if (magic, version, size) != (b"ptrt", VERSION, len(data) - 20):
            return None
        return _unpack_body(_Reader(data[20:]))
    except (struct.error, ValueError, IndexError):
        return None


def _unpack_body(body: _Reader) -> tuple | None:
    body.value("Q")
    uuid = body.array(1)
    body.value("Q")
    commit = body.array(1).decode("ascii")
    classic = []
    for _ in range(body.value("Q")):
        key = body.array(4)
        body.value("Q")
        time_ms = body.value("f")
        body.value("B")
        runner = body.value("I")
        body.value("B")
        tactic = body.value("Q")
        body.value("q")
        body.value("q")
        classic.append((key, runner, tactic, time_ms))
    body.value("Q")
    lines = body.array(1).decode("ascii").split("\n")
    body.value("Q")
    body.array(1)
    compiler = []
    for line in lines[2:-1]:
        words = line.split()
        compiler.append((struct.pack("<4I", *map(int, words[:4])), int(words[4]), float(words[5])))
    return (uuid, commit, classic, compiler) if body.at == len(body.data) else None
