"""PTX versions: NVRTC writes its own newest, which older drivers refuse.

`lower_version` writes the oldest version that the target and every instruction allow. What each
feature asks for is from the PTX ISA manual ("PTX ISA Notes" of each instruction, and its release
history). An instruction that is not listed here keeps the version that the compiler wrote: better
a newer driver needed than a text that none takes.
"""

from __future__ import annotations

import re

from trtplug.kernels.sm import SMS

Version = tuple[int, int]

_VERSION = re.compile(r"^\.version (\d+)\.(\d+)$", re.MULTILINE)
_TARGET = re.compile(r"^\.target sm_(\d+)([af]?)", re.MULTILINE)
_OPCODE = re.compile(r"^\s*(?:@!?%\w+\s+)?(?:\{\s*)?([a-z][a-z0-9_]*(?:[.:]{1,2}[\w]+)*)\b")
_VARIABLE = re.compile(r"^\.global [^=;{]*?([\w$]+)(?:\[\d*\])?(?: = [^;]*)?;\n", re.MULTILINE)
_COMMENT = re.compile(r"//.*$", re.MULTILINE)

_BASE_NAMES = """
abs add addc and bfe bfi bra brkpt clz cnot copysign cos cvta div ex2 exit fma isspacep
ld lg2 mad madc max min mov mul neg not or popc prmt rcp rem ret rsqrt sad selp set setp
shf shl shr sin slct sqrt st sub subc testp trap vote xor call membar bfind brev fns
lop3
"""
_BASE = frozenset(_BASE_NAMES.split())
"""Instructions of PTX 6.0 and before in all the forms that compilers write for our kernels."""

_FEATURES: tuple[tuple[str, Version], ...] = (
    # The first that matches counts: the particular before the general.
    (r"mma\.sync\.aligned\.m16n8k8\.row\.col\.f32\.f16", (6, 5)),
    (r"mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.(f16|bf16)", (7, 0)),
    (r"mma\.sync\.aligned\.m16n8k[48]\.row\.col\.f32\.(tf32|bf16)", (7, 0)),
    (r"ldmatrix\.sync\.aligned\.m8n8\.x[124]\.(trans\.)?shared\.b16", (6, 5)),
    (r"cp\.async\.(ca|cg)\.shared\.global", (7, 0)),
    (r"cp\.async\.(commit_group|wait_group|wait_all)", (7, 0)),
    (r"cvt\.rn(\.relu)?\.(bf16x2|f16x2|bf16)\.f32", (7, 0)),
    (r"cvt(\.\w+)*\.(bf16|tf32|e4m3|e5m2)", (9, 9)),
    (r"cvt(\.\w+)+", (6, 0)),
    (r"(bar|barrier)\.(warp\.)?sync", (6, 0)),
    (r"tanh\.approx\.f32", (7, 0)),
    (r"(abs|neg|min|max|fma)(\.\w+)*\.bf16(x2)?", (7, 0)),
    (r"(min|max)(\.\w+)*\.NaN\.\w+", (7, 0)),
    (r"ex2\.approx(\.ftz)?\.f16(x2)?", (7, 0)),
    (r"(add|sub|mul|fma|neg|set|setp)(\.\w+)*\.f16(x2)?", (6, 0)),
    (r"(ld|st)(\.\w+)*(\.|::)(b128|v8|L2|L1|cluster|cta)\w*", (9, 9)),
)

_CALLS_NONE = (9, 9)
"""Above every version: marks forms that are not understood."""


def lower_version(ptx: str) -> tuple[str, str]:
    """The same PTX with the oldest version that target and instructions allow; and that version.

    Raises:
        ValueError: the text has no `.version` or no `.target` line.
    """
    version, target = _VERSION.search(ptx), _TARGET.search(ptx)
    if version is None or target is None:
        raise ValueError("PTX without .version or .target")
    written = (int(version[1]), int(version[2]))
    facts = SMS.get(int(target[1]))
    needed = facts.ptx if facts and not target[2] else written
    needed = max(needed, *(needed_version(opcode) or written for opcode in opcodes(ptx)))
    lowest = "{}.{}".format(*min(needed, written))
    return _VERSION.sub(f".version {lowest}", ptx, count=1), lowest


def drop_unread_variables(ptx: str) -> str:
    """The same PTX without `.global` variables that nothing reads.

    NVRTC writes every static constant of a class out as one: some forty lines for our kernels.
    """
    counts: dict[str, int] = {}
    for word in re.findall(r"[\w$]+", ptx):
        counts[word] = counts.get(word, 0) + 1
    return _VARIABLE.sub(lambda found: "" if counts[found[1]] == 1 else found[0], ptx)


def needed_version(opcode: str) -> Version | None:
    """The first version with this instruction; None where it is not listed."""
    for pattern, version in _FEATURES:
        if re.match(pattern + r"(\.|$)", opcode):
            return None if version == _CALLS_NONE else version
    return (6, 0) if opcode.partition(".")[0] in _BASE else None


def opcodes(ptx: str) -> tuple[str, ...]:
    """The different instructions of a text, in order of name; directives and labels left out."""
    found = set()
    for line in _COMMENT.sub("", ptx).splitlines():
        match = _OPCODE.match(line)
        # A label ends in a colon; a directive begins with a point and does not match.
        if match and not line.rstrip().endswith(":"):
            found.add(match[1])
    return tuple(sorted(found))
