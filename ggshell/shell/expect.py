"""What could stand at a place of a statement, by the manual's syntax lines: the words and the kinds of values.

All ways through a line's tree are followed at once over the words typed before the place, so that options may come in any
order, each once, and a keyword beats a value.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ggshell.syntax import pages
from ggshell.syntax.grammar import COMMANDS, lines_of
from ggshell.syntax.tree import Choice, Line, Many, Node, Option, Sequence, Slot, Symbol, Word, keywords

_TOKEN = re.compile(r"\"[^\"\n]*\"?|'[^'\n]*'?|\([^()]*\)|[()=!]|[^\s,;()=!\"']+")
_CLOCK = re.compile(r"\d\d?:\d\d")
_SIGNS = frozenset("()=!")
_REST = frozenset({"rest", "text"})
_TIMES = frozenset({"when", "time"})


class Expectation(NamedTuple):
    """Something that could stand there: a keyword or the name of a placeholder, and the page that says so."""

    word: str
    slot: str
    page: str


def partial_word(text: str, cursor: int) -> str:
    """What is typed of the word at the cursor."""
    before = text[:cursor]
    found = list(_TOKEN.finditer(before))
    return found[-1][0] if found and found[-1].end() == len(before) else ""


def expected(text: str, cursor: int, kind: str = COMMANDS) -> list[Expectation]:
    """What could stand at the cursor, in the manual's order; nothing where the text before it fits no line."""
    before = text[: cursor - len(partial_word(text, cursor))]
    typed = _TOKEN.findall(before)
    if not typed:
        verbs = dict.fromkeys(stem.split("_")[0].upper() for stem in pages.index(kind))
        return [Expectation(verb, "", "") for verb in verbs]
    found: dict[tuple[str, str], Expectation] = {}
    for line in lines_of(typed[0], kind):
        for word, slot in _Walk(line, typed).run():
            found.setdefault((word, slot), Expectation(word, slot, line.page))
    return list(found.values())


class _Walk:
    """One line, followed over the words typed."""

    def __init__(self, line: Line, typed: list[str]) -> None:
        self._line = line
        self._typed = typed
        self._words = keywords(line.body)
        self._next: dict[tuple[str, str], None] = {}

    def run(self) -> list[tuple[str, str]]:
        """(word, slot) pairs that could come after all that is typed."""
        self._ends(self._line.body, 0)
        return list(self._next)

    def _ends(self, node: Node, place: int) -> set[int]:
        """Where a node may end when it begins at a place."""
        if isinstance(node, Sequence):
            return self._row(node, place)
        if isinstance(node, Option):
            return {place} | self._ends(node.item, place)
        if isinstance(node, Choice):
            return set().union(*(self._ends(arm, place) for arm in node.arms))
        if isinstance(node, Many):
            return self._many(node, place)
        return self._leaf(node, place)

    def _leaf(self, node: Word | Slot | Symbol, place: int) -> set[int]:
        if place == len(self._typed):
            self._next[("", node.name) if isinstance(node, Slot) else (node.text, "")] = None
            return set()
        token = self._typed[place]
        if isinstance(node, Word):
            return {place + 1} if _means(node, token) else set()
        if isinstance(node, Symbol):
            return {place + 1} if token == node.text else set()
        if node.name in _REST:
            self._next["", node.name] = None
            return {len(self._typed)}
        if any(_means(word, token) for word in self._words) or token in _SIGNS:
            return set()
        following = self._typed[place + 1] if place + 1 < len(self._typed) else ""
        return {place + 1, place + 2} if node.name in _TIMES and _CLOCK.match(following) else {place + 1}

    def _many(self, node: Many, place: int) -> set[int]:
        found: set[int] = set()
        fresh = self._ends(node.item, place)
        while fresh:
            found |= fresh
            fresh = {end for begin in fresh for end in self._ends(node.item, begin)} - found
        return found

    def _row(self, node: Sequence, place: int) -> set[int]:
        places, number = {place}, 0
        while number < len(node.items) and places:
            run = []
            while number < len(node.items) and isinstance(node.items[number], Option):
                run.append(node.items[number])
                number += 1
            if run:
                places = set().union(*(self._options(run, begin) for begin in places))
                continue
            places = set().union(*(self._ends(node.items[number], begin) for begin in places))
            number += 1
        return places

    def _options(self, run: list[Node], place: int) -> set[int]:
        """Neighbouring options: any order, each once."""
        found = {place}
        fresh: set[tuple[int, frozenset[int]]] = {(place, frozenset())}
        seen = set(fresh)
        while fresh:
            begin, used = fresh.pop()
            for number, option in enumerate(run):
                if number in used or not isinstance(option, Option):
                    continue
                for end in self._ends(option.item, begin) - {begin}:
                    found.add(end)
                    state = (end, used | {number})
                    if state not in seen:
                        seen.add(state)
                        fresh.add(state)
        return found


def _means(word: Word, token: str) -> bool:
    """Whether a token is a keyword or one of its abbreviations."""
    typed = token.upper()
    return len(typed) >= word.least and word.text.startswith(typed)
