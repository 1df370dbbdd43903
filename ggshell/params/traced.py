"""Text that knows where each of its letters stands: lines joined, macros put in place, and every error still at its spot."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Origin(NamedTuple):
    """A place in a file, from 1; ``macro`` says through which call a macro's line came here."""

    file: str
    line: int
    column: int
    macro: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.file else f"{self.line}:{self.column}"


class Traced:
    """A text in fragments, each with its origin.  Never changed; slices and joins keep the origins."""

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
        """Where the letter at a place (from 0) stands; a place behind the end counts on."""
        number = max(0, bisect_right(self._offsets, place) - 1)
        origin = self._origins[number]
        return origin._replace(column=origin.column + place - self._offsets[number])

    def stripped(self, letters: str | None = None) -> Traced:
        """Without blanks, or such letters, around."""
        begin = len(self.text) - len(self.text.lstrip(letters))
        return self[begin : max(begin, len(self.text.rstrip(letters)))]

    def lines(self) -> list[Traced]:
        """The parts at line ends."""
        found, begin = [], 0
        for line in self.text.split("\n"):
            found.append(self[begin : begin + len(line)])
            begin += len(line) + 1
        return found

    def through(self, macro: str) -> Traced:
        """The same, known to have come by a macro's call (the outermost counts)."""
        return Traced(self.text, self._offsets, [origin._replace(macro=macro) for origin in self._origins])

    @property
    def begin(self) -> Origin:
        return self.at(0)

    def fragments(self) -> tuple[Sequence[int], Sequence[Origin]]:
        return self._offsets, self._origins


def traced(text: str, file: str, line: int, column: int = 1) -> Traced:
    """A text that stands in a file as it is."""
    return Traced(text, (0,), (Origin(file, line, column),))


def join(parts: Iterable[Traced], between: str = " ") -> Traced:
    """Parts in a row, with something between."""
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
