"""Split texts (obey files, heredocs, ``-c``) into statements, with the position of each statement and each of its lines."""

from __future__ import annotations

import re
from typing import NamedTuple

from ggshell.language.redaction import ends_open, redacted

Span = tuple[int, int]
"""The begin and end of something in a statement, counted from 0."""

_QUOTED = re.compile(r"\"[^\"]*\"?|'[^']*'?")
_COMMENT = re.compile(r"(?i)COMMENT(?=\s|$)")
_TO_THE_END = ("SHELL", "HOST", "SH")
_SHELL = re.compile(rf"(?i)\s*(?:{'|'.join(_TO_THE_END)})\s")
_OPTION = re.compile(r"--(?=[A-Za-z])")


class Piece(NamedTuple):
    """A part of a statement: its offset in the statement's text (from 0), and its position in the file (from 1)."""

    offset: int
    line: int
    column: int


class Statement(NamedTuple):
    """One statement and its position. Lines and columns count from 1. ``pieces`` are the parts of a multi-line statement.

    ``suspect``: the statement before ends where its password would stand, so this text can be that password.
    """

    text: str
    line: int
    column: int
    file: str = ""
    pieces: tuple[Piece, ...] = ()
    suspect: bool = False

    @property
    def shown(self) -> str:
        """The text with its secrets masked."""
        return redacted(self.text, suspect=self.suspect)

    def at(self, column: int) -> tuple[int, int]:
        """The line and column in the file for a column of the text."""
        for piece in reversed(self.pieces):
            if column > piece.offset:
                return piece.line, piece.column + column - 1 - piece.offset
        return self.line, self.column + column - 1


def without_comment(line: str) -> str:
    """A line without its ``--`` comment.

    A ``--`` within quotes is not a comment, nor is an option of a command of the operating system (``SHELL ls --all``).
    """
    if "--" not in line:
        return line
    hidden = _QUOTED.sub(lambda quoted: "x" * len(quoted[0]), line)
    if _SHELL.match(line):
        hidden = _OPTION.sub(lambda option: "x" * len(option[0]), hidden)
    place = hidden.find("--")
    while place > 0 and hidden[place - 1] not in " \t;,":
        place = hidden.find("--", place + 1)
    return line if place < 0 else line[:place]


def pieces_of(line: str) -> list[tuple[int, str]]:
    """Split a line at semicolons outside quotes. Returns each piece with its column, counted from 0."""
    if ";" not in line:
        return [(0, line)]
    hidden = _QUOTED.sub(lambda quoted: "x" * len(quoted[0]), line)
    found, first = [], 0
    for place in (match.start() for match in re.finditer(";", hidden)):
        found.append((first, line[first:place]))
        first = place + 1
    return [*found, (first, line[first:])]


class JoinedLines:
    """Joins the lines of one statement with blanks, and keeps the position of each line in the file."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._pieces: list[Piece] = []
        self._length = 0

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, text: str, line: int, column: int) -> None:
        """Add a line; ``column`` is where its text begins."""
        if self._parts:
            self._length += 1
        self._pieces.append(Piece(self._length, line, column))
        self._parts.append(text)
        self._length += len(text)

    def take(self) -> tuple[str, tuple[Piece, ...]]:
        """Return the text and its pieces, and start over."""
        found = " ".join(self._parts), tuple(self._pieces)
        self._parts, self._pieces, self._length = [], [], 0
        return found


def split(text: str, file: str = "", *, suspect: bool = False) -> list[Statement]:
    """Split a text into statements: one per line, or several with ``;``. A line that ends with ``&`` continues.

    ``suspect``: the statement before the text ends where its password would stand.

    A line that begins with SHELL or HOST is a single statement, regardless of its content.
    """
    statements: list[Statement] = []
    joined = JoinedLines()
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
    statements += _cut(*joined.take(), file) if joined else []
    for place, statement in enumerate(statements):
        if suspect:
            statements[place] = statement._replace(suspect=True)
        suspect = ends_open(statement.text)
    return statements


def _cut(text: str, pieces: tuple[Piece, ...], file: str) -> list[Statement]:
    whole = Statement(text, pieces[0].line, pieces[0].column, file, pieces if len(pieces) > 1 else ())
    if ";" not in text or text.split(None, 1)[0].upper() in _TO_THE_END:
        return [whole]
    found = []
    for first, part in pieces_of(text):
        if not part.strip():
            continue
        offset = first + len(part) - len(part.lstrip())
        line, column = whole.at(offset + 1)
        inner = tuple(Piece(max(0, p.offset - offset), p.line, p.column) for p in whole.pieces if p.offset > offset)
        found.append(Statement(part.strip(), line, column, file, inner))
    return found
