"""Compares a table on two sides: finds the rows that differ, with checksums over key ranges and over hash buckets.

Tables that are equal are read once, with one query on each side at the same time. Otherwise the table is divided into ranges
of keys, and an equal range is read once more. If a range differs, one query returns the sums of all its buckets, to which a
hash assigns each key, and another query returns the few rows of the buckets that differ. Differences that are spread over a
table therefore cost little more than the same number next to each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple, Protocol, TypeVar

RANGE_ROWS: Final = 20_000
"""The rows of a range, if the sides find it by an index."""
BUCKETS: Final = 1024
"""The number of buckets of such a range: each differing row is transferred with about 20 others."""
LARGEST: Final = 4
"""A range with more than this many times the planned rows is split, to limit the rows transferred at once."""
TRANSFERRED: Final = 2 * LARGEST * RANGE_ROWS
"""The most rows of both sides that are transferred at once."""
_T = TypeVar("_T")


class DifferenceKind(StrEnum):
    """The kind of difference between two rows."""

    MISSING = "missing"
    EXTRA = "extra"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that differs between the two sides; None if it does not exist there.

    ``in_flight``: the source kept changing the row while it was compared, so the result is not conclusive.
    """

    key: Key
    source: Values | None
    target: Values | None
    in_flight: bool = False

    @property
    def kind(self) -> DifferenceKind:
        if self.target is None:
            return DifferenceKind.MISSING
        return DifferenceKind.EXTRA if self.source is None else DifferenceKind.CHANGED


LOOK_SECONDS: Final = 0.5
"""How long Ctrl-C may stay unnoticed: Python misses a signal that arrives just before a thread begins to wait."""


class Pair:
    """The two sides of a table, which are queried in parallel."""

    def __init__(self, source: TableSide, target: TableSide) -> None:
        self.source, self.target = source, target
        self._pool = ThreadPoolExecutor(2, "compare")

    @property
    def range_rows(self) -> int:
        """The rows of a range, for the side that needs larger ones."""
        return max(self.source.range_rows, self.target.range_rows)

    def both(self, ask: Callable[[TableSide], _T]) -> tuple[_T, _T]:
        """Run the same query on source and target and return both results. Ctrl-C cancels both queries."""
        sides = self.source, self.target
        try:
            answers = [self._pool.submit(ask, side) for side in sides]
            while wait(answers, LOOK_SECONDS).not_done:
                continue
            return answers[0].result(), answers[1].result()
        except KeyboardInterrupt:
            for side in sides:
                side.cancel()
            raise

    def close(self) -> None:
        self._pool.shutdown()


class Walked(NamedTuple):
    """A compared range: its number of rows on each side, and its differences."""

    source_rows: int
    target_rows: int
    differences: tuple[Difference, ...]


