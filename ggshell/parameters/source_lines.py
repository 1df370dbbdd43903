"""The effective lines of a parameter file: without comments, with INCLUDE and OBEY files in place, each with its origin."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ggshell.errors import ParameterError
from ggshell.language.grammar import PARAMETERS
from ggshell.language.redaction import starred, without_secrets
from ggshell.language.statement import without_comment


class Origin(NamedTuple):
    """A position in a file, from 1. ``macro`` names the call through which a macro's line came here."""

    file: str
    line: int
    column: int
    macro: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.file else f"{self.line}:{self.column}"


class Traced:
    """A text in fragments, each with its origin. Immutable; slices and joins keep the origins."""

    __slots__ = ("_offsets", "_origins", "text")

    def __init__(self, text: str, offsets: Sequence[int], origins: Sequence[Origin]) -> None:
        self.text = text
        self._offsets = offsets
        self._origins = origins

    def __bool__(self) -> bool:
        return bool(self.text)

    def __getitem__(self, part: slice) -> Traced:
        begin, end, _ = part.indices(len(self.text))
        first = max(0, bisect_right(self._offsets, begin) - 1)
        last = max(first + 1, bisect_right(self._offsets, max(begin, end - 1)))
        offsets = [max(0, offset - begin) for offset in self._offsets[first:last]]
        return Traced(self.text[begin:end], offsets, [self.at(begin), *self._origins[first + 1 : last]])

    def at(self, place: int) -> Origin:
        """The origin of the character at a position (from 0). Positions past the end continue the last fragment."""
        number = max(0, bisect_right(self._offsets, place) - 1)
        origin = self._origins[number]
        return origin._replace(column=origin.column + place - self._offsets[number])

    def stripped(self, letters: str | None = None) -> Traced:
        """The text with surrounding blanks, or the given characters, removed."""
        begin = len(self.text) - len(self.text.lstrip(letters))
        return self[begin : max(begin, len(self.text.rstrip(letters)))]

    def lines(self) -> list[Traced]:
        """The parts between line ends."""
        found, begin = [], 0
        for line in self.text.split("\n"):
            found.append(self[begin : begin + len(line)])
            begin += len(line) + 1
        return found

    def through(self, macro: str) -> Traced:
        """The same text, marked as the result of a macro call (of nested calls, the outermost)."""
        return Traced(self.text, self._offsets, [origin._replace(macro=macro) for origin in self._origins])

    @property
    def begin(self) -> Origin:
        return self.at(0)

    def fragments(self) -> tuple[Sequence[int], Sequence[Origin]]:
        return self._offsets, self._origins


def traced(text: str, file: str, line: int, column: int = 1) -> Traced:
    """A text that stands in a file unchanged."""
    return Traced(text, (0,), (Origin(file, line, column),))


def join(parts: Iterable[Traced], between: str = " ") -> Traced:
    """Join parts with a separator."""
    texts: list[str] = []
    offsets: list[int] = []
    origins: list[Origin] = []
    length = 0
    for part in parts:
        if texts:
            length += len(between)
        own_offsets, own_origins = part.fragments()
        offsets += [length + offset for offset in own_offsets]
        origins += own_origins
        texts.append(part.text)
        length += len(part.text)
    return Traced(between.join(texts), offsets or (0,), origins or (Origin("", 1, 1),))


DEEPEST = 16
MISSING_CODE = "GGS-00107"
"""An included file does not exist. A process refuses to start; a check on another machine only warns."""
Reader = Callable[[str, str], "tuple[str, str] | None"]
"""(name as written, name of the file that names it) -> (the file's own name, its text), or None if there is no such file."""
_INCLUDE = re.compile(r"(?i)(INCLUDE|OBEY)\s+(\"[^\"]+\"|'[^']+'|[^\s;]+)\s*;?")
_COMMENT = re.compile(r"(?i)COMMENT(?=\s|$)")


def reader_of(root: Path, check: Callable[[Path], None] | None = None) -> Reader:
    """A reader for the files that a parameter file includes.

    It looks next to the including file, in the folder above it (the home, for a file in dirprm), and in the same two places
    of the root file. ``check`` is called for each place before it is looked at; the error that it raises passes through.
    """

    def read(name: str, file: str) -> tuple[str, str] | None:
        wanted = Path(name.replace("\\", "/"))
        beside = Path(file).parent
        places = dict.fromkeys([beside, beside.parent, root.parent, root.parent.parent])
        for place in [Path()] if wanted.is_absolute() else places:
            path = place / wanted
            if check is not None:
                check(path)
            try:
                if path.is_file():
                    return str(path), path.read_text(encoding="utf-8")
            except (OSError, ValueError) as error:
                raise ParameterError(f"cannot read {path}: {error}", where=str(path)) from error
        return None

    return read


def read_beside(name: str, file: str) -> tuple[str, str] | None:
    """Like ``reader_of``, with the including file itself as the root."""
    return reader_of(Path(file))(name, file)


def source_lines(text: str, file: str, read: Reader, errors: list[ParameterError], depth: int = 0) -> list[Traced]:
    """The lines of a text, with INCLUDEs expanded. Errors are added to ``errors``."""
    found: list[Traced] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = without_comment(raw)
        bare = line.strip()
        if not bare or _COMMENT.match(bare):
            continue
        here = traced(bare, file, number, line.index(bare) + 1)
        match = _INCLUDE.fullmatch(bare)
        if match is None:
            found.append(here)
            continue
        other = _included(match, here, read, errors, depth)
        if other is not None:
            found += source_lines(other[1], other[0], read, errors, depth + 1)
    return found


def _included(
    match: re.Match[str], here: Traced, read: Reader, errors: list[ParameterError], depth: int
) -> tuple[str, str] | None:
    """Name and text of an included file. None if it cannot be read, which adds an error."""
    name = match[2].strip("'\"")
    if depth >= DEEPEST:
        text = f"{match[1].upper()} is nested more than {DEEPEST} files deep"
        errors.append(wrong(here, text, "check whether a file includes itself", match.start(2)))
        return None
    try:
        found = read(name, here.begin.file)
    except ParameterError as error:
        errors.append(wrong(here, error.message, error.hint, match.start(2)))
        return None
    if found is None:
        hint = "put it in the folder of this file or in the home directory"
        missing = wrong(here, f"{match[1].upper()} file {name} does not exist", hint, match.start(2))
        missing.code = MISSING_CODE
        errors.append(missing)
    return found


def wrong(line: Traced, message: str, hint: str = "", place: int = 0) -> ParameterError:
    """An error at a position in a line, counted from 0."""
    origin = line.at(place)
    found = ParameterError(
        without_secrets(message, line.text, PARAMETERS),
        where=str(origin),
        hint=hint,
        line=origin.line,
        column=origin.column,
        source=starred(line.text, PARAMETERS),
    )
    found.spot = place
    return found
