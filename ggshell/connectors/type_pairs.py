"""How values are converted from the types of one kind of database to those of another: the table from which
docs/types.md is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple


class Grade(StrEnum):
    """How a value arrives."""

    EXACT = "exact"
    LIMITED = "exact within limits"
    NULLED = "exact, else NULL"
    MAPPED = "mapped text"


class TypePair(NamedTuple):
    """A source type and the target type to use for it.

    ``limits``: the limits, or the mapped form. ``values``: examples of the trail's text, each with the text that is then in the
    target. ``refused``: values that are refused, or become NULL.
    """

    source: str
    target: str
    grade: Grade
    limits: str = ""
    values: Mapping[str, str] = {}
    refused: Sequence[str] = ()


class KindPairs(NamedTuple):
    """The pairs from one kind of database to another. ``source``, ``target``: their names."""

    source: str
    target: str
    pairs: tuple[TypePair, ...]


def exact(source: str, target: str, *values: str) -> TypePair:
    """A pair whose values arrive as they are; ``values``: examples."""
    return TypePair(source, target, Grade.EXACT, values={value: value for value in values})


_HEAD: Final = """# Types

How values are converted between kinds of databases. `scripts/types-page` writes this page from the code, and tests deliver
examples of each row. The initial load and the log have the same text for each value.

- *exact*: every value arrives unchanged
- *exact within limits*: a value beyond the limits is refused with a message that names the column
- *exact, else NULL*: a value beyond the limits is NULL in the current table of a lake; the log of the lake has its text
- *mapped text*: the column has the text that the table describes
"""


def page(tables: Sequence[KindPairs]) -> str:
    """Return docs/types.md."""
    parts = [_HEAD]
    for table in tables:
        parts.append(f"\n## From {table.source} to {table.target}\n\n| source | target | values | limits or form |\n")
        parts.append("| --- | --- | --- | --- |\n")
        parts += [f"| {pair.source} | {pair.target} | {pair.grade} | {pair.limits} |\n" for pair in table.pairs]
    return "".join(parts)
