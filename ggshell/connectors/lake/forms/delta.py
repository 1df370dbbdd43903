"""A lake of Delta tables, written by delta-rs.

    <target>/log                      every change, once, by owner and table
    <target>/current/shop.orders      the current rows, with ``_key``

Each write is one Delta commit, which includes an application transaction (``ggshell/<GROUP>``). Its version is the position
in the trail: file number and RBA in one number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, TableFeatures, Transaction, write_deltalake
from deltalake.exceptions import DeltaError

from ggshell.connectors.lake.forms import KEY, HeldTable, LakeBatch, TableChange
from ggshell.connectors.lake.forms.delta_log import PARTITIONS, append_files, delta_layout
from ggshell.connectors.lake.log_files import LogFile, LogLayout
from ggshell.connectors.lake.rows import plain
from ggshell.errors import ApplyError, StoreError
from ggshell.object_stores import is_elsewhere
from ggshell.query.trail_read import COLUMNS, chosen
from ggshell.types import TableName, TrailPosition, text_literal

RBA_BITS = 33
"""The bits for the RBA. A trail file has 2,000 MB plus the rest of its last transaction, so 8 GB are enough."""
_GONE = "_gone"


class DeltaTables:
    """The Delta tables at a location."""

    def __init__(self, location: str, group: str) -> None:
        self._location = location
        self._application = f"ggshell/{group.upper()}"
        self._opened: dict[str, DeltaTable] = {}

    def reached(self, name: TableName | None) -> TrailPosition | None:
        table = self._table(self._path(name))
        if table is None:
            return None
        table.update_incremental()
        version = table.transaction_version(self._application)
        return None if version is None else TrailPosition(version >> RBA_BITS, version & ((1 << RBA_BITS) - 1))

    def held(self, name: TableName, batch: LakeBatch) -> HeldTable | None:
        table = self._table(self._path(name))
        return None if table is None else HeldTable(pa.schema(table.schema().to_arrow()), partial(_rows, table))

    def fitting(self, kind: pa.DataType) -> pa.DataType:
        return kind

    def widens(self, old: pa.DataType, new: pa.DataType) -> bool:
        """delta-rs does not write the table feature for wider types."""
        return False

    def log_layout(self, number: int) -> LogLayout:
        path = self._path(None)
        if self._table(path) is None:
            with _refusing("the log"):
                DeltaTable.create(path, chosen(COLUMNS), mode="ignore", partition_by=list(PARTITIONS))
        return delta_layout(self._location, chosen(COLUMNS))

    def append_log(self, files: Sequence[LogFile], batch: LakeBatch) -> None:
        table = self._table(self._path(None))
        assert table is not None  # noqa: S101 - created by log_layout
        with _refusing("the log"):
            append_files(table, files, chosen(COLUMNS), self._commit(batch), datetime.now(UTC))

    def apply(self, change: TableChange, batch: LakeBatch) -> None:
        path = self._path(change.definition.name)
        table = self._table(path)
        with _refusing(str(change.definition.name)):
            if table is not None:
                _allow_local_times(table, change.rows.schema)
            if table is None or change.cleared:
                write_deltalake(
                    table or path,
                    change.rows,
                    mode="overwrite",
                    schema_mode="overwrite",
                    commit_properties=self._commit(batch),
                )
            else:
                _merge(table, change, self._commit(batch))

    def _path(self, name: TableName | None) -> str:
        if name is None:
            return f"{self._location}/log"
        # A location is a URL in an object store, where not all characters stand for themselves.
        return f"{self._location}/current/{quote(str(name), safe='') if is_elsewhere(self._location) else name}"

    def _table(self, path: str) -> DeltaTable | None:
        """An existing table, or None. Raises StoreError."""
        if path not in self._opened:
            if not DeltaTable.is_deltatable(path):
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


def _rows(table: DeltaTable, keys: pa.Array | None) -> pa.Table:
    """A table's rows with some keys, or all rows. Files that cannot contain the keys are not read."""
    if keys is None:
        return pa.table(table.scan())
    reach = pc.min_max(keys)
    low, high = text_literal(reach["min"].as_py()), text_literal(reach["max"].as_py())
    reader = pa.RecordBatchReader.from_stream(table.scan(predicate=f"{KEY} BETWEEN {low} AND {high}"))
    schema = plain(reader.schema)
    found = [batch.filter(pc.is_in(batch.column(KEY), keys)) for batch in (batch.cast(schema) for batch in reader)]
    return pa.Table.from_batches(found, schema)


def _merge(table: DeltaTable, change: TableChange, commit: CommitProperties) -> None:
    """Replace the rows with the replaced keys, in one commit."""
    keys = change.replaced.filter(pc.invert(pc.is_in(change.replaced, change.rows[KEY].combine_chunks())))
    left = pa.table({KEY: keys, **{name: pa.nulls(len(keys), kind) for name, kind in _own(change.rows)}})
    source = pa.concat_tables(
        [
            change.rows.append_column(_GONE, pa.repeat(False, change.rows.num_rows)),
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
