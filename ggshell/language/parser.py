"""The parser of a syntax line: each node of its tree becomes a matcher, a function that reads the node from a statement.

A matcher takes an attempt and a position, adds what it found to the attempt, and returns the end position, or -1. The parser
and completion share the attempt: what a line expected at the furthest position is the "expected ..." of the error. If that
position is the end of the text, it is also what completion offers.

Commas between options count as white space, because the manuals' own examples omit them. Neighboring options can be in any
order, each once. A keyword beats a value. Of several alternatives, the one that matches furthest is taken. Only the
alternatives of a choice are read more than once, so parsing takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.language.notation import (
    Alternatives,
    Leaf,
    Line,
    Many,
    Node,
    Option,
    Series,
    Slot,
    Symbol,
    Word,
    first_leaves,
    keywords,
    python_name,
    spellings,
)
from ggshell.language.values import REST, SlotType, slot_type

if TYPE_CHECKING:
    from ggshell.language.statement import Span

BLANK = re.compile(r"[\s,]*")
_TOKEN = re.compile(r"[^\s,;()=!\"']+")
_END = re.compile(r"[\s,;]*")
_QUOTES = "\"'"


class NamedValue(NamedTuple):
    """A value under its argument name, with its spans.

    There are several spans if the argument can be given several times. An option without a value has its keyword's span.
    """

    name: str
    value: Any
    spans: tuple[Span, ...]


class Value(NamedTuple):
    """A value that does not have an argument name of its own because it is part of an option's value."""

    value: Any
    slot: str
    place: int
    end: int


class Attempt:
    """The state of one reading. ``far`` is the furthest position at which something was missing."""

    __slots__ = ("_tokens", "_wanted", "far", "pairs", "reasons", "text", "values")

    def __init__(self, text: str) -> None:
        self.text = text
        self.pairs: list[NamedValue] = []
        self.values: list[Value] = []
        self.far = 0
        self.reasons: list[str] = []
        self._wanted: list[Sequence[Leaf]] = []
        self._tokens: dict[int, tuple[str, int]] = {}

    def skip(self, place: int) -> int:
        """The position after blanks and commas."""
        if self.text[place : place + 1].isalnum():
            return place  # the usual case, without a regular expression
        return BLANK.match(self.text, place).end()  # type: ignore[union-attr]  # it matches the empty text too

    def token(self, place: int) -> tuple[str, int]:
        """The word at a position, in upper case, and its end. The word is empty if none begins there."""
        found = self._tokens.get(place)
        if found is None:
            match = _TOKEN.match(self.text, place)
            found = (match[0].upper(), match.end()) if match else ("", place)
            self._tokens[place] = found
        return found

    def missed(self, place: int, leaves: Sequence[Leaf], reason: str = "") -> int:
        """Record what was expected at a position. Returns -1, which every matcher returns on failure."""
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
        """Reject what was read: the error is reported at this position, even if something was missing further on."""
        self.far = place
        self._wanted.clear()
        self.reasons[:] = [reason]

    def wanted(self) -> list[Leaf]:
        """What was expected at the furthest position, without duplicates, in the manual's order."""
        return list(dict.fromkeys(leaf for leaves in self._wanted for leaf in leaves))

    def ends(self, place: int) -> bool:
        """Whether only blanks, commas and semicolons follow."""
        return _END.match(self.text, place).end() == len(self.text)  # type: ignore[union-attr]

    def read_slot(self, slot: Slot, kind: SlotType, reserved: frozenset[str], begin: int) -> Value | None:
        """The value at a position, or None.

        None if there is no value, if the value is not valid (hour 25), or if it is a keyword in ``reserved``.
        """
        at = self.skip(begin)
        if reserved and self.text[at : at + 1] not in _QUOTES and self.token(at)[0] in reserved:
            self.missed(at, (slot,))
            return None
        end = kind.end(self.text, at)
        if end < 0:
            self.missed(at, (slot,), kind.broken(self.text, at))
            return None
        if kind is REST and end == len(self.text):
            self.missed(end, (slot,))  # more text at the end would still belong to it
        try:
            return Value(kind.convert(self.text[at:end]), slot.name, at, end)
        except ValueError as error:
            self.missed(at, (slot,), str(error))
            return None


Matcher = Callable[[Attempt, int], int]
"""(attempt, position) -> the end of the node, or -1 if it does not match there."""


class Arms(NamedTuple):
    """Alternatives, indexed by their first word. Those without a fixed first word (``loose``) are always tried."""

    matchers: tuple[Matcher, ...]
    leaves: tuple[tuple[Leaf, ...], ...]
    by_word: dict[str, tuple[int, ...]]
    loose: tuple[int, ...]
    again: frozenset[int]
    """Alternatives that can be given several times."""

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
    """Unwrap sequences that contain a single node."""
    return lone(node.items[0]) if isinstance(node, Series) and len(node.items) == 1 else node


