"""A lake of Delta tables, written by delta-rs.

    <target>/log                      every change, once, by owner and table
    <target>/current/shop.orders      the current rows, with ``_key``

Each write is one Delta commit, which includes an application transaction (``ggshell/<GROUP>``). Its version is the position
in the trail: file number and RBA in one number.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, TableFeatures, Transaction, write_deltalake
from deltalake.exceptions import DeltaError

from ggshell.connectors.lake.effects import Effects
from ggshell.connectors.lake.forms import LakeBatch
from ggshell.connectors.lake.rows import KEY, HeldTable, TableWrite, log_rows, next_rows, plain
from ggshell.errors import ApplyError, StoreError
from ggshell.record.definition import TableDefinition
from ggshell.types import TableName, TrailPosition, text_literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RBA_BITS = 33
"""The bits for the RBA. A trail file has 2,000 MB plus the rest of its last transaction, so 8 GB are enough."""
_GONE = "_gone"


class DeltaTables:
    """The Delta tables in a folder."""

    def __init__(self, folder: Path, group: str, told: Callable[[str], None]) -> None:
        self._folder = folder
        self._application = f"ggshell/{group.upper()}"
        self._told = told
        self._opened: dict[Path, DeltaTable] = {}

    def reached(self, name: TableName | None) -> TrailPosition | None:
        table = self._table(self._path(name))
        if table is None:
            return None
        table.update_incremental()
        version = table.transaction_version(self._application)
        return None if version is None else TrailPosition(version >> RBA_BITS, version & ((1 << RBA_BITS) - 1))

    def append(self, rows: DataFrame, batch: LakeBatch) -> None:
        path = self._path(None)
        data = log_rows(rows)
        with _refusing("the log"):
            write_deltalake(
                self._table(path) or path,
                data,
                mode="append",
                partition_by=["owner", "table"],
                commit_properties=self._commit(batch),
            )

    def merge(
        self, spark: SparkSession, definition: TableDefinition, effects: Effects, batch: LakeBatch, before: int | None
    ) -> None:
        path = self._path(definition.name)
        table = self._table(path)
        held = HeldTable(pa.schema(table.schema().to_arrow()), partial(_rows, table)) if table is not None else None
        found = next_rows(definition, effects, held)
        if found.changed:
            self._told(f"Rewriting {definition.name}: the type of {', '.join(found.changed)} has changed.")
        with _refusing(str(definition.name)):
            if table is not None:
                _allow_local_times(table, found.rows.schema)
            if table is None or found.touched is None:
                write_deltalake(
                    table or path,
                    found.rows,
                    mode="overwrite",
                    schema_mode="overwrite",
                    commit_properties=self._commit(batch),
                )
            else:
                _merge(table, found, found.touched, self._commit(batch))

    def _path(self, name: TableName | None) -> Path:
        return self._folder / "log" if name is None else self._folder / "current" / str(name)

    def _table(self, path: Path) -> DeltaTable | None:
        """An existing table, or None. Raises StoreError."""
        if path not in self._opened:
            if not DeltaTable.is_deltatable(str(path)):
                return None
            try:
                self._opened[path] = DeltaTable(path)
            except DeltaError as error:
                raise StoreError(f"Delta table {path} cannot be opened: {error}") from error
        return self._opened[path]

    def _commit(self, batch: LakeBatch) -> CommitProperties:
        seqno, rba = batch.position
        if rba >> RBA_BITS:
            raise ApplyError(f"RBA {rba} is too large for a Delta lake", hint="use smaller trail files")
        mark = Transaction(self._application, seqno << RBA_BITS | rba)
        return CommitProperties({"ggshell.batch": str(batch.number)}, app_transactions=[mark])


def _allow_local_times(table: DeltaTable, schema: pa.Schema) -> None:
    """Enable times without a zone: a table feature that only tables created with such a column have."""
    known = table.protocol().writer_features or []
    if pa.timestamp("us") in schema.types and "timestampNtz" not in known:
        table.alter.add_feature(TableFeatures.TimestampWithoutTimezone, allow_protocol_versions_increase=True)


def _rows(table: DeltaTable, keys: Collection[str] | None) -> pa.Table:
    """A table's rows with some keys, or all rows. Files that cannot contain the keys are not read."""
    if keys is None:
        return pa.table(table.scan())
    low, high = text_literal(min(keys)), text_literal(max(keys))
    wanted = pa.array(list(keys), pa.string())
    reader = pa.RecordBatchReader.from_stream(table.scan(predicate=f"{KEY} BETWEEN {low} AND {high}"))
    schema = plain(reader.schema)
    found = [batch.filter(pc.is_in(batch.column(KEY), wanted)) for batch in (batch.cast(schema) for batch in reader)]
    return pa.Table.from_batches(found, schema)


def _merge(table: DeltaTable, found: TableWrite, touched: list[str], commit: CommitProperties) -> None:
    """Replace the rows with the touched keys, in one commit."""
    gone = pc.invert(pc.is_in(pa.array(touched, pa.string()), found.rows[KEY].combine_chunks()))
    keys = pa.array(touched, pa.string()).filter(gone)
    left = pa.table({KEY: keys, **{name: pa.nulls(len(keys), kind) for name, kind in _own(found.rows)}})
    source = pa.concat_tables(
        [
            found.rows.append_column(_GONE, pa.repeat(False, found.rows.num_rows)),
            left.append_column(_GONE, pa.repeat(True, len(keys))),
        ]
    )
    (
        table.merge(
            source,
            f"t.{KEY} = s.{KEY}",
            source_alias="s",
            target_alias="t",
            merge_schema=True,
            commit_properties=commit,
        )
        .when_matched_delete(f"s.{_GONE}")
        .when_matched_update_all(except_cols=[_GONE])
        .when_not_matched_insert_all(predicate=f"NOT s.{_GONE}", except_cols=[_GONE])
        .execute()
    )


def _own(rows: pa.Table) -> list[tuple[str, pa.DataType]]:
    return [(field.name, field.type) for field in rows.schema if field.name != KEY]


@contextmanager
def _refusing(what: str) -> Iterator[None]:
    """Convert errors of the library to ApplyError."""
    try:
        yield
    except DeltaError as error:
        raise ApplyError(f"Delta cannot write {what}: {str(error).splitlines()[0]}") from error
