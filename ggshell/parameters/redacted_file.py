"""A parameter file as shown in reports and by VIEW PARAMS: layout and comments are kept, secrets are masked."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ggshell.language import pages
from ggshell.language.redaction import MASK, replaced, secret_spans, unknown_values_of
from ggshell.language.statement import pieces_of, without_comment

_PARAMETERS = "parameters"
_FIRST = re.compile(r"\s*([^\s,;(]+)")
_LAYOUT = frozenset({"MACRO", "PARAMS", "BEGIN", "END", "COMMENT"})
"""Lines that are not parameters: the frame of a macro, a comment."""


def redacted_lines(text: str) -> str:
    """A parameter file with its secrets masked.

    A line that ends with ``&`` continues on the next line. TABLE and MAP continue until their semicolon.
    """
    return "".join(_shown(lines) for lines in _parameters(text))


def _parameters(text: str) -> Iterator[list[str]]:
    """The physical lines of each parameter."""
    pending: list[str] = []
    to_semicolon = goes_on = False
    for line in text.splitlines(keepends=True):
        code = without_comment(line).rstrip()
        begins = _ends_with_semicolon(_first_word(code))
        if pending and to_semicolon and not goes_on and begins:
            yield pending
            pending = []
        to_semicolon = to_semicolon if pending else begins
        goes_on = code.endswith("&")
        pending.append(line)
        if not goes_on and (not to_semicolon or code.endswith(";")):
            yield pending
            pending = []
    yield pending


def _shown(lines: list[str]) -> str:
    """The lines of a parameter, masked.

    Comments and ``&`` are blanked out for the search, so that positions stay the same.
    """
    flat, comments = [], []
    place = 0
    for line in lines:
        code = without_comment(line).rstrip()
        comments.append((place + len(code), place + len(line)))
        bare = code[:-1] if code.endswith("&") else code
        flat.append(bare.ljust(len(line)))
        place += len(line)
    text, looked = "".join(lines), "".join(flat)
    spans = []
    for first, part in pieces_of(looked):
        found = secret_spans(part, _PARAMETERS) if _first_word(part) not in _LAYOUT else unknown_values_of(part)
        spans += [(first + begin, first + end) for begin, end in found]
    for first, end in comments:
        spans += [(first + begin, first + stop) for begin, stop in unknown_values_of(text[first:end])]
    return replaced(text, sorted(spans), lambda _: MASK)


def _first_word(text: str) -> str:
    found = _FIRST.match(text)
    return found[1].upper() if found else ""


def _ends_with_semicolon(name: str) -> bool:
    """Whether the manual says that a parameter runs to its semicolon."""
    path = pages.index(_PARAMETERS).get(name.lower())
    return path is not None and pages.read(path).facts.get("Ends") == ";"
