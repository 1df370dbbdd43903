"""Trees to matchers: each node of a syntax line becomes a function that reads it off a statement.

Commas between options are white space, as the manuals' own examples leave them out; neighbouring options come in any order,
each once; a keyword beats a value, and of several ways the one that reads furthest is taken.  Nothing is read twice but the
arms of a choice, so the time is linear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ggshell.syntax.attempt import Attempt, Leaf, Pair, Value
from ggshell.syntax.slots import slot_type
from ggshell.syntax.tree import (
    Choice,
    Line,
    Many,
    Node,
    Option,
    Sequence,
    Slot,
    Symbol,
    Word,
    first_leaves,
    keywords,
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

    def at(self, word: str) -> tuple[int, ...]:
        return self.by_word.get(word, self.loose)


def _arms(nodes: Iterable[Node], make: Callable[[Node], Matcher]) -> Arms:
    items = tuple(nodes)
    leaves = tuple(first_leaves(node) for node in items)
    loose = tuple(n for n, found in enumerate(leaves) if not all(isinstance(leaf, Word) for leaf in found))
    by_word: dict[str, list[int]] = {}
    for number, found in enumerate(leaves):
        for word in found if number not in loose else ():
            for spelling in spellings(word) if isinstance(word, Word) else ():
                by_word.setdefault(spelling, []).append(number)
    whole = {word: tuple(sorted((*numbers, *loose))) for word, numbers in by_word.items()}
    return Arms(tuple(make(node) for node in items), leaves, whole, loose)


class LineParser:
    """The parser of one syntax line."""

    def __init__(self, line: Line) -> None:
        self._fixed = line.key.split()
        self._guard = self._heads(line.body)
        self._match = self._row(self._top(line.body))

    def parse(self, run: Attempt) -> list[Pair] | None:
        """The arguments of a statement in the order of the text; None when it is not of this line: ``run`` knows how far."""
        end = self._match(run, 0)
        if end >= 0 and not run.ends(end):
            run.missed(run.skip(end), ())
            end = -1
        seen: set[str] = set()
        for pair in run.pairs if end >= 0 else ():
            if pair.name in seen:
                run.refuse(pair.spans[0][0], f"{pair.name.upper()} stands twice")
                return None
            seen.add(pair.name)
        return run.pairs if end >= 0 else None

    def _heads(self, body: Sequence) -> frozenset[str]:
        """The keywords that begin something: where one stands, it is no value."""
        fixed = list(self._fixed)
        found: set[str] = set()
        for item, comma in zip(body.items, body.commas, strict=True):
            if isinstance(item, Word) and fixed and item.text == fixed[0] and not comma:
                fixed.pop(0)
                continue
            leaves = keywords(item) if isinstance(item, Word) else first_leaves(item)
            found |= {form for leaf in leaves if isinstance(leaf, Word) for form in spellings(leaf)}
        return frozenset(found)

    def _top(self, body: Sequence) -> list[Matcher | Node]:
        """The line's own items: fixed words give no value, an option's word takes what follows it."""
        parts: list[Matcher | Node] = []
        fixed = list(self._fixed)
        number, items = 0, body.items
        while number < len(items):
            item = items[number]
            if isinstance(item, Word) and fixed and item.text == fixed[0] and not body.commas[number]:
                fixed.pop(0)
                parts.append(_word(item))
            elif isinstance(item, Word):
                rest: list[Node] = []
                while number + 1 < len(items) and not isinstance(items[number + 1], Option | Word):
                    number += 1
                    rest.append(items[number])
                parts.append(self._named(item, rest, self._guard))
            elif isinstance(item, Option):
                parts.append(item)
            else:
                parts.append(self._argument(item, frozenset()))
            number += 1
        return parts

    def _row(self, parts: list[Matcher | Node]) -> Matcher:
        """Things in a row; neighbouring options become one group."""
        matchers: list[Matcher] = []
        run: list[Node] = []
        for part in [*parts, None]:
            if isinstance(part, Option):
                run.append(part.item)
                continue
            if run:
                matchers.append(_options(_arms(run, self._option), values=False))
                run = []
            if callable(part):
                matchers.append(part)
        return _in_a_row(matchers)

    def _option(self, node: Node) -> Matcher:
        return self._argument(node, self._guard)

    def _argument(self, node: Node, guard: frozenset[str]) -> Matcher:
        """Something that gives named values."""
        if isinstance(node, Word):
            return self._named(node, [], guard)
        if isinstance(node, Sequence) and node.items and isinstance(node.items[0], Word):
            return self._named(node.items[0], list(node.items[1:]), guard)
        if isinstance(node, Sequence):
            parts: list[Matcher | Node] = [
                item if isinstance(item, Option) else self._argument(item, guard) for item in node.items
            ]
            return self._row(parts)
        if isinstance(node, Choice):
            return _choice(_arms(node.arms, self._option))
        if isinstance(node, Option):
            return _options(_arms([node.item], self._option), values=False)
        if isinstance(node, Symbol):
            return _sign(node)
        if isinstance(node, Many) and all(isinstance(leaf, Word) for leaf in first_leaves(node)) and _is_named(node):
            return _gathered(_many(self._argument(node.item, guard)))
        return _unnamed(self._value(node, guard), many=isinstance(node, Many))

    def _named(self, word: Word, rest: list[Node], guard: frozenset[str]) -> Matcher:
        """An option: its keyword names it, what follows is its value (True when nothing does)."""
        head, name = _word(word), python_name(word.text)
        if not rest:

            def flag(run: Attempt, place: int) -> int:
                end = head(run, place)
                if end >= 0:
                    run.pairs.append(Pair(name, True, ((run.skip(place), end),)))
                return end

            return flag
        many = len(rest) == 1 and isinstance(rest[0], Many)
        inner = guard | {form for item in rest for found in keywords(item) for form in spellings(found)}
        value = self._value(Sequence(tuple(rest), (False,) * len(rest)), inner)

        def named(run: Attempt, place: int) -> int:
            begin = head(run, place)
            if begin < 0:
                return -1
            saved, run.values = run.values, []
            end = value(run, begin)
            found, run.values = run.values, saved
            if end >= 0:
                run.pairs.append(_pair(name, found, run.skip(place), end, many=many))
            return end

        return named

    def _value(self, node: Node, guard: frozenset[str]) -> Matcher:
        """Something within an option's value."""
        if isinstance(node, Slot):
            return _slot(node, guard)
        if isinstance(node, Word):
            return _word(node, value=True)
        if isinstance(node, Symbol):
            return _sign(node, value=True)
        if isinstance(node, Option):
            return _options(_arms([node.item], lambda item: self._value(item, guard)), values=True)
        if isinstance(node, Choice):
            return _choice(_arms(node.arms, lambda arm: self._value(arm, guard)))
        if isinstance(node, Many):
            return _many(self._value(node.item, guard))
        matchers: list[Matcher] = []
        items = list(node.items)
        while items:
            run: list[Node] = []
            while items and isinstance(items[0], Option):
                run.append(items.pop(0).item)  # type: ignore[union-attr]  # it is an Option
            if run:
                matchers.append(_options(_arms(run, lambda item: self._value(item, guard)), values=True))
            elif items:
                matchers.append(self._value(items.pop(0), guard))
        return _in_a_row(matchers)


