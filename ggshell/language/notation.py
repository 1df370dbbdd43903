"""The manual's notation: a syntax line as a tree. pyparsing reads the notation, and is loaded at the first line."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ggshell.errors import StatementError
from ggshell.language.pages import argument

if TYPE_CHECKING:
    import pyparsing as pp

_WORD = r"[A-Z@#_][A-Z0-9_@#$]*(?:\[[A-Z0-9_]+\])?(?![a-z])"
_SLOT = r"[a-z][a-z0-9_-]*"


class Word(NamedTuple):
    """A keyword; ``least`` is how many of its letters must be typed (``EXT[RACT]``: 3)."""

    text: str
    least: int


class Slot(NamedTuple):
    """A placeholder; its name decides which values are valid."""

    name: str


class Symbol(NamedTuple):
    """Punctuation that is typed literally."""

    text: str


class Series(NamedTuple):
    """Items in a row. ``commas``: for each item, whether the notation has a comma before it."""

    items: tuple[Node, ...]
    commas: tuple[bool, ...]


class Option(NamedTuple):
    """An item that can be left out."""

    item: Node


class Alternatives(NamedTuple):
    """One of several alternatives."""

    arms: tuple[Node, ...]


class Many(NamedTuple):
    """One or more of an item, separated by commas."""

    item: Node


Leaf: TypeAlias = Word | Slot | Symbol
Node: TypeAlias = "Word | Slot | Symbol | Series | Option | Alternatives | Many"


class Line(NamedTuple):
    """One syntax line: one action.

    ``key``: its fixed words, both those at the beginning and those that follow a placeholder without a comma
    (``SEND EXTRACT group_name STATUS`` has the key SEND EXTRACT STATUS).
    """

    key: str
    body: Series
    text: str
    page: str


def keywords(node: Node) -> list[Word]:
    """Every keyword of a tree, in order."""
    if isinstance(node, Word):
        return [node]
    if isinstance(node, Series):
        return [word for item in node.items for word in keywords(item)]
    if isinstance(node, Alternatives):
        return [word for arm in node.arms for word in keywords(arm)]
    if isinstance(node, Option | Many):
        return keywords(node.item)
    return []


def spellings(word: Word) -> tuple[str, ...]:
    """The valid forms of a keyword, in upper case, the full one first."""
    return tuple(word.text[:size] for size in range(len(word.text), word.least - 1, -1))


def first_leaves(node: Node) -> tuple[Leaf, ...]:
    """The leaves that a node can begin with."""
    if isinstance(node, Word | Slot | Symbol):
        return (node,)
    if isinstance(node, Alternatives):
        return tuple(dict.fromkeys(leaf for arm in node.arms for leaf in first_leaves(arm)))
    if isinstance(node, Option | Many):
        return first_leaves(node.item)
    found: list[Leaf] = []
    for item in node.items:
        found += first_leaves(item)
        if not isinstance(item, Option):
            break
    return tuple(dict.fromkeys(found))


def argument_names(line: Line) -> frozenset[str]:
    """The names of the arguments that a statement of this line can pass to its handler."""
    return frozenset(_names(line.body, frozenset(line.key.split()), top=True))


def _names(node: Node, fixed: frozenset[str], *, top: bool) -> list[str]:
    if isinstance(node, Slot):
        return [node.name]
    if isinstance(node, Word):
        return [] if top and node.text in fixed else [python_name(node.text)]
    if isinstance(node, Symbol):
        return ["force"] if node.text == "!" else []
    if isinstance(node, Option | Many):
        return _names(node.item, frozenset(), top=False)
    if isinstance(node, Alternatives):
        return [name for arm in node.arms for name in _names(arm, frozenset(), top=False)]
    return _sequence_names(node, fixed, top=top)


def _sequence_names(node: Series, fixed: frozenset[str], *, top: bool) -> list[str]:
    if not top and node.items and isinstance(node.items[0], Word):
        return [python_name(node.items[0].text)]
    names: list[str] = []
    items = list(node.items)
    while items:
        item = items.pop(0)
        if isinstance(item, Word) and (not top or item.text not in fixed):
            names.append(python_name(item.text))
            if items and not isinstance(items[0], Option | Word):
                items.pop(0)
            continue
        names += _names(item, fixed, top=top)
    return names


def python_name(text: str) -> str:
    """A keyword or placeholder as a Python name."""
    return argument(text)


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
    return items[0] if len(items) == 1 and not commas[0] else Series(tuple(items), tuple(commas))


@cache
def _grammar() -> pp.ParserElement:
    import pyparsing as pp

    node = pp.Forward()
    word = pp.Regex(_WORD).set_parse_action(_word)
    slot = pp.Regex(_SLOT).set_parse_action(lambda tokens: Slot(tokens[0].replace("-", "_")))
    symbol = pp.one_of("( ) = ! :").set_parse_action(lambda tokens: Symbol(tokens[0]))
    more = (pp.Literal("[") + pp.Opt(",") + "..." + "]").set_parse_action(lambda: "...")
    sequence = pp.OneOrMore(more | node | pp.Literal(","))
    row = sequence.copy().set_parse_action(_sequence)
    arms = pp.DelimitedList(row, delim="|")
    option = (pp.Suppress("[") - arms - pp.Suppress("]")).set_parse_action(
        lambda tokens: Option(tokens[0] if len(tokens) == 1 else Alternatives(tuple(tokens)))
    )
    choice = (pp.Suppress("{") - arms - pp.Suppress("}")).set_parse_action(lambda tokens: Alternatives(tuple(tokens)))
    node <<= word | slot | symbol | option | choice
    return pp.StringStart() + row + pp.StringEnd()


def compile_line(text: str, page: str) -> Line:
    """The tree of one syntax line. Raises StatementError with the column if the notation is not valid."""
    from pyparsing import ParseBaseException

    try:
        body = _grammar().parse_string(text)[0]
    except ParseBaseException as error:
        raise StatementError(
            f"the syntax line is not in the manual's notation: {error.msg}",
            where=page,
            column=error.column,
            source=text,
        ) from error
    return line_of(body, text, page)


def line_of(body: Node, text: str, page: str) -> Line:
    """The line with this tree."""
    whole = body if isinstance(body, Series) else Series((body,), (False,))
    return Line(_key(whole), whole, text, page)


def _key(body: Series) -> str:
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
