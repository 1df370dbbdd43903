"""What a syntax line of the manual says, as a tree that the parser, completion, help and the checks all read."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ggshell.syntax.pages import argument


class Word(NamedTuple):
    """A keyword; ``least`` is how many of its letters must be typed (``EXT[RACT]``: 3)."""

    text: str
    least: int


class Slot(NamedTuple):
    """A placeholder; its name decides what may stand there."""

    name: str


class Symbol(NamedTuple):
    """Punctuation that is typed as it is."""

    text: str


class Sequence(NamedTuple):
    """Things in a row.  ``commas``: for each item, whether the notation has a comma before it."""

    items: tuple[Node, ...]
    commas: tuple[bool, ...]


class Option(NamedTuple):
    """Something that may be left out."""

    item: Node


class Choice(NamedTuple):
    """One of several."""

    arms: tuple[Node, ...]


class Many(NamedTuple):
    """One or more, with commas between."""

    item: Node


Node: TypeAlias = "Word | Slot | Symbol | Sequence | Option | Choice | Many"


class Line(NamedTuple):
    """One syntax line: one action.

    ``key``: its fixed words, those at its begin and those that follow a placeholder without a comma
    (``SEND EXTRACT group_name STATUS`` has the key SEND EXTRACT STATUS).
    """

    key: str
    body: Sequence
    text: str
    page: str


def keywords(node: Node) -> list[Word]:
    """Every keyword of a tree, in order."""
    if isinstance(node, Word):
        return [node]
    if isinstance(node, Sequence):
        return [word for item in node.items for word in keywords(item)]
    if isinstance(node, Choice):
        return [word for arm in node.arms for word in keywords(arm)]
    if isinstance(node, Option | Many):
        return keywords(node.item)
    return []


def spellings(word: Word) -> tuple[str, ...]:
    """The forms of a keyword that may be typed, in upper case, the whole one first."""
    return tuple(word.text[:size] for size in range(len(word.text), word.least - 1, -1))


def first_leaves(node: Node) -> tuple[Word | Slot | Symbol, ...]:
    """What a node may begin with."""
    if isinstance(node, Word | Slot | Symbol):
        return (node,)
    if isinstance(node, Choice):
        return tuple(dict.fromkeys(leaf for arm in node.arms for leaf in first_leaves(arm)))
    if isinstance(node, Option | Many):
        return first_leaves(node.item)
    found: list[Word | Slot | Symbol] = []
    for item in node.items:
        found += first_leaves(item)
        if not isinstance(item, Option):
            break
    return tuple(dict.fromkeys(found))


def argument_names(line: Line) -> frozenset[str]:
    """The names of the values that a statement of this line may give its handler."""
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
    if isinstance(node, Choice):
        return [name for arm in node.arms for name in _names(arm, frozenset(), top=False)]
    return _sequence_names(node, fixed, top=top)


def _sequence_names(node: Sequence, fixed: frozenset[str], *, top: bool) -> list[str]:
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
