"""What a question is about: named views over trails, Parquet files or rows at hand; the same for either engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ggshell.errors import DiskError
from ggshell.spark import facts, paths
from ggshell.spark.layout import Layout, plan
from ggshell.spark.pushdown import Condition, wanted_by
from ggshell.spark.splits import Split
from ggshell.spark.trail_keys import HomeKeys
from ggshell.trail.columnar import OnDamage


@dataclass(frozen=True, slots=True)
class TrailView:
    """Trails under a name; ``conditions`` say what of them is needed at most, ``split`` that only a part of a file is;
    ``keys`` open what is encrypted."""

    name: str
    files: tuple[str, ...]
    columns: tuple[str, ...] = facts.COLUMNS
    conditions: tuple[Condition, ...] = ()
    on_damage: OnDamage = OnDamage.RAISE
    split: Split | None = None
    keys: HomeKeys | None = None

    @property
    def size(self) -> int:
        return paths.total_bytes(self.files)

    def read(self, failed: Callable[[Exception], None] = lambda _: None) -> pa.RecordBatchReader:
        """Its rows, file by file.  Raises TrailError for damage, which ``failed`` hears as it is: who reads the batches may
        wrap it."""
        layout = Layout(self.columns, on_damage=self.on_damage, keys=self.keys)
        return pa.RecordBatchReader.from_batches(layout.schema, self._batches(layout, failed))

    def _batches(self, layout: Layout, failed: Callable[[Exception], None]) -> Iterator[pa.RecordBatch]:
        wanted = wanted_by(self.conditions)
        try:
            for split in [self.split] if self.split else plan(self.files, 1 << 62, up_to_cut=True):
                yield from layout.batches(split, wanted)
        except OSError as error:
            failed(DiskError(f"{error.filename or self.files[0]} cannot be read: {error.strerror or error}"))
            raise
        except Exception as error:
            failed(error)
            raise


class Span(NamedTuple):
    """Values of a column of times without a zone, in microseconds since 1970: from ``low`` on, up to ``high`` (None: open)."""

    column: str
    low: int | None = None
    high: int | None = None


class ParquetType(StrEnum):
    """What a column of a Parquet file may be, as DuckDB says it."""

    TEXT = "VARCHAR"
    TIME = "TIMESTAMP"


@dataclass(frozen=True, slots=True)
class ParquetView:
    """Parquet files under a name; columns by their names.  ``span``: the rows of a slice, or by which time to slice them;
    ``columns`` are there in any case, empty where no file has them."""

    name: str
    files: tuple[str, ...]
    span: Span | None = None
    columns: tuple[tuple[str, ParquetType], ...] = ()

    @property
    def size(self) -> int:
        """What is there now; of a file that is gone meanwhile whoever reads it tells."""
        return sum(Path(file).stat().st_size for file in self.files if Path(file).exists())


@dataclass(frozen=True, slots=True)
class RowsView:
    """A table that is at hand."""

    name: str
    table: pa.Table

    @property
    def size(self) -> int:
        return int(self.table.nbytes)


View = TrailView | ParquetView | RowsView


class Answer(NamedTuple):
    """Rows of plain values: texts, numbers, truth values, None, dicts and lists of these; times as ISO 8601 in UTC."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    engine: str = ""
    seconds: float = 0.0


PARTS: Final = "parts"
"""The view of all the answers of first halves."""


class Part(NamedTuple):
    """The first half of a question: DuckDB's SQL about a view, which may be asked of each of its slices by itself."""

    view: View
    sql: str


def total_size(views: Sequence[View]) -> int:
    """The bytes that a question may have to read."""
    return sum(view.size for view in views)
