"""Comparison of tables in databases of different kinds: forms of values and sums that every kind computes alike.

Each value becomes a text by its family, which both sides agree on. A row is the list of these texts with their lengths, and its
hash the first 60 bits of the MD5 of that. Keys are ordered as texts by code point, integers as numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol

from ggshell.pipeline.compare.drill import Key, KeyRange, RangeSum, Values

HASH_DIGITS: Final = 15
"""The hexadecimal digits of a hash that are used. So it is a positive number of 64 bits."""
FLOAT_SCALE: Final = 30
FLOAT_LIMIT: Final = "9" * 35
"""Floating-point numbers are compared as decimal numbers with so many places, up to this size."""


class Family(StrEnum):
    """What the text of a value is like."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "float"
    TRUTH = "truth"
    BITS = "bits"
    BYTES = "bytes"
    DATE = "date"
    TIME = "time"
    DURATION = "duration"
    MOMENT = "moment"
    DOCUMENT = "document"
    TEXT = "text"


_NUMBERS: Final = (Family.TRUTH, Family.INTEGER, Family.DECIMAL, Family.FLOAT)
"""Each can be compared with the following ones."""


def common(mine: Family, theirs: Family) -> Family:
    """The family in which columns of two families are compared."""
    if mine is theirs:
        return mine
    pair = {mine, theirs}
    if pair <= {Family.TRUTH, Family.BITS, Family.INTEGER}:
        return Family.TRUTH if Family.TRUTH in pair else Family.INTEGER
    if pair == {Family.TEXT, Family.DOCUMENT}:
        return Family.DOCUMENT
    if pair <= set(_NUMBERS):
        return max(pair, key=_NUMBERS.index)
    if pair == {Family.TIME, Family.DURATION}:
        return Family.DURATION
    return Family.MOMENT if pair == {Family.DATE, Family.MOMENT} else Family.TEXT


class PortableColumn(NamedTuple):
    """A compared column: its name, the expression of its text, and its family."""

    name: str
    text: str
    family: Family


class Dialect(Protocol):
    """How a database writes what a comparison asks. Expressions are SQL; percent signs in them are doubled."""

    def ask(self, query: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
        """Run a query. Raises DatabaseError."""
        ...

    def cancel(self) -> None:
        """Cancel the running query, from another thread."""
        ...

    def row(self, texts: Sequence[str]) -> str:
        """The text of a row: each text with its length before it, and a mark for NULL."""
        ...

    def hash(self, text: str) -> str:
        """The hash of a text as an integer."""
        ...

    def total(self, number: str) -> str:
        """The sum of an integer as text; 0 without rows."""
        ...

    def ordered(self, column: PortableColumn) -> str:
        """The expression by which a key is ordered."""
        ...

    def mark(self, column: PortableColumn) -> str:
        """The parameter, a text, to compare with ``ordered``."""
        ...


_HASH: Final = PortableColumn("", "", Family.INTEGER)


class PortableSide:
    """A table that is compared with one of another kind. Without a key, rows are ordered by their hash."""

    def __init__(self, dialect: Dialect, table: str, columns: Sequence[PortableColumn], key: Sequence[str]) -> None:
        self._dialect = dialect
        self._table = table
        self._texts = [column.text for column in columns]
        by_name: Mapping[str, PortableColumn] = {column.name: column for column in columns}
        self._row = dialect.row(self._texts)
        self._hash = dialect.hash(self._row)
        self._keyed = bool(key)
        keys = [by_name[name] for name in key] or [_HASH]
        self._key = [dialect.ordered(column) for column in keys] if key else [self._hash]
        self._shown = [column.text for column in keys] if key else [self._hash]
        self._marks = ", ".join(map(dialect.mark, keys))
        self._bucketed = dialect.hash(dialect.row([column.text for column in keys])) if key else self._hash

    def cancel(self) -> None:
        self._dialect.cancel()

    def without_key(self) -> int:
        missing = " OR ".join(f"{each} IS NULL" for each in self._key)
        rows = self._dialect.ask(f"SELECT COUNT(*) FROM {self._table} WHERE {missing}", ()) if self._keyed else [(0,)]
        return int(rows[0][0])

    def sum(self, keys: KeyRange) -> RangeSum:
        where, values = self._where(keys)
        query = f"SELECT COUNT(*), {self._dialect.total(self._hash)} FROM {self._table}{where}"
        ((rows, total),) = self._dialect.ask(query, values)
        return RangeSum(int(rows), (str(total),))

    def sums(self, keys: KeyRange, buckets: int) -> dict[int, RangeSum]:
        where, values = self._where(keys)
        total = self._dialect.total(self._hash)
        query = f"SELECT {self._bucket(buckets)} AS bucket, COUNT(*), {total} FROM {self._table}{where} GROUP BY 1"
        found = self._dialect.ask(query, values)
        return {int(bucket): RangeSum(int(rows), (str(summed),)) for bucket, rows, summed in found}

    def bounds(self, keys: KeyRange, step: int) -> list[Key]:
        where, values = self._where(keys)
        texts = ", ".join(f"{each} AS k{place}" for place, each in enumerate(self._shown))
        names = ", ".join(f"k{place}" for place in range(len(self._key)))
        order = ", ".join(self._key)
        numbered = f"SELECT {texts}, ROW_NUMBER() OVER (ORDER BY {order}) AS n FROM {self._table}{where}"
        found = self._dialect.ask(f"SELECT {names} FROM ({numbered}) t WHERE MOD(n, {step}) = 0 ORDER BY n", values)
        bounds = dict.fromkeys(tuple(str(value) for value in row) for row in found)
        return [key for key in bounds if key != keys.low]

    def rows(self, keys: KeyRange, buckets: int, chosen: Sequence[int]) -> dict[Key, Values]:
        where, values = self._where(keys)
        numbers = ", ".join(map(str, map(int, chosen)))
        within = f"{self._bucket(buckets)} IN ({numbers})" if chosen else "1 = 0"
        return self._rows(f"{where} AND {within}" if where else f" WHERE {within}", values)

    def rows_of(self, keys: Iterable[Key]) -> dict[Key, Values]:
        wanted = list(dict.fromkeys(key[: len(self._key)] for key in keys))
        if not wanted:
            return {}
        marks = ", ".join(f"({self._marks})" for _ in wanted)
        return self._rows(f" WHERE ({', '.join(self._key)}) IN ({marks})", [text for key in wanted for text in key])

    def _rows(self, where: str, values: Sequence[str]) -> dict[Key, Values]:
        """Rows by their keys. From the second row with the same key on, a number is appended to the key."""
        found = self._dialect.ask(
            f"SELECT {', '.join([*self._shown, *self._texts])} FROM {self._table}{where} ORDER BY"
            f" {', '.join([*self._key, *([] if self._keyed else [self._row])])}",
            values,
        )
        width, seen = len(self._key), Counter[Key]()
        rows: dict[Key, Values] = {}
        for row in found:
            key = tuple(str(value) for value in row[:width])
            rows[key if self._keyed and not seen[key] else (*key, str(seen[key]))] = tuple(row[width:])
            seen[key] += 1
        return rows

    def _where(self, keys: KeyRange) -> tuple[str, list[str]]:
        parts, values = [], list[str]()
        for bound, sign in ((keys.low, ">="), (keys.high, "<")):
            if bound is not None:
                parts.append(f"({', '.join(self._key)}) {sign} ({self._marks})")
                values += bound
        return (" WHERE " + " AND ".join(parts) if parts else ""), values

    def _bucket(self, buckets: int) -> str:
        return f"MOD({self._bucketed}, {buckets})"
