"""A PTX text as words and marks, each with its line."""

from __future__ import annotations

import re

from trtplug.errors import PtxError

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TOKEN = re.compile(
    r"[ \t\r]*(?:(\n|\"[^\"\n]*\"|0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}"
    r"|-?(?:0[xX][0-9a-fA-F]+|\d+\.\d+|\d+)U?"
    r"|[.%$_a-zA-Z][\w.$]*(?:::[\w.]+)*|[\[\]{}()<>,;:@!|+=])|(.))"
)
NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9]\d*)U?")
FLOAT = re.compile(r"0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}")
WORD = re.compile(r"[.%$_a-zA-Z]")
_IGNORED_LINES = (".loc ", ".loc\t", ".file ", ".file\t")


def integer_of(text: str) -> int:
    """A whole number as PTX writes it: decimal, hexadecimal, octal; `U` behind it says nothing."""
    text = text.rstrip("U")
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("-")
    if digits[:2] in ("0x", "0X"):
        return sign * int(digits, 16)
    octal = len(digits) > 1 and digits[0] == "0"
    return sign * int(digits, 8 if octal else 10)


def _blank(match: re.Match[str]) -> str:
    return "\n" * match.group().count("\n") or " "


def _tokens(text: str) -> tuple[list[str], list[int]]:
    """Words and marks, and the line of each; two empty ones at the end."""
    words: list[str] = []
    lines: list[int] = []
    line = 1
    for word, odd in _TOKEN.findall(_COMMENT.sub(_blank, text)):
        if word == "\n":
            line += 1
        elif odd:
            raise PtxError(f"cannot read {odd!r}", line)
        elif word:
            words.append(word)
            lines.append(line)
    return [*words, "", ""], [*lines, line, line]


def _without_ignored_lines(text: str) -> str:
    """Debugging directives end with their line, not with `;`."""
    lines = text.split("\n")
    return "\n".join("" if x.lstrip().startswith(_IGNORED_LINES) else x for x in lines)


class Cursor:
    """A place in the words of a PTX text."""

    def __init__(self, text: str) -> None:
        self.lines = tuple(text.split("\n"))
        self.words, self.line_of = _tokens(_without_ignored_lines(text))
        self.at = 0

    @property
    def peek(self) -> str:
        """The word at hand; empty at the end."""
        return self.words[self.at]

    @property
    def line(self) -> int:
        """Line of the word at hand."""
        return self.line_of[self.at]

    def next(self) -> str:
        """Take a word."""
        word = self.words[self.at]
        if not word:
            raise PtxError("the text ends in the middle of a statement", self.line)
        self.at += 1
        return word

    def error(self, problem: str) -> PtxError:
        """An error at the word just taken."""
        return PtxError(problem, self.line_of[max(self.at - 1, 0)])

    def accept(self, text: str) -> bool:
        """Take the word at hand if it is `text`."""
        if self.words[self.at] != text:
            return False
        self.at += 1
        return True

    def expect(self, text: str) -> None:
        """Take the word at hand, which must be `text`."""
        if not self.accept(text):
            raise PtxError(f"wanted {text!r}, got {self.peek!r}", self.line)

    def skip_past(self, text: str) -> None:
        """Take words up to and with `text`."""
        while self.next() != text:
            pass

    def integer(self) -> int:
        """Take a whole number."""
        word = self.next()
        if not NUMBER.fullmatch(word):
            raise self.error(f"wanted a whole number, got {word!r}")
        return integer_of(word)
