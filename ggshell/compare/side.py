"""What a comparison asks of one side of a table; ``databases`` implements it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

Key = tuple[str, ...]
"""The texts of the columns that identify a row."""
Values = tuple[str | None, ...]
"""The texts of the compared columns, in the source's order."""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Keys from ``low`` on (None: from the least) up to but without ``high`` (None: to the greatest)."""

    low: Key | None = None
    high: Key | None = None


class RangeSum(NamedTuple):
    """How many rows a range has, and what their contents add up to, in whatever order."""

    rows: int
    sums: tuple[str, ...]


class TableSide(Protocol):
    """A table in one database.  Every method sees what is committed when it is called."""

    def sum(self, keys: KeyRange) -> RangeSum:
        """The sum over a range, computed in the database."""
        ...

    def bounds(self, keys: KeyRange, step: int) -> list[Key]:
        """Every ``step``-th key of a range, in order."""
        ...

    def rows(self, keys: KeyRange) -> Mapping[Key, Values]:
        """The rows of a range, in key order."""
        ...

    def rows_of(self, keys: Iterable[Key]) -> Mapping[Key, Values]:
        """Those rows of some keys that there are."""
        ...
