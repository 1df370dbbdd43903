"""Generates sentences from the trees of the manual, with the leaf of each word, to compare parser and completion."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from ggshell.language.notation import Alternatives, Leaf, Line, Many, Node, Option, Series, Slot, Word, spellings
from ggshell.language.values import REST, SlotType, slot_type

VALUES = (
    "zz9",
    "shop.o",
    "5",
    "50",
    "(a = 1)",
    "2026-11-20 08:00:00",
    "0/15D6A28",
    "64MB",
    "20m",
    "'q'",
    "#m1",
    "@STRUP (a)",
    "05:30",
    "friday",
    "_option",
)


class Piece(NamedTuple):
    """A word of a sentence and its leaf in the tree."""

    text: str
    leaf: Leaf


@st.composite
def sentences(draw: DrawFn, line: Line) -> list[Piece]:
    """A statement of a syntax line, word by word; adjacent options are in any order.

    A text to the end of the line is the last piece: it would contain any further ones.
    """
    pieces = _made(draw, line.body)
    ends = [number for number, piece in enumerate(pieces, 1) if _takes_the_rest(piece.leaf)]
    return pieces[: ends[0]] if ends else pieces


def _takes_the_rest(leaf: Leaf) -> bool:
    return isinstance(leaf, Slot) and slot_type(leaf.name) is REST


def _made(draw: DrawFn, node: Node) -> list[Piece]:
    if isinstance(node, Word):
        form = draw(st.sampled_from(spellings(node)))
        return [Piece(draw(st.sampled_from([form, form.lower()])), node)]
    if isinstance(node, Slot):
        return [Piece(value_of(node.name), node)]
    if isinstance(node, Alternatives):
        return _made(draw, draw(st.sampled_from(node.arms)))
    if isinstance(node, Many):
        return _made(draw, node.item)
    if isinstance(node, Option):
        return _made(draw, node.item) if draw(st.booleans()) else []
    return _row(draw, node) if isinstance(node, Series) else [Piece(node.text, node)]


def _row(draw: DrawFn, node: Series) -> list[Piece]:
    pieces: list[Piece] = []
    run: list[Node] = []
    for item in [*node.items, None]:
        if isinstance(item, Option):
            run.append(item)
            continue
        for option in draw(st.permutations(run)) if run else ():
            pieces += _made(draw, option)
        run = []
        pieces += _made(draw, item) if item is not None else []
    return pieces


@cache
def value_of(name: str) -> str:
    """A value for a placeholder: the first that its type accepts."""
    kind = slot_type(name)
    return next(value for value in VALUES if kind.end(value, 0) == len(value) and _converts(kind, value))


def _converts(kind: SlotType, value: str) -> bool:
    try:
        kind.convert(value)
    except ValueError:
        return False
    return True
