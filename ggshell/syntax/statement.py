"""Texts to statements: obey files, heredocs, ``-c``, with the place of each, and of each part of one that goes over lines."""

from __future__ import annotations

import re
from typing import NamedTuple

_QUOTED = re.compile(r"\"[^\"]*\"?|'[^']*'?")
_COMMENT = re.compile(r"(?i)COMMENT(?=\s|$)")
_TO_THE_END = ("SHELL", "HOST", "SH")


class Piece(NamedTuple):
    """A part of a statement: where it begins in the statement's text (from 0), and in the file (from 1)."""

    offset: int
    line: int
    column: int


class Statement(NamedTuple):
    """One statement and where it begins; lines and columns count from 1.  ``pieces``: those of one over several lines."""

    text: str
    line: int
    column: int
    file: str = ""
    pieces: tuple[Piece, ...] = ()

    def at(self, column: int) -> tuple[int, int]:
        """Line and column in the file of a column of the text."""
        for piece in reversed(self.pieces):
            if column > piece.offset:
                return piece.line, piece.column + column - 1 - piece.offset
        return self.line, self.column + column - 1


def without_comment(line: str) -> str:
    """A line without its ``--`` comment; quotes protect."""
    if "--" not in line:
        return line
    hidden = _QUOTED.sub(lambda quoted: "x" * len(quoted[0]), line)
    place = hidden.find("--")
    while place > 0 and hidden[place - 1] not in " \t;,":
        place = hidden.find("--", place + 1)
    return line if place < 0 else line[:place]


def _pieces(line: str) -> list[tuple[int, str]]:
    """A line cut at semicolons outside quotes, with the column of each piece from 0."""
    if ";" not in line:
        return [(0, line)]
    hidden = _QUOTED.sub(lambda quoted: "x" * len(quoted[0]), line)
    found, first = [], 0
    for place in (match.start() for match in re.finditer(";", hidden)):
        found.append((first, line[first:place]))
        first = place + 1
    return [*found, (first, line[first:])]


class Joined:
    """Lines that are one statement, joined with blanks, so that a place in it is known in the file."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._pieces: list[Piece] = []
        self._length = 0

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, text: str, line: int, column: int) -> None:
        """One more line; ``column`` is where its text begins."""
        if self._parts:
            self._length += 1
        self._pieces.append(Piece(self._length, line, column))
        self._parts.append(text)
        self._length += len(text)

    def take(self) -> tuple[str, tuple[Piece, ...]]:
        """The text and its pieces; nothing is left."""
        found = " ".join(self._parts), tuple(self._pieces)
        self._parts, self._pieces, self._length = [], [], 0
        return found


def split(text: str, file: str = "") -> list[Statement]:
    """The statements of a text: one a line, or several with ``;``; ``&`` at a line's end goes on in the next one.

    A line that begins with SHELL or HOST is one statement as it stands.
    """
    statements: list[Statement] = []
    joined = Joined()
    for number, raw in enumerate(text.splitlines(), 1):
        line = without_comment(raw).rstrip()
        stripped = line.lstrip()
        column = len(line) - len(stripped) + 1
        goes_on = line.endswith("&")
        if goes_on:
            stripped = stripped[:-1].rstrip()
        if joined or goes_on:
            if stripped:
                joined.add(stripped, number, column)
            if not goes_on and joined:
                statements += _cut(*joined.take(), file)
        elif stripped and not _COMMENT.match(stripped):
            statements += _cut(stripped, (Piece(0, number, column),), file)
    return statements + (_cut(*joined.take(), file) if joined else [])


def _cut(text: str, pieces: tuple[Piece, ...], file: str) -> list[Statement]:
    whole = Statement(text, pieces[0].line, pieces[0].column, file, pieces if len(pieces) > 1 else ())
    if ";" not in text or text.split(None, 1)[0].upper() in _TO_THE_END:
        return [whole]
    found = []
    for first, part in _pieces(text):
        if not part.strip():
            continue
        offset = first + len(part) - len(part.lstrip())
        line, column = whole.at(offset + 1)
        inner = tuple(Piece(max(0, p.offset - offset), p.line, p.column) for p in whole.pieces if p.offset > offset)
        found.append(Statement(part.strip(), line, column, file, inner))
    return found
