"""What COMPARE asks of a lake. The engine of queries computes the sums: DuckDB in this process, or Spark for a large table.

Every query reads the whole table in its current version, because a lake has no index.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow as pa

from ggshell.connectors.lake.compared_rows import (
    Compared,
    ComparedColumn,
    compared_rows,
    compared_schema,
    place_name,
)
from ggshell.connectors.lake.credentials import applied
from ggshell.connectors.lake.data_files import unreadable_files
from ggshell.connectors.lake.extra_columns import CURRENT, DELETED, VALID_FROM, VALID_TO
from ggshell.connectors.lake.forms import KEY
from ggshell.connectors.lake.outages import errors_by_cause
from ggshell.connectors.lake.readable import readable_table, table_names
from ggshell.connectors.lake.target import LakeTarget
from ggshell.errors import NotFoundError, StateError, StoreError, TrailError
from ggshell.parameters.lake_tables import Metadata
from ggshell.pipeline.compare.portable import DIGESTED, HASH_DIGITS, Family, PortableColumn, PortableSide, common
from ggshell.query.views import ConnectorView
from ggshell.record.name_patterns import matches
from ggshell.types import TableName, text_literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ggshell.connectors.lake.data_files import ReadableTable
    from ggshell.pipeline.compare.table_side import QueryEngine
    from ggshell.pipeline.compare.tables import ComparedColumns, ComparedDatabase, ComparedTable

_RANGE_ROWS: Final = 1_000_000
_VIEW: Final = "compared"
_ADDED: Final = frozenset({DELETED, VALID_FROM, VALID_TO, CURRENT, *(each.value for each in Metadata)})
"""Columns that LAKETABLE adds."""


@dataclass(frozen=True, slots=True)
class LakeColumns:
    """What is compared of a table: its columns, and those that identify a row, if the table records them."""

    families: Mapping[str, Family]
    key_names: tuple[str, ...] = ()
    key_is_complete: ClassVar[bool] = False
    """A lake has NULL where its type cannot hold a value, also in a key."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.families)


@dataclass(frozen=True, slots=True)
class LakeComparison:
    """A lake that is compared. ``environment``: the variables with the login of its store or catalog."""

    target: LakeTarget
    environment: Mapping[str, str]
    engine: QueryEngine

    def tables(self, pattern: str) -> list[TableName]:
        with self._reading():
            found = [name for name in table_names(self.target) if matches(pattern, name)]
        if not found:
            raise NotFoundError(
                f"lake {self.target.location} has no table {pattern}", hint="check the name and its case"
            )
        return found

    def own_tables(self) -> set[TableName]:
        return set()

    def columns(self, table: TableName) -> LakeColumns:
        found = self._table(table)
        families = {field.name: _family(field.type) for field in found.schema if not _is_of_lake(found, field.name)}
        return LakeColumns(families, found.key)

    def side(self, table: TableName, columns: ComparedColumns, other: ComparedColumns) -> PortableSide:
        families = {name: common(family, other.families[name]) for name, family in columns.families.items()}
        compared = tuple(ComparedColumn(name, family) for name, family in families.items())
        dialect = _Dialect(self.engine, lambda: self._view(table, compared), self.environment)
        found = [_portable(number, each) for number, each in enumerate(compared)]
        return PortableSide(dialect, _VIEW, found, columns.key_names, _RANGE_ROWS)

    def time(self) -> str:
        raise self._no_script()

    def can_repair(self, source: ComparedDatabase) -> bool:
        return False

    def repair_script(self, found: Sequence[ComparedTable], when: str, *, replicated: bool) -> str:
        raise self._no_script()

    def _no_script(self) -> StateError:
        return StateError("REPAIR requires two databases", hint="run COMPARE without REPAIR, and load the tables again")

    @contextmanager
    def _reading(self, what: str = "") -> Iterator[None]:
        """With the login of the lake. ``what``: a table; errors of libraries then name it."""
        with applied(self.environment), unreadable_files(what or self.target.location), errors_by_cause(self.target):
            yield

    def _table(self, name: TableName) -> ReadableTable:
        with self._reading(f"table {name} of lake {self.target.location}"):
            return readable_table(self.target, str(name))

    def _view(self, name: TableName, columns: tuple[ComparedColumn, ...]) -> LakeView:
        rows = self._table(name)
        marks = tuple(each for each in (DELETED, CURRENT) if each in rows.schema.names and _is_of_lake(rows, each))
        return LakeView(self.target, name, rows, Compared(columns, marks))