def walk(
    pair: Pair,
    range_rows: int | None = None,
    buckets: int | None = None,
    *,
    divided: Callable[[int], None] = lambda _: None,
) -> Iterator[Walked]:
    """Compare the whole table at once and, if it differs, range by range in key order.

    ``range_rows``, ``buckets``: the size of a range, by default as the sides ask for. ``divided`` is called when the table is
    divided, with the approximate number of rows of the source.
    """
    range_rows = range_rows or pair.range_rows
    buckets = buckets or BUCKETS * max(1, range_rows // RANGE_ROWS)
    source, target = pair.both(lambda side: side.sum(KeyRange()))
    if source == target:
        yield Walked(source.rows, target.rows, ())
        return
    bounds = pair.source.bounds(KeyRange(), range_rows)
    divided(len(bounds) * range_rows + range_rows // 2)  # the last range is half full on average
    differed = False
    for low, high in pairwise([None, *bounds, None]):
        keys = KeyRange(low, high)
        if not differed:
            sums = pair.both(lambda side, keys=keys: side.sum(keys))  # type: ignore[misc]
            differed = sums[0] != sums[1]
            if not differed:
                yield Walked(sums[0].rows, sums[1].rows, ())
                continue
        # After a range that differs, the next one is likely to differ too: query its buckets immediately.
        found = list(_buckets(pair, keys, range_rows, buckets))
        differed = any(each.differences for each in found)
        yield from found


def _buckets(pair: Pair, keys: KeyRange, range_rows: int, buckets: int) -> Iterator[Walked]:
    """Compare a range by its buckets."""
    sums = pair.both(lambda side: side.sums(keys, buckets))
    rows = [sum(each.rows for each in side.values()) for side in sums]
    if max(rows) > LARGEST * range_rows:
        fuller = pair.source if rows[0] >= rows[1] else pair.target
        bounds = fuller.bounds(keys, range_rows)
        if bounds:
            for low, high in pairwise([keys.low, *bounds, keys.high]):
                yield from _buckets(pair, KeyRange(low, high), range_rows, buckets)
            return
    chosen = [bucket for bucket in {**sums[0], **sums[1]} if sums[0].get(bucket) != sums[1].get(bucket)]
    if not chosen:
        yield Walked(rows[0], rows[1], ())
        return
    counted = rows[0], rows[1]
    for part in _portions(chosen, *sums):
        found = pair.both(lambda side, part=part: side.rows(keys, buckets, part))  # type: ignore[misc]
        yield Walked(*counted, tuple(differences(*found)))
        counted = 0, 0


def _portions(chosen: Sequence[int], *sums: Mapping[int, RangeSum]) -> Iterator[list[int]]:
    """The buckets to transfer at once, which have at most ``TRANSFERRED`` rows on both sides, or one bucket."""
    portion, rows = list[int](), 0
    for bucket in chosen:
        more = sum(side[bucket].rows for side in sums if bucket in side)
        if portion and rows + more > TRANSFERRED:
            yield portion
            portion, rows = [], 0
        portion.append(bucket)
        rows += more
    yield portion


def differences(source: Mapping[Key, Values], target: Mapping[Key, Values]) -> list[Difference]:
    """Return the rows that differ between two sets."""
    keys = dict.fromkeys([*source, *target])
    found = (Difference(key, source.get(key), target.get(key)) for key in keys)
    return [each for each in found if each.source != each.target]


# Real differences and changes in flight, which make a row differ for the duration of the lag.
#
# Each row is read again after the lag: 1. If it is the same on both sides, it was in flight. 2. If the source has not
# changed it, so that the target had time to catch up and still differs, it is a difference. 3. Otherwise the source
# has changed it in the meantime, and it is read again after the lag. A row that keeps changing is reported as in
# flight.


def keys_at_once(range_rows: int) -> int:
    """How many rows are read again at once: more where each query reads the whole table, as the size of its ranges tells."""
    return max(1000, range_rows // 100)


def confirmed(
    pair: Pair, found: Sequence[Difference], lag: float, wait: Callable[[float], bool], rounds: int = 5
) -> list[Difference]:
    """Return the real differences, and the rows that kept changing.

    ``lag`` is in seconds. ``wait`` pauses for that time and returns true to end the check; the rest then counts as in
    flight.
    """
    real: list[Difference] = []
    open_ = list(found)
    for _ in range(rounds):
        if not open_ or wait(lag):
            break
        again = _compare_again(pair, open_)
        known = {each.key: each for each in open_}
        real += [each for each in again if each.source == known[each.key].source]
        open_ = [each for each in again if each.source != known[each.key].source]
    return [*real, *(replace(each, in_flight=True) for each in open_)]


def _compare_again(pair: Pair, found: Sequence[Difference]) -> list[Difference]:
    """Return the rows that still differ, as they are now."""
    # Read the source before the target, so that a row that arrives in between is not a difference.
    again: list[Difference] = []
    batch = keys_at_once(pair.range_rows)
    for first in range(0, len(found), batch):
        keys = [each.key for each in found[first : first + batch]]
        source = pair.source.rows_of(keys)
        target = pair.target.rows_of(keys)
        wanted = set(keys)
        again += [each for each in differences(source, target) if each.key in wanted]
    return again


Key = tuple[str, ...]
"""The columns that identify a row, as text."""
Values = tuple[str | None, ...]
"""The compared columns as text, in the source's order."""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Keys from ``low`` (None: from the lowest) up to but excluding ``high`` (None: to the highest)."""

    low: Key | None = None
    high: Key | None = None


class RangeSum(NamedTuple):
    """The number of rows of a range, and checksums of their contents that do not depend on the order."""

    rows: int
    sums: tuple[str, ...]


class TableSide(Protocol):
    """A table in one database. Each method reads what is committed when it is called."""

    @property
    def range_rows(self) -> int:
        """How many rows a range should have: more than ``RANGE_ROWS`` if each query reads the whole table."""
        ...

    def cancel(self) -> None:
        """Cancel the query that another thread has sent, because the comparison ends. Raises nothing."""
        ...

    def without_key(self) -> int:
        """The number of rows without a value in a key column."""
        ...

    def sum(self, keys: KeyRange) -> RangeSum:
        """The checksum of a range, computed in the database."""
        ...

    def sums(self, keys: KeyRange, buckets: int) -> Mapping[int, RangeSum]:
        """The checksum of each bucket of a range. A hash of the key assigns rows to buckets; empty ones are omitted."""
        ...

    def bounds(self, keys: KeyRange, step: int) -> list[Key]:
        """Every ``step``-th key of a range, in order."""
        ...

    def rows(self, keys: KeyRange, buckets: int, chosen: Sequence[int]) -> Mapping[Key, Values]:
        """The rows of a range in the given buckets."""
        ...

    def rows_of(self, keys: Iterable[Key]) -> Mapping[Key, Values]:
        """The rows with the given keys that exist."""
        ...
