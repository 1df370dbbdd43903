"""What a recorded terminal shows and when: its output becomes pieces of text, each with the time in which it is visible.

Lines are counted from the beginning of the session, so a line keeps its number when the screen scrolls.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from math import inf
from typing import Any, NamedTuple

import pyte

Recording = list[tuple[float, bytes]]
"""The output of a session, with seconds since its begin."""
SETTLED = 0.02
"""Seconds: output that follows sooner belongs to the same frame, so no half-drawn line is shown."""


class TerminalScreen(pyte.Screen):
    """A terminal's screen that counts the lines it has scrolled, and passes the terminal's replies on."""

    def __init__(self, columns: int, lines: int, reply: Callable[[str], None] = lambda _: None) -> None:
        self.scrolled = 0
        self._reply = reply
        super().__init__(columns, lines)
        self._stream = pyte.ByteStream(self)

    def feed(self, data: bytes) -> None:
        self._stream.feed(data)

    def index(self) -> None:
        if self.margins is None and self.cursor.y == self.lines - 1:
            self.scrolled += 1
        super().index()

    def write_process_input(self, data: str) -> None:
        self._reply(data)

    def before_cursor(self) -> str:
        """The text of the cursor's line up to the cursor."""
        return str(self.display[self.cursor.y])[: self.cursor.x]


class TextStyle(NamedTuple):
    """How a cell is drawn."""

    color: str = "default"
    background: str = "default"
    bold: bool = False
    italic: bool = False
    reverse: bool = False

    @property
    def is_filled(self) -> bool:
        return self.reverse or self.background != "default"


class VisibleText(NamedTuple):
    """Text at a place in the session, and when it is visible; ``hidden``: None if nothing replaces it."""

    shown: float
    hidden: float | None
    line: int
    column: int
    text: str
    style: TextStyle


class Film(NamedTuple):
    """A whole session as it is drawn."""

    texts: list[VisibleText]
    """By the time at which each one appears."""
    scrolls: list[tuple[float, int]]
    """When the screen scrolled, and the first line that it shows since then."""
    cursors: list[tuple[float, int, int]]
    """When the cursor moved, and its line and column."""
    seconds: float

    def transcript(self) -> str:
        """The text that remains, line by line."""
        lines: dict[int, dict[int, str]] = defaultdict(dict)
        for text in self.texts:
            if text.hidden is None:
                lines[text.line].update(enumerate(text.text, text.column))
        last = max(lines, default=-1)
        return "\n".join(
            "".join(lines[line].get(column, " ") for column in range(max(lines[line], default=-1) + 1))
            for line in range(last + 1)
        )


_Cell = tuple[str, TextStyle]
_Place = tuple[int, int]


def film(recording: Recording, columns: int, lines: int) -> Film:
    """Play a recording and note what becomes visible, and when."""
    screen = TerminalScreen(columns, lines)
    shown: dict[_Place, tuple[float, _Cell]] = {}
    spans: dict[tuple[float, float | None, int, TextStyle], dict[int, str]] = defaultdict(dict)
    scrolls: list[tuple[float, int]] = [(0.0, 0)]
    cursors: list[tuple[float, int, int]] = [(0.0, 0, 0)]

    def end(place: _Place, when: float | None) -> None:
        began, (character, style) = shown.pop(place)
        spans[began, when, place[0], style][place[1]] = character

    for when in _frames(screen, recording):
        if screen.scrolled != scrolls[-1][1]:
            scrolls.append((when, screen.scrolled))
        cursor = (screen.scrolled + screen.cursor.y, screen.cursor.x)
        if cursor != cursors[-1][1:]:
            cursors.append((when, *cursor))
        cells = _cells(screen)
        for place in [place for place, (_, cell) in shown.items() if cells.get(place) != cell]:
            end(place, when if place[0] >= screen.scrolled else None)
        for place, cell in cells.items():
            shown.setdefault(place, (when, cell))
    for place in list(shown):
        end(place, None)
    seconds = recording[-1][0] if recording else 0.0
    texts = sorted(_joined(spans), key=lambda text: (text.shown, text.hidden or inf, text.line, text.column))
    return Film(texts, scrolls, cursors, seconds)


def _frames(screen: TerminalScreen, recording: Recording) -> Iterator[float]:
    """Write a recording to a screen; yields the time whenever the screen is settled."""
    for number, (when, data) in enumerate(recording, 1):
        screen.feed(data)
        if number == len(recording) or recording[number][0] - when >= SETTLED:
            yield when


def _cells(screen: TerminalScreen) -> dict[_Place, _Cell]:
    """Everything that can be seen; blank cells only if they are filled with a color."""
    found = {}
    for y in range(screen.lines):
        for x, cell in screen.buffer[y].items():
            style = _style(cell)
            if x < screen.columns and cell.data and (cell.data != " " or style.is_filled):
                found[screen.scrolled + y, x] = (cell.data, style)
    return found


def _style(cell: Any) -> TextStyle:
    return TextStyle(cell.fg, cell.bg, cell.bold, cell.italics, cell.reverse)


def _joined(spans: dict[tuple[float, float | None, int, TextStyle], dict[int, str]]) -> Iterator[VisibleText]:
    """Join the cells of a line that look alike and come and go together; blanks between them join as well."""
    used: dict[int, set[int]] = defaultdict(set)
    for (_, _, line, _), cells in spans.items():
        used[line].update(cells)
    for (began, ended, line, style), cells in spans.items():
        start, text = -1, ""
        for column in sorted(cells):
            gap = range(start + len(text), column)
            if text and ((style.is_filled and gap) or used[line].intersection(gap)):
                yield VisibleText(began, ended, line, start, text, style)
                text = ""
            start, text = (start, text + " " * len(gap) + cells[column]) if text else (column, cells[column])
        yield VisibleText(began, ended, line, start, text, style)
