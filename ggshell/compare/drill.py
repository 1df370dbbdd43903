"""From a whole table to the rows that differ: sums over key ranges, halved where they are not the same on both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple, TypeVar

from ggshell.compare.side import Key, KeyRange, RangeSum, TableSide, Values

RANGE_ROWS = 20_000
LEAF_ROWS = 500
FAN_OUT = 16
_T = TypeVar("_T")


class Kind(StrEnum):
    """How a row differs."""

    MISSING = "missing"
    EXTRA = "extra"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that is not the same on both sides; None where there is no such row.

    ``in_flight``: the source changed it again and again while it was looked at, so nothing is proven.
    """

    key: Key
    source: Values | None
    target: Values | None
    in_flight: bool = False

    @property
    def kind(self) -> Kind:
        if self.target is None:
            return Kind.MISSING
        return Kind.EXTRA if self.source is None else Kind.CHANGED


class Pair:
    """The two sides of a table, asked at the same time."""

    def __init__(self, source: TableSide, target: TableSide) -> None:
        self.source, self.target = source, target
        self._pool = ThreadPoolExecutor(2, "compare")

    def both(self, ask: Callable[[TableSide], _T]) -> tuple[_T, _T]:
        """The answers of source and target to one question."""
        answers = [self._pool.submit(ask, side) for side in (self.source, self.target)]
        return answers[0].result(), answers[1].result()

    def close(self) -> None:
        self._pool.shutdown()


class Walked(NamedTuple):
    """A range that was compared: its rows on either side, and what differs in it."""

    source_rows: int
    target_rows: int
    differences: tuple[Difference, ...]


def walk(pair: Pair, range_rows: int = RANGE_ROWS, leaf_rows: int = LEAF_ROWS) -> Iterator[Walked]:
    """The whole table, range by range in key order."""
    bounds = pair.source.bounds(KeyRange(), range_rows)
    for low, high in pairwise([None, *bounds, None]):
        keys = KeyRange(low, high)
        sums = pair.both(lambda side, keys=keys: side.sum(keys))  # type: ignore[misc]
        yield Walked(sums[0].rows, sums[1].rows, tuple(_differing(pair, keys, sums, leaf_rows)))


def _differing(pair: Pair, keys: KeyRange, sums: tuple[RangeSum, RangeSum], leaf_rows: int) -> Iterator[Difference]:
    if sums[0] == sums[1]:
        return
    most = max(sums, key=lambda each: each.rows).rows
    bounds: list[Key] = []
    if most > leaf_rows:
        fuller = pair.source if sums[0].rows >= sums[1].rows else pair.target
        bounds = fuller.bounds(keys, max(leaf_rows, most // FAN_OUT))
    if not bounds:
        yield from differences(*pair.both(lambda side: side.rows(keys)))
        return
    for low, high in pairwise([keys.low, *bounds, keys.high]):
        part = KeyRange(low, high)
        yield from _differing(pair, part, pair.both(lambda side, part=part: side.sum(part)), leaf_rows)  # type: ignore[misc]


def differences(source: Mapping[Key, Values], target: Mapping[Key, Values]) -> list[Difference]:
    """What is not the same in two sets of rows."""
    keys = dict.fromkeys([*source, *target])
    found = (Difference(key, source.get(key), target.get(key)) for key in keys)
    return [each for each in found if each.source != each.target]
