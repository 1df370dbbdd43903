"""The manual's notation, read by a pyparsing grammar of grammars: a syntax line to its tree."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pyparsing as pp

from ggshell.errors import StatementError
from ggshell.syntax.tree import Choice, Line, Many, Node, Option, Sequence, Slot, Symbol, Word

_WORD = r"[A-Z@#_][A-Z0-9_@#$]*(?:\[[A-Z0-9_]+\])?(?![a-z])"
_SLOT = r"[a-z][a-z0-9_-]*"


def _word(tokens: Any) -> Word:
    text = tokens[0]
    least = text.index("[") if "[" in text else len(text)
    return Word(text.replace("[", "").replace("]", ""), least)


def _sequence(tokens: Any) -> Node:
    items: list[Node] = []
    commas: list[bool] = []
    comma = False
    for part in tokens:
        if part == ",":
            comma = True
        elif part == "...":
            items[-1] = Many(items[-1])
        else:
            items.append(part)
            commas.append(comma)
            comma = False
    return items[0] if len(items) == 1 and not commas[0] else Sequence(tuple(items), tuple(commas))


@cache
def _grammar() -> pp.ParserElement:
    node = pp.Forward()
    word = pp.Regex(_WORD).set_parse_action(_word)
    slot = pp.Regex(_SLOT).set_parse_action(lambda tokens: Slot(tokens[0].replace("-", "_")))
    symbol = pp.one_of("( ) = ! :").set_parse_action(lambda tokens: Symbol(tokens[0]))
    more = (pp.Literal("[") + pp.Opt(",") + "..." + "]").set_parse_action(lambda: "...")
    sequence = pp.OneOrMore(more | node | pp.Literal(","))
    row = sequence.copy().set_parse_action(_sequence)
    arms = pp.DelimitedList(row, delim="|")
    option = (pp.Suppress("[") - arms - pp.Suppress("]")).set_parse_action(
        lambda tokens: Option(tokens[0] if len(tokens) == 1 else Choice(tuple(tokens)))
    )
    choice = (pp.Suppress("{") - arms - pp.Suppress("}")).set_parse_action(lambda tokens: Choice(tuple(tokens)))
    node <<= word | slot | symbol | option | choice
    return pp.StringStart() + row + pp.StringEnd()


def compile_line(text: str, page: str) -> Line:
    """The tree of one syntax line.  Raises StatementError with the place when the notation is wrong."""
    try:
        body = _grammar().parse_string(text)[0]
    except pp.ParseBaseException as error:
        raise StatementError(
            f"the syntax line is not in the manual's notation: {error.msg}",
            where=page,
            column=error.column,
            source=text,
        ) from error
    if not isinstance(body, Sequence):
        body = Sequence((body,), (False,))
    return Line(_key(body), body, text, page)


def _key(body: Sequence) -> str:
    words: list[str] = []
    leading = True
    for item, comma in zip(body.items, body.commas, strict=True):
        if isinstance(item, Word) and not comma:
            words.append(item.text)
        elif isinstance(item, Slot):
            leading = False
        elif leading or comma:
            break
    return " ".join(words)


def literal_words(text: str) -> list[str] | None:
    """A syntax line of fixed words alone, without pyparsing; None when there is more in it."""
    return text.split() if re.fullmatch(r"[A-Z@ ]+", text) else None
