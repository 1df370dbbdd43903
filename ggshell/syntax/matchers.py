"""Matchers: functions that read something off a statement at a place, from keywords and values up to groups of options.

Each takes the reading and a place, puts what it found into the reading, and answers where it ended, or -1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ggshell.syntax.attempt import Attempt, Pair, Value
from ggshell.syntax.slots import slot_type
from ggshell.syntax.tree import (
    Choice,
    Leaf,
    Many,
    Node,
    Sequence,
    Slot,
    Symbol,
    Word,
    first_leaves,
    python_name,
    spellings,
)

Matcher = Callable[[Attempt, int], int]
"""(reading, place) -> where the node ends, -1 when it does not stand there."""


class Arms(NamedTuple):
    """Alternatives, found by the word that begins them: those without such a word (``loose``) are always tried."""

    matchers: tuple[Matcher, ...]
    leaves: tuple[tuple[Leaf, ...], ...]
    by_word: dict[str, tuple[int, ...]]
    loose: tuple[int, ...]
    again: frozenset[int]
    """Those that may be given several times."""

    def at(self, word: str) -> tuple[int, ...]:
        return self.by_word.get(word, self.loose)


def arms_of(nodes: Iterable[Node], make: Callable[[Node], Matcher]) -> Arms:
    items = tuple(nodes)
    leaves = tuple(first_leaves(node) for node in items)
    loose = tuple(n for n, found in enumerate(leaves) if not all(isinstance(leaf, Word) for leaf in found))
    by_word: dict[str, list[int]] = {}
    for number, found in enumerate(leaves):
        for word in found if number not in loose else ():
            for spelling in spellings(word) if isinstance(word, Word) else ():
                by_word.setdefault(spelling, []).append(number)
    whole = {word: tuple(sorted((*numbers, *loose))) for word, numbers in by_word.items()}
    again = frozenset(n for n, node in enumerate(items) if isinstance(lone(node), Many) and is_named(lone(node)))
    return Arms(tuple(make(node) for node in items), leaves, whole, loose, again)


def lone(node: Node) -> Node:
    """A node without sequences of it alone around it."""
    return lone(node.items[0]) if isinstance(node, Sequence) and len(node.items) == 1 else node


def is_named(node: Node) -> bool:
    """Whether everything that a node may be begins with a keyword of its own."""
    if isinstance(node, Many):
        return is_named(node.item)
    if isinstance(node, Choice):
        return all(is_named(arm) for arm in node.arms)
    return isinstance(node, Sequence) and bool(node.items) and isinstance(node.items[0], Word)


def pair_of(name: str, found: list[Value], place: int, end: int, *, many: bool) -> Pair:
    values = [each.value for each in found]
    value: Any = tuple(values) if many or len(values) > 1 else values[0] if values else True
    return Pair(name, value, ((found[0].place if found else place, end),))


def word_matcher(word: Word, *, value: bool = False) -> Matcher:
    forms, leaf = frozenset(spellings(word)), (word,)

    def match(run: Attempt, place: int) -> int:
        at = run.skip(place)
        typed, end = run.token(at)
        if typed not in forms:
            return run.missed(at, leaf)
        if value:
            run.values.append(Value(word.text, python_name(word.text), at, end))
        return end

    return match


def slot_matcher(slot: Slot, guard: frozenset[str]) -> Matcher:
    kind = slot_type(slot.name)

    def match(run: Attempt, place: int) -> int:
        value = run.read_slot(slot, kind, guard, place)
        if value is None:
            return -1
        run.values.append(value)
        return value.end

    return match


def sign_matcher(symbol: Symbol, *, value: bool = False) -> Matcher:
    name, leaf = "force" if symbol.text == "!" else "", (symbol,)

    def match(run: Attempt, place: int) -> int:
        at = run.skip(place)
        if not run.text.startswith(symbol.text, at):
            return run.missed(at, leaf)
        if name and not value:
            run.pairs.append(Pair(name, True, ((at, at + 1),)))
        return at + len(symbol.text)

    return match


def unnamed(matcher: Matcher, *, many: bool) -> Matcher:
    """A placeholder that is an argument itself, by its own name."""

    def match(run: Attempt, place: int) -> int:
        saved, run.values = run.values, []
        end = matcher(run, place)
        found, run.values = run.values, saved
        if end >= 0 and found:
            value = tuple(each.value for each in found) if many else found[0].value
            run.pairs.append(Pair(python_name(found[0].slot), value, ((found[0].place, end),)))
        return end

    return match


def gathered(matcher: Matcher) -> Matcher:
    """An option that may be given several times: one argument with all its values."""

    def match(run: Attempt, place: int) -> int:
        first = len(run.pairs)
        end = matcher(run, place)
        by_name: dict[str, list[Pair]] = {}
        for pair in run.pairs[first:]:
            by_name.setdefault(pair.name, []).append(pair)
        run.pairs[first:] = [
            Pair(name, tuple(each.value for each in found), tuple(span for each in found for span in each.spans))
            for name, found in by_name.items()
        ]
        return end

    return match


def in_a_row(matchers: list[Matcher]) -> Matcher:
    if len(matchers) == 1:
        return matchers[0]

    def match(run: Attempt, place: int) -> int:
        for each in matchers:
            place = each(run, place)
            if place < 0:
                return -1
        return place

    return match


def many_of(matcher: Matcher) -> Matcher:
    def match(run: Attempt, place: int) -> int:
        end = matcher(run, place)
        following = end
        while following > place:
            place = end = following
            marks = len(run.pairs), len(run.values)
            following = matcher(run, place)
            if following < 0:
                del run.pairs[marks[0] :], run.values[marks[1] :]
        return end

    return match


Found = tuple[int, list[Pair], list[Value], int]


def _furthest(run: Attempt, arms: Arms, numbers: Iterable[int], at: int) -> Found:
    """Of some alternatives the one that reads furthest: its end (-1: none), what it gives, and its number."""
    best: Found = (-1, [], [], -1)
    pairs, values = run.pairs, run.values
    for number in numbers:
        run.pairs, run.values = [], []
        end = arms.matchers[number](run, at)
        if end > best[0]:
            best = end, run.pairs, run.values, number
    run.pairs, run.values = pairs, values
    return best


def choice_of(arms: Arms) -> Matcher:
    wanted = tuple(leaf for leaves in arms.leaves for leaf in leaves)

    def match(run: Attempt, place: int) -> int:
        at = run.skip(place)
        end, pairs, values, _ = _furthest(run, arms, arms.at(run.token(at)[0]), at)
        if end < 0:
            return run.missed(at, wanted)
        run.pairs += pairs
        run.values += values
        return end

    return match


def options_of(arms: Arms, *, values: bool = False, needed: frozenset[int] = frozenset()) -> Matcher:
    """Neighbouring options: any of them, in any order, each once; those ``needed`` must be among them."""

    def match(run: Attempt, place: int) -> int:
        used: dict[int, str] = {}
        given: dict[int, list[Value]] = {}
        while True:
            at = run.skip(place)
            word = run.token(at)[0]
            possible = arms.at(word)
            end, pairs, found, number = _furthest(run, arms, [n for n in possible if n not in used], at)
            if end <= at:
                break
            if number not in arms.again:
                used[number] = word
            given[number] = [*given.get(number, ()), *found]
            run.pairs += pairs
            place = end
        for number in sorted(given) if values else ():
            run.values += given[number]
        if at >= run.far:
            again = next((used[n] for n in possible if n in used and n not in arms.loose), "")
            reason = "" if not again else f"{word} stands twice" if again == word else f"{word} excludes {again}"
            run.missed(at, [leaf for n, leaves in enumerate(arms.leaves) if n not in used for leaf in leaves], reason)
        return place if needed <= given.keys() else -1

    return match
