"""Trees to matchers: each node of a syntax line becomes a function that reads it off a statement.

Commas between options are white space, as the manuals' own examples leave them out; neighbouring options come in any order,
each once; a keyword beats a value, and of several ways the one that reads furthest is taken.  Nothing is read twice but the
arms of a choice, so the time is linear.
"""

from __future__ import annotations

from ggshell.syntax.attempt import Attempt, Pair
from ggshell.syntax.matchers import (
    Matcher,
    arms_of,
    choice_of,
    gathered,
    in_a_row,
    is_named,
    many_of,
    options_of,
    pair_of,
    sign_matcher,
    slot_matcher,
    unnamed,
    word_matcher,
)
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


class LineParser:
    """The parser of one syntax line."""

    def __init__(self, line: Line) -> None:
        self._fixed = line.key.split()
        self._guard = self._heads(line.body)
        self._several: set[str] = set()
        self._match = self._row(self._top(line.body))

    def parse(self, run: Attempt) -> list[Pair] | None:
        """The arguments of a statement in the order of the text; None when it is not of this line: ``run`` knows how far."""
        end = self._match(run, 0)
        if end >= 0 and not run.ends(end):
            run.missed(run.skip(end), ())
            end = -1
        if end < 0:
            return None
        found: dict[str, Pair] = {}
        for pair in run.pairs:
            before = found.get(pair.name)
            if before is None:
                found[pair.name] = pair
            elif pair.name in self._several:
                found[pair.name] = Pair(pair.name, before.value + pair.value, before.spans + pair.spans)
            else:
                run.refuse(pair.spans[0][0], f"{pair.name.upper()} stands twice")
                return None
        return list(found.values())

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
                parts.append(word_matcher(item))
            elif isinstance(item, Word):
                rest: list[Node] = []
                while number + 1 < len(items) and not isinstance(items[number + 1], Option | Word):
                    number += 1
                    rest.append(items[number])
                whole = Sequence((item, *rest), (False,) * (len(rest) + 1))
                behind = items[number + 1] if number + 1 < len(items) else None
                # Scripts write an option that must be there behind those that may be.
                joins = body.commas[number - len(rest)] and isinstance(behind, Option)
                parts.append(whole if joins else self._named(item, rest, self._guard))
            elif isinstance(item, Option):
                parts.append(item)
            else:
                parts.append(self._argument(item, frozenset()))
            number += 1
        return parts

    def _row(self, parts: list[Matcher | Node]) -> Matcher:
        """Things in a row; neighbouring options become one group, in which some (sequences) must stand."""
        matchers: list[Matcher] = []
        run: list[Node] = []
        needed: set[int] = set()
        for part in [*parts, None]:
            if isinstance(part, Sequence):
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
            return choice_of(arms_of(node.arms, self._option))
        if isinstance(node, Option):
            return options_of(arms_of([node.item], self._option))
        if isinstance(node, Symbol):
            return sign_matcher(node)
        if isinstance(node, Many) and all(isinstance(leaf, Word) for leaf in first_leaves(node)) and is_named(node):
            self._several |= {python_name(leaf.text) for leaf in first_leaves(node) if isinstance(leaf, Word)}
            return gathered(many_of(self._argument(node.item, guard)))
        return unnamed(self._value(node, guard), many=isinstance(node, Many))

    def _named(self, word: Word, rest: list[Node], guard: frozenset[str]) -> Matcher:
        """An option: its keyword names it, what follows is its value (True when nothing does)."""
        head, name = word_matcher(word), python_name(word.text)
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
                run.pairs.append(pair_of(name, found, run.skip(place), end, many=many))
            return end

        return named

    def _value(self, node: Node, guard: frozenset[str]) -> Matcher:
        """Something within an option's value."""
        if isinstance(node, Slot):
            return slot_matcher(node, guard)
        if isinstance(node, Word):
            return word_matcher(node, value=True)
        if isinstance(node, Symbol):
            return sign_matcher(node, value=True)
        if isinstance(node, Option):
            return options_of(arms_of([node.item], lambda item: self._value(item, guard)), values=True)
        if isinstance(node, Choice):
            return choice_of(arms_of(node.arms, lambda arm: self._value(arm, guard)))
        if isinstance(node, Many):
            return many_of(self._value(node.item, guard))
        matchers: list[Matcher] = []
        items = list(node.items)
        while items:
            run: list[Node] = []
            while items and isinstance(items[0], Option):
                run.append(items.pop(0).item)  # type: ignore[union-attr]  # it is an Option
            if run:
                matchers.append(options_of(arms_of(run, lambda item: self._value(item, guard)), values=True))
            elif items:
                matchers.append(self._value(items.pop(0), guard))
        return in_a_row(matchers)