class LakeView(ConnectorView):
    """A version of a table, as it is compared."""

    name = _VIEW

    def __init__(self, target: LakeTarget, table: TableName, rows: ReadableTable, compared: Compared) -> None:
        self._target = target
        self._table = table
        self._rows = rows
        self._compared = compared
        self.size = sum(file.size for file in rows.files)

    def read(self, fail: Callable[[Exception], None]) -> pa.RecordBatchReader:
        def batches() -> Iterator[pa.RecordBatch]:
            try:
                for file in self._rows.files:
                    with unreadable_files(file.location), errors_by_cause(self._target):
                        for batch in self._rows.batches(file):
                            yield compared_rows(batch, self._compared)
            except Exception as error:
                fail(error)
                raise

        return pa.RecordBatchReader.from_batches(compared_schema(self._compared), batches())

    def frame(self, spark: SparkSession) -> DataFrame:
        from ggshell.connectors.lake.spark_source import compared_frame, register_lakes

        register_lakes(spark)
        return compared_frame(spark, self._target, self._table, self._compared)


def _is_of_lake(table: ReadableTable, column: str) -> bool:
    """Whether a column is the lake's own: a source can have columns of the same names, and numbers them."""
    return column == KEY or (column in _ADDED and column not in table.numbered)


def _family(kind: pa.DataType) -> Family:
    """The family of a lake's type. What it has as text is the source's own text of any type."""
    if pa.types.is_boolean(kind):
        return Family.TRUTH
    if pa.types.is_integer(kind):
        return Family.INTEGER
    if pa.types.is_decimal(kind):
        return Family.DECIMAL
    if pa.types.is_floating(kind):
        return Family.FLOAT
    if pa.types.is_date(kind):
        return Family.DATE
    if pa.types.is_timestamp(kind):
        return Family.MOMENT
    return Family.BYTES if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) else Family.SOURCE_TEXT


def _portable(number: int, column: ComparedColumn) -> PortableColumn:
    name = place_name(number)
    text = f"lower(hex({name}))" if column.family is Family.BYTES else name
    return PortableColumn(column.name, text, column.family, f"md5({name})" if column.family in DIGESTED else "")


class _Dialect:
    """The SQL of both engines."""

    def __init__(self, engine: QueryEngine, view: Callable[[], LakeView], environment: Mapping[str, str]) -> None:
        self._engine = engine
        self._view = view
        self._environment = environment
        self._canceled = threading.Event()

    def ask(self, query: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
        sql = query % tuple(map(text_literal, values))
        try:
            with applied(self._environment):
                return self._engine.ask("COMPARE", sql, [self._view()], stopped=self._canceled.is_set).rows
        except TrailError as error:  # what Spark says of its tasks' errors
            raise StoreError(error.message) from error

    def cancel(self) -> None:
        self._canceled.set()

    def row(self, columns: Sequence[PortableColumn]) -> str:
        parts = [each.digest or f"concat_ws('', char_length({each.text}), ':', {each.text})" for each in columns]
        # ``concat_ws`` ignores NULL, so a value that is NULL would have the text of its length and the sign alone.
        parts = [
            f"CASE WHEN {each.text} IS NULL THEN '~' ELSE {part} END" for each, part in zip(columns, parts, strict=True)
        ]
        return f"concat_ws('', {', '.join(parts)})"

    def hash(self, text: str) -> str:
        return f"CAST(conv(substr(md5({text}), 1, {HASH_DIGITS}), 16, 10) AS BIGINT)"

    def total(self, number: str) -> str:
        return f"CAST(coalesce(sum(CAST({number} AS DECIMAL(38,0))), 0) AS STRING)"

    def ordered(self, column: PortableColumn) -> str:
        return f"CAST({column.text} AS DECIMAL(20,0))" if column.family is Family.INTEGER else column.text

    def mark(self, column: PortableColumn) -> str:
        return "CAST(%s AS DECIMAL(20,0))" if column.family is Family.INTEGER else "%s"