def _is_named(node: Node) -> bool:
    """Whether everything that a node may be begins with a keyword of its own."""
    if isinstance(node, Many):
        return _is_named(node.item)
    if isinstance(node, Choice):
        return all(_is_named(arm) for arm in node.arms)
    return isinstance(node, Sequence) and bool(node.items) and isinstance(node.items[0], Word)


def _pair(name: str, found: list[Value], place: int, end: int, *, many: bool) -> Pair:
    values = [each.value for each in found]
    value: Any = tuple(values) if many or len(values) > 1 else values[0] if values else True
    return Pair(name, value, ((found[0].place if found else place, end),))


def _word(word: Word, *, value: bool = False) -> Matcher:
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


def _slot(slot: Slot, guard: frozenset[str]) -> Matcher:
    kind = slot_type(slot.name)

    def match(run: Attempt, place: int) -> int:
        value = run.read_slot(slot, kind, guard, place)
        if value is None:
            return -1
        run.values.append(value)
        return value.end

    return match


def _sign(symbol: Symbol, *, value: bool = False) -> Matcher:
    name, leaf = "force" if symbol.text == "!" else "", (symbol,)

    def match(run: Attempt, place: int) -> int:
        at = run.skip(place)
        if not run.text.startswith(symbol.text, at):
            return run.missed(at, leaf)
        if name and not value:
            run.pairs.append(Pair(name, True, ((at, at + 1),)))
        return at + len(symbol.text)

    return match


def _unnamed(matcher: Matcher, *, many: bool) -> Matcher:
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


def _gathered(matcher: Matcher) -> Matcher:
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


def _in_a_row(matchers: list[Matcher]) -> Matcher:
    if len(matchers) == 1:
        return matchers[0]

    def match(run: Attempt, place: int) -> int:
        for each in matchers:
            place = each(run, place)
            if place < 0:
                return -1
        return place

    return match


def _many(matcher: Matcher) -> Matcher:
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


def _choice(arms: Arms) -> Matcher:
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


def _options(arms: Arms, *, values: bool) -> Matcher:
    """Neighbouring options: any of them, in any order, each once."""

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
            used[number], given[number] = word, found
            run.pairs += pairs
            place = end
        for number in sorted(given) if values else ():
            run.values += given[number]
        if at >= run.far:
            again = next((used[n] for n in possible if n in used and n not in arms.loose), "")
            reason = "" if not again else f"{word} stands twice" if again == word else f"{word} excludes {again}"
            run.missed(at, [leaf for n, leaves in enumerate(arms.leaves) if n not in used for leaf in leaves], reason)
        return place

    return match
