"""The queries that a comparison runs on one side: sums over key ranges and buckets, bounds of ranges, and rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from ggshell.pipeline.compare.drill import RANGE_ROWS, Key, KeyRange, RangeSum, Values, keys_at_once


class SideConnection(Protocol):
    """A connection of one side."""

    def ask(self, query: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
        """Run a query. Raises DatabaseError."""
        ...

    def cancel(self) -> None:
        """Cancel the running query, from another thread."""
        ...


class QueryRows(Protocol):
    """The result of a query."""

    @property
    def rows(self) -> list[tuple[Any, ...]]: ...


class QueryEngine(Protocol):
    """What computes over the tables of a kind that has no server: the engines of queries."""

    def ask(
        self,
        query: str,
        sql: str,
        views: Sequence[Any],
        on_progress: Callable[[str], None] | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> QueryRows:
        """Run a query over views until ``stopped`` is true. ``query``: its name in lists. Raises GgsError."""
        ...


class SideExpressions(NamedTuple):
    """What is compared of a table, as SQL; percent signs in it are doubled.

    ``texts``: the compared values as texts; ``row``: the expression that orders rows with equal keys; ``sums``: the number of
    rows and the sum of their hashes. ``key``: the expressions that order rows, for a table without a key (not ``keyed``) the
    hash of the row; ``key_texts``: their texts; ``marks``: the parameters, texts, to compare with ``key``; ``bucketed``: the
    hash that assigns a key to a bucket.
    """

    table: str
    texts: Sequence[str]
    row: str
    sums: str
    key: Sequence[str]
    key_texts: Sequence[str]
    marks: str
    bucketed: str
    keyed: bool


class SqlTableSide:
    """A table that is compared, on one side. ``range_rows``: as ``TableSide`` has it."""

    def __init__(self, connection: SideConnection, sql: SideExpressions, range_rows: int = RANGE_ROWS) -> None:
        self._connection = connection
        self._sql = sql
        self.range_rows = range_rows

    def cancel(self) -> None:
        self._connection.cancel()

    def without_key(self) -> int:
        """The number of rows with a NULL in a key column. None can exist if the key is the table's own."""
        if not self._sql.keyed:
            return 0
        missing = " OR ".join(f"{each} IS NULL" for each in self._sql.key)
        rows = self._connection.ask(f"SELECT COUNT(*) FROM {self._sql.table} WHERE {missing}", ())
        return int(rows[0][0])

    def sum(self, keys: KeyRange) -> RangeSum:
        """The number of rows in a range, and the sum of their hashes."""
        where, values = self._where(keys)
        ((rows, total),) = self._connection.ask(f"SELECT {self._sql.sums} FROM {self._sql.table}{where}", values)
        return RangeSum(int(rows), (str(total),))

    def sums(self, keys: KeyRange, buckets: int) -> dict[int, RangeSum]:
        """The number of rows and the sums per bucket of keys."""
        where, values = self._where(keys)
        query = f"SELECT {self._bucket(buckets)} AS bucket, {self._sql.sums} FROM {self._sql.table}{where} GROUP BY 1"
        found = self._connection.ask(query, values)
        return {int(bucket): RangeSum(int(rows), (str(total),)) for bucket, rows, total in found}

    def bounds(self, keys: KeyRange, step: int) -> list[Key]:
        """Every ``step``-th key of a range."""
        where, values = self._where(keys)
        texts = ", ".join(f"{each} AS k{place}" for place, each in enumerate(self._sql.key_texts))
        names = ", ".join(f"k{place}" for place in range(len(self._sql.key)))
        order = ", ".join(self._sql.key)
        numbered = f"SELECT {texts}, ROW_NUMBER() OVER (ORDER BY {order}) AS n FROM {self._sql.table}{where}"
        query = f"SELECT {names} FROM ({numbered}) t WHERE MOD(n, {step}) = 0 ORDER BY n"
        found = self._connection.ask(query, values)
        # Rows without a key may share a hash. A bound must appear only once and must not start an empty range.
        return [key for key in dict.fromkeys(tuple(map(str, row)) for row in found) if key != keys.low]

    def rows(self, keys: KeyRange, buckets: int, chosen: Sequence[int]) -> dict[Key, Values]:
        """The rows of some buckets. From the second row with the same key on, a number is appended to the key."""
        where, values = self._where(keys)
        numbers = ", ".join(map(str, map(int, chosen)))
        within = f"{self._bucket(buckets)} IN ({numbers})" if chosen else "1 = 0"
        return self._rows(f"{where} AND {within}" if where else f" WHERE {within}", values)

    def rows_of(self, keys: Iterable[Key]) -> dict[Key, Values]:
        """The rows with some keys."""
        wanted = list(dict.fromkeys(key[: len(self._sql.key)] for key in keys))
        step = keys_at_once(self.range_rows)
        return {
            key: row
            for first in range(0, len(wanted), step)
            for key, row in self._rows_of(wanted[first : first + step]).items()
        }

    def _rows_of(self, wanted: Sequence[Key]) -> dict[Key, Values]:
        marks = ", ".join(f"({self._sql.marks})" for _ in wanted)
        where = f" WHERE ({', '.join(self._sql.key)}) IN ({marks})"
        return self._rows(where, [text for key in wanted for text in key])

    def _rows(self, where: str, values: Sequence[str]) -> dict[Key, Values]:
        sql = self._sql
        order = ", ".join([*sql.key, *([] if sql.keyed else [sql.row])])
        found = self._connection.ask(
            f"SELECT {', '.join([*sql.key_texts, *sql.texts])} FROM {sql.table}{where} ORDER BY {order}", values
        )
        width, seen = len(sql.key), Counter[Key]()
        rows: dict[Key, Values] = {}
        for row in found:
            key = tuple(map(str, row[:width]))
            rows[key if sql.keyed and not seen[key] else (*key, str(seen[key]))] = tuple(row[width:])
            seen[key] += 1
        return rows

    def _where(self, keys: KeyRange) -> tuple[str, list[str]]:
        parts, values = [], list[str]()
        for bound, sign in ((keys.low, ">="), (keys.high, "<")):
            if bound is not None:
                parts.append(f"({', '.join(self._sql.key)}) {sign} ({self._sql.marks})")
                values += bound
        return (" WHERE " + " AND ".join(parts) if parts else ""), values

    def _bucket(self, buckets: int) -> str:
        return f"MOD({self._sql.bucketed}, {buckets})"
