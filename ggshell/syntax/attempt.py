"""One reading of one statement: its tokens, how far it came, and what could have stood there.

Parser and completion share this: what a line wanted at the furthest place it reached is the error's "expected …", and, when
that place is the end of the text, what completion offers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from ggshell.syntax.slots import SlotType
from ggshell.syntax.tree import Slot, Symbol, Word

Leaf = Word | Slot | Symbol
BLANK = re.compile(r"[\s,]*")
_TOKEN = re.compile(r"[^\s,;()=!\"']+")
_END = re.compile(r"[\s,;]*")
_QUOTES = "\"'"


Span = tuple[int, int]
"""Where something begins and ends in a statement, from 0."""


class Pair(NamedTuple):
    """A value with the name that it has for the handler, and where it stands: several spans where it may be given several
    times, the keyword's where that is all."""

    name: str
    value: Any
    spans: tuple[Span, ...]


class Value(NamedTuple):
    """A value without a name of its own: part of an option's."""

    value: Any
    slot: str
    place: int
    end: int


class Attempt:
    """The state of a reading.  ``far``: the furthest place where something was missing."""

    __slots__ = ("_tokens", "_wanted", "far", "pairs", "reasons", "text", "values")

    def __init__(self, text: str) -> None:
        self.text = text
        self.pairs: list[Pair] = []
        self.values: list[Value] = []
        self.far = 0
        self.reasons: list[str] = []
        self._wanted: list[Sequence[Leaf]] = []
        self._tokens: dict[int, tuple[str, int]] = {}

    def skip(self, place: int) -> int:
        """The place behind blanks and commas."""
        return BLANK.match(self.text, place).end()  # type: ignore[union-attr]  # it matches the empty text too

    def token(self, place: int) -> tuple[str, int]:
        """The word that stands at a place, in upper case, and its end; empty where none begins."""
        found = self._tokens.get(place)
        if found is None:
            match = _TOKEN.match(self.text, place)
            found = (match[0].upper(), match.end()) if match else ("", place)
            self._tokens[place] = found
        return found

    def missed(self, place: int, leaves: Sequence[Leaf], reason: str = "") -> int:
        """Note what could have stood at a place; -1, which every matcher answers then."""
        if place < self.far:
            return -1
        if place > self.far:
            self.far = place
            self._wanted.clear()
            self.reasons.clear()
        self._wanted.append(leaves)
        if reason:
            self.reasons.append(reason)
        return -1

    def refuse(self, place: int, reason: str) -> None:
        """What was read cannot be meant: the place is behind this, whatever was missed further on."""
        self.far = place
        self._wanted.clear()
        self.reasons[:] = [reason]

    def wanted(self) -> list[Leaf]:
        """What could have stood at the furthest place, each once, in the manual's order."""
        return list(dict.fromkeys(leaf for leaves in self._wanted for leaf in leaves))

    def ends(self, place: int) -> bool:
        """Whether nothing but blanks and semicolons follows."""
        return _END.match(self.text, place).end() == len(self.text)  # type: ignore[union-attr]

    def read_slot(self, slot: Slot, kind: SlotType, guard: frozenset[str], begin: int) -> Value | None:
        """The value at a place, None when there is none; a word of ``guard`` is a keyword and no value."""
        at = self.skip(begin)
        if guard and self.text[at : at + 1] not in _QUOTES and self.token(at)[0] in guard:
            self.missed(at, (slot,))
            return None
        end = kind.end(self.text, at)
        if end < 0:
            self.missed(at, (slot,), kind.broken(self.text, at))
            return None
        return Value(kind.convert(self.text[at:end]), slot.name, at, end)
