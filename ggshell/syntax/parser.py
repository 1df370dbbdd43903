"""Trees to pyparsing parsers.

Commas between options are white space, as the manuals' own examples leave them out; neighbouring options come in any order,
each once; a keyword beats a value, and after an option's keyword its value must follow, so that errors point at the spot.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pyparsing as pp

from ggshell.syntax.slots import slot_type
from ggshell.syntax.tree import Choice, Line, Many, Node, Option, Sequence, Slot, Symbol, Word, keywords, python_name

_BLANK = " \t\r\n,"


class Pair(NamedTuple):
    """A value with the name that it has for the handler, and where it stood."""

    name: str
    value: Any
    place: int


class Value(NamedTuple):
    """A value without a name of its own: part of an option's."""

    value: Any
    slot: str
    place: int


def word_pattern(word: Word) -> str:
    """A keyword and its abbreviations, any case, not followed by more letters."""
    longest = re.escape(word.text)
    if word.least == len(word.text):
        return rf"(?i:{longest})(?![A-Za-z0-9_*?])"
    forms = "|".join(re.escape(word.text[:size]) for size in range(len(word.text), word.least - 1, -1))
    return rf"(?i:{forms})(?![A-Za-z0-9_*?])"


class LineParser:
    """The parser of one syntax line."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._fixed = line.key.split()
        words = keywords(line.body)
        self._words = "|".join(word_pattern(word) for word in words if word.text not in self._fixed)
        self._parser = pp.StringStart() + self._top(line.body) + pp.StringEnd().set_whitespace_chars(_BLANK + ";")

    def parse(self, text: str) -> dict[str, Any]:
        """The arguments of a statement.  Raises pp.ParseBaseException with the place."""
        arguments: dict[str, Any] = {}
        for item in self._parser.parse_string(text):
            if not isinstance(item, Pair):
                continue
            if item.name in arguments:
                raise pp.ParseException(text, item.place, f"{item.name.upper()} stands twice")
            arguments[item.name] = item.value
        return arguments

    def _element(self, element: pp.ParserElement) -> pp.ParserElement:
        return element.set_whitespace_chars(_BLANK)

    def _word(self, word: Word) -> pp.ParserElement:
        return self._element(pp.Regex(word_pattern(word))).set_name(word.text)

    def _slot(self, slot: Slot, *, guarded: bool) -> pp.ParserElement:
        kind = slot_type(slot.name)
        guard = f"(?!{self._words})" if guarded and self._words else ""
        element = self._element(pp.Regex(f"{guard}(?:{kind.pattern})")).set_name(kind.called)

        def take(_: str, place: int, tokens: Any) -> Value:
            return Value(kind.convert(tokens[0]), slot.name, place)

        return element.set_parse_action(take)

    def _top(self, body: Sequence) -> pp.ParserElement:
        """The line itself: fixed words give no value, placeholders are arguments by their own names."""
        parts: list[pp.ParserElement] = []
        fixed = list(self._fixed)
        number, items = 0, body.items
        while number < len(items):
            item = items[number]
            if isinstance(item, Word) and fixed and item.text == fixed[0] and not body.commas[number]:
                fixed.pop(0)
                parts.append(pp.Suppress(self._word(item)))
            elif isinstance(item, Word):
                rest: list[Node] = []
                while number + 1 < len(items) and not isinstance(items[number + 1], Option | Word):
                    number += 1
                    rest.append(items[number])
                parts.append(self._named(item, rest))
            elif isinstance(item, Option):
                run = [item.item]
                while number + 1 < len(items) and isinstance(items[number + 1], Option):
                    number += 1
                    following = items[number]
                    run.append(following.item if isinstance(following, Option) else following)
                parts.append(self._run(run))
            else:
                parts.append(self._argument(item, guarded=False))
            number += 1
        return pp.And(parts)

    def _run(self, items: list[Node]) -> pp.ParserElement:
        """Neighbouring options: any of them, in any order."""
        return pp.ZeroOrMore(pp.MatchFirst([self._argument(item, guarded=True) for item in items]))

    def _argument(self, node: Node, *, guarded: bool) -> pp.ParserElement:
        """Something that gives named values."""
        if isinstance(node, Word):
            return self._named(node, [])
        if isinstance(node, Sequence) and node.items and isinstance(node.items[0], Word):
            return self._named(node.items[0], list(node.items[1:]))
        if isinstance(node, Sequence):
            return pp.And([self._argument(item, guarded=guarded) for item in node.items])
        if isinstance(node, Choice):
            return pp.MatchFirst([self._argument(arm, guarded=True) for arm in node.arms])
        if isinstance(node, Option):
            return pp.Opt(self._argument(node.item, guarded=True))
        if isinstance(node, Symbol):
            name = "force" if node.text == "!" else ""
            return self._element(pp.Literal(node.text)).set_parse_action(
                lambda _, place, __: Pair(name, True, place) if name else []
            )
        many = isinstance(node, Many)
        element = self._value(node, guarded=guarded)

        def name_it(_: str, place: int, tokens: Any) -> Pair:
            values = [token for token in tokens if isinstance(token, Value)]
            return Pair(python_name(values[0].slot), tuple(v.value for v in values) if many else values[0].value, place)

        return pp.Group(element, aslist=True).set_parse_action(lambda s, p, t: name_it(s, p, t[0]))

    def _named(self, word: Word, rest: list[Node]) -> pp.ParserElement:
        """An option: its keyword names it, what follows is its value (True when nothing does)."""
        many = len(rest) == 1 and isinstance(rest[0], Many)
        head = pp.Suppress(self._word(word))
        element = head - pp.And([self._value(item, guarded=True) for item in rest]) if rest else head

        def name_it(_: str, place: int, tokens: Any) -> Pair:
            values = [token.value for token in tokens[0] if isinstance(token, Value)]
            value: Any = tuple(values) if many or len(values) > 1 else values[0] if values else True
            return Pair(python_name(word.text), value, place)

        return pp.Group(element, aslist=True).set_parse_action(name_it)

    def _value(self, node: Node, *, guarded: bool) -> pp.ParserElement:
        """Something within an option's value."""
        if isinstance(node, Slot):
            return self._slot(node, guarded=guarded)
        if isinstance(node, Word):
            return self._word(node).set_parse_action(
                lambda _, place, __: Value(node.text, python_name(node.text), place)
            )
        if isinstance(node, Symbol):
            return pp.Suppress(self._element(pp.Literal(node.text)))
        if isinstance(node, Option):
            return pp.Opt(self._value(node.item, guarded=True))
        if isinstance(node, Choice):
            return pp.MatchFirst([self._value(arm, guarded=guarded) for arm in node.arms])
        if isinstance(node, Many):
            return pp.OneOrMore(self._value(node.item, guarded=True))
        return pp.And([self._value(item, guarded=guarded) for item in node.items])