def is_named(node: Node) -> bool:
    """Whether every alternative of a node begins with a keyword of its own."""
    if isinstance(node, Many):
        return is_named(node.item)
    if isinstance(node, Alternatives):
        return all(is_named(arm) for arm in node.arms)
    return isinstance(node, Series) and bool(node.items) and isinstance(node.items[0], Word)


def pair_of(name: str, found: list[Value], place: int, end: int, *, many: bool) -> NamedValue:
    values = [each.value for each in found]
    value: Any = tuple(values) if many or len(values) > 1 else values[0] if values else True
    return NamedValue(name, value, ((found[0].place if found else place, end),))


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


def slot_matcher(slot: Slot, reserved: frozenset[str]) -> Matcher:
    kind = slot_type(slot.name)

    def match(run: Attempt, place: int) -> int:
        value = run.read_slot(slot, kind, reserved, place)
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
            run.pairs.append(NamedValue(name, True, ((at, at + 1),)))
        return at + len(symbol.text)

    return match


def unnamed(matcher: Matcher, *, many: bool) -> Matcher:
    """A placeholder that is an argument by itself, under its own name."""

    def match(run: Attempt, place: int) -> int:
        saved, run.values = run.values, []
        end = matcher(run, place)
        found, run.values = run.values, saved
        if end >= 0 and found:
            value = tuple(each.value for each in found) if many else found[0].value
            run.pairs.append(NamedValue(python_name(found[0].slot), value, ((found[0].place, end),)))
        return end

    return match


