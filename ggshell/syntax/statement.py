"""Texts to statements: obey files, heredocs, ``-c``, with the place of each."""

from __future__ import annotations

from typing import NamedTuple


class Statement(NamedTuple):
    """One statement and where it begins; lines and columns count from 1."""

    text: str
    line: int
    column: int
    file: str = ""


def without_comment(line: str) -> str:
    """A line without its ``--`` comment; quotes protect."""
    quote = ""
    for place, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif line.startswith("--", place) and (place == 0 or line[place - 1] in " \t;,"):
            return line[:place]
    return line


def _pieces(line: str) -> list[tuple[int, str]]:
    """A line cut at semicolons outside quotes, with the column of each piece."""
    found, quote, first = [], "", 0
    for place, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter == ";":
            found.append((first, line[first:place]))
            first = place + 1
    found.append((first, line[first:]))
    return found


def split(text: str, file: str = "") -> list[Statement]:
    """The statements of a text: one a line, or several with ``;``; ``&`` at a line's end goes on in the next one.

    A line that begins with SHELL or HOST is one statement as it stands.
    """
    statements: list[Statement] = []
    open_text, begun, column = "", 0, 1
    for number, raw in enumerate(text.splitlines(), 1):
        line = without_comment(raw).rstrip()
        if open_text:
            line = f"{open_text} {line.strip()}"
        else:
            begun, column = number, 1
        if line.endswith("&"):
            open_text = line[:-1].rstrip()
            continue
        open_text = ""
        stripped = line.strip()
        if not stripped:
            continue
        if stripped.split()[0].upper() in ("SHELL", "HOST", "SH"):
            statements.append(Statement(stripped, begun, line.index(stripped) + 1, file))
            continue
        for first, piece in _pieces(line):
            if piece.strip():
                column = first + len(piece) - len(piece.lstrip()) + 1
                statements.append(Statement(piece.strip(), begun, column, file))
    if open_text.strip():
        statements.append(Statement(open_text.strip(), begun, column, file))
    return statements
