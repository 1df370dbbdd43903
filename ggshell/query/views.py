"""The input of a query: named views over trails, Parquet files or rows in memory, the same for both engines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ggshell.query.trail_read import TrailView  # a query about heartbeats needs no reader of trails


class TimeRange(NamedTuple):
    """A range of a time column without zone, in microseconds since 1970: from ``low`` to before ``high`` (None: open)."""

    column: str
    low: int | None = None
    high: int | None = None


class ParquetType(StrEnum):
    """The type of a Parquet column, in DuckDB's notation."""

    TEXT = "VARCHAR"
    TIME = "TIMESTAMP"


@dataclass(frozen=True, slots=True)
class ParquetView:
    """Parquet files under a name, with columns matched by name.

    ``span``: the rows of a slice, or the time column to slice by; ``columns``: columns that always exist, empty if no file
    has them.
    """

    name: str
    files: tuple[str, ...]
    span: TimeRange | None = None
    columns: tuple[tuple[str, ParquetType], ...] = ()

    @property
    def size(self) -> int:
        """The current size. The reader reports a file that has disappeared."""
        return sum(Path(file).stat().st_size for file in self.files if Path(file).exists())


@dataclass(frozen=True, slots=True)
class RowsView:
    """A table in memory."""

    name: str
    table: pa.Table

    @property
    def size(self) -> int:
        return int(self.table.nbytes)


class ConnectorView(ABC):
    """A table that a connector reads itself, for either engine.

    ``size``: the number of bytes of its files.
    """

    name: str
    size: int

    @abstractmethod
    def read(self, fail: Callable[[Exception], None]) -> pa.RecordBatchReader:
        """The rows. ``fail`` receives an error that ends the reading, before it is raised: DuckDB does not pass it on."""

    @abstractmethod
    def frame(self, spark: SparkSession) -> DataFrame:
        """The rows for Spark, read by its tasks."""


View: TypeAlias = "TrailView | ParquetView | RowsView | ConnectorView"


class QueryAnswer(NamedTuple):
    """Rows of plain values: texts, numbers, booleans, None, and dicts and lists of these; times are ISO 8601 in UTC."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    engine: str = ""
    seconds: float = 0.0


PARTS: Final = "parts"
"""The view with the combined results of first halves."""


class FirstHalf(NamedTuple):
    """The first half of a query: DuckDB's SQL over a view, which can run on each slice of the view separately."""

    view: View
    sql: str


class Engine(Protocol):
    """An engine that runs statements over views: ``Engines``, or a single engine in tests."""

    def ask(
        self, query: str, sql: str, views: Sequence[View], on_progress: Callable[[str], None] | None = None
    ) -> QueryAnswer: ...

    def ask_in_parts(
        self,
        query: str,
        parts: Sequence[FirstHalf],
        schema: pa.Schema,
        sql: str,
        on_progress: Callable[[str], None] | None = None,
    ) -> QueryAnswer: ...


def total_size(views: Sequence[View]) -> int:
    """The bytes that a query may have to read."""
    return sum(view.size for view in views)