def gathered(matcher: Matcher) -> Matcher:
    """An option that can be given several times: one argument with all its values."""

    def match(run: Attempt, place: int) -> int:
        first = len(run.pairs)
        end = matcher(run, place)
        by_name: dict[str, list[NamedValue]] = {}
        for pair in run.pairs[first:]:
            by_name.setdefault(pair.name, []).append(pair)
        run.pairs[first:] = [
            NamedValue(name, tuple(each.value for each in found), tuple(span for each in found for span in each.spans))
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


Found = tuple[int, list[NamedValue], list[Value], int]


def _furthest(run: Attempt, arms: Arms, numbers: Iterable[int], at: int) -> Found:
    """The alternative that matches furthest: its end (-1: none), its pairs and values, and its number."""
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
    """Neighboring options, in any order, each at most once. Those in ``needed`` are required."""

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
            reason = (
                ""
                if not again
                else f"{word} is given twice"
                if again == word
                else f"{word} cannot be used with {again}"
            )
            run.missed(at, [leaf for n, leaves in enumerate(arms.leaves) if n not in used for leaf in leaves], reason)
        return place if needed <= given.keys() else -1

    return match


class LineParser:
    """The parser of one syntax line."""

    def __init__(self, line: Line) -> None:
        self._fixed = line.key.split()
        self._reserved = self._heads(line.body)
        self._several: set[str] = set()
        self._match = self._row(self._top(line.body))

    def parse(self, run: Attempt) -> list[NamedValue] | None:
        """The arguments in text order. None if the statement does not fit this line; ``run`` then has the position."""
        end = self._match(run, 0)
        if end >= 0 and not run.ends(end):
            run.missed(run.skip(end), ())
            end = -1
        if end < 0:
            return None
        found: dict[str, NamedValue] = {}
        for pair in run.pairs:
            before = found.get(pair.name)
            if before is None:
                found[pair.name] = pair
            elif pair.name in self._several:
                found[pair.name] = NamedValue(pair.name, before.value + pair.value, before.spans + pair.spans)
            else:
                run.refuse(pair.spans[0][0], f"{pair.name.upper()} is given twice")
                return None
        return list(found.values())

    def _heads(self, body: Series) -> frozenset[str]:
        """The keywords that begin an item of the line. They cannot be values."""
        fixed = list(self._fixed)
        found: set[str] = set()
        for item, comma in zip(body.items, body.commas, strict=True):
            if isinstance(item, Word) and fixed and item.text == fixed[0] and not comma:
                fixed.pop(0)
                continue
            leaves = keywords(item) if isinstance(item, Word) else first_leaves(item)
            found |= {form for leaf in leaves if isinstance(leaf, Word) for form in spellings(leaf)}
        return frozenset(found)

    def _top(self, body: Series) -> list[Matcher | Node]:
        """The top-level items: fixed words have no value; an option's keyword takes the items after it as value."""
        parts: list[Matcher | Node] = []
        fixed = list(self._fixed)
        number, items = 0, body.items
        while number < len(items):
            item = items[number]
            if isinstance(item, Word) and fixed and item.text == fixed[0] and not body.commas[number]:
                fixed.pop(0)
                parts.append(word_matcher(item))
            elif isinstance(item, Word):
                rest: list[Node] = []
                while number + 1 < len(items) and not isinstance(items[number + 1], Option | Word):
                    number += 1
                    rest.append(items[number])
                whole = Series((item, *rest), (False,) * (len(rest) + 1))
                behind = items[number + 1] if number + 1 < len(items) else None
                # Scripts write a required option after the optional ones.
                joins = body.commas[number - len(rest)] and isinstance(behind, Option)
                parts.append(whole if joins else self._named(item, rest, self._reserved))
            elif isinstance(item, Option):
                parts.append(item)
            else:
                parts.append(self._argument(item, frozenset()))
            number += 1
        return parts

    def _row(self, parts: list[Matcher | Node]) -> Matcher:
        """Match items in a row. Neighboring options become one group; the items that are sequences are required in it."""
        matchers: list[Matcher] = []
        run: list[Node] = []
        needed: set[int] = set()
        for part in [*parts, None]:
            if isinstance(part, Series):
                needed.add(len(run))
                run.append(part)
                continue
            if isinstance(part, Option):
                run.append(part.item)
                continue
            if run:
                matchers.append(options_of(arms_of(run, self._option), needed=frozenset(needed)))
                run, needed = [], set()
            if callable(part):
                matchers.append(part)
        return in_a_row(matchers)

    def _option(self, node: Node) -> Matcher:
        return self._argument(node, self._reserved)

    def _argument(self, node: Node, reserved: frozenset[str]) -> Matcher:
        """A matcher for a node that gives named values."""
        if isinstance(node, Word):
            return self._named(node, [], reserved)
        if isinstance(node, Series) and node.items and isinstance(node.items[0], Word):
            return self._named(node.items[0], list(node.items[1:]), reserved)
        if isinstance(node, Series):
            parts: list[Matcher | Node] = [
                item if isinstance(item, Option) else self._argument(item, reserved) for item in node.items
            ]
            return self._row(parts)
        if isinstance(node, Alternatives):
            return choice_of(arms_of(node.arms, self._option))
        if isinstance(node, Option):
            return options_of(arms_of([node.item], self._option))
        if isinstance(node, Symbol):
            return sign_matcher(node)
        if isinstance(node, Many) and all(isinstance(leaf, Word) for leaf in first_leaves(node)) and is_named(node):
            self._several |= {python_name(leaf.text) for leaf in first_leaves(node) if isinstance(leaf, Word)}
            return gathered(many_of(self._argument(node.item, reserved)))
        return unnamed(self._value(node, reserved), many=isinstance(node, Many))

    def _named(self, word: Word, rest: list[Node], reserved: frozenset[str]) -> Matcher:
        """An option: its keyword is the name, what follows is the value (True if nothing follows)."""
        head, name = word_matcher(word), python_name(word.text)
        if not rest:

            def flag(run: Attempt, place: int) -> int:
                end = head(run, place)
                if end >= 0:
                    run.pairs.append(NamedValue(name, True, ((run.skip(place), end),)))
                return end

            return flag
        many = len(rest) == 1 and isinstance(rest[0], Many)
        inner = reserved | {form for item in rest for found in keywords(item) for form in spellings(found)}
        if isinstance(rest[0], Slot):
            inner -= {
                *spellings(word)
            }  # the value can equal the keyword: a password that is "password", an Extract called ext
        value = self._value(Series(tuple(rest), (False,) * len(rest)), inner)

        def named(run: Attempt, place: int) -> int:
            begin = head(run, place)
            if begin < 0:
                return -1
            saved, run.values = run.values, []
            end = value(run, begin)
            found, run.values = run.values, saved
            if end >= 0:
                run.pairs.append(pair_of(name, found, run.skip(place), end, many=many))
            return end

        return named

    def _value(self, node: Node, reserved: frozenset[str]) -> Matcher:
        """A matcher for a node within an option's value."""
        if isinstance(node, Slot):
            return slot_matcher(node, reserved)
        if isinstance(node, Word):
            return word_matcher(node, value=True)
        if isinstance(node, Symbol):
            return sign_matcher(node, value=True)
        if isinstance(node, Option):
            return options_of(arms_of([node.item], lambda item: self._value(item, reserved)), values=True)
        if isinstance(node, Alternatives):
            return choice_of(arms_of(node.arms, lambda arm: self._value(arm, reserved)))
        if isinstance(node, Many):
            return many_of(self._value(node.item, reserved))
        matchers: list[Matcher] = []
        items = list(node.items)
        while items:
            run: list[Node] = []
            while items and isinstance(items[0], Option):
                run.append(items.pop(0).item)  # type: ignore[union-attr]  # it is an Option
            if run:
                matchers.append(options_of(arms_of(run, lambda item: self._value(item, reserved)), values=True))
            elif items:
                matchers.append(self._value(items.pop(0), reserved))
        return in_a_row(matchers)
