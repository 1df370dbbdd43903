"""A lake of Iceberg tables, written by PyIceberg. Their catalog is a SQLite file next to them.

    <target>/catalog.db               the catalog "lake": (owner, table), and (_ggshell, log)
    <target>/log                      every change, once, by owner and table
    <target>/current/shop.orders      the current rows, with ``_key``

Each write is one catalog transaction, which also sets the table's property ``ggshell.<GROUP>`` to the position in the trail.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.partitioning import PartitionField as SpecField
from pyiceberg.table import Table, Transaction
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.transforms import Transform as IcebergTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from ggshell.connectors.lake.forms import HeldTable, LakeBatch, TableChange
from ggshell.connectors.lake.forms.iceberg_catalog import LOG, catalog_of
from ggshell.connectors.lake.forms.iceberg_log import append_files, iceberg_layout
from ggshell.connectors.lake.forms.iceberg_rows import RowChanges
from ggshell.connectors.lake.forms.iceberg_snapshot import CONFLICTS
from ggshell.connectors.lake.forms.source_record import record_properties, source_record
from ggshell.connectors.lake.log_files import LogFile, LogLayout
from ggshell.connectors.lake.target import LakeTarget
from ggshell.connectors.lake.type_changes import is_wider
from ggshell.errors import ApplyError
from ggshell.files import disk_errors
from ggshell.parameters.lake_tables import (
    DEFAULT_LAYOUTS,
    Compression,
    LakeLayouts,
    PartitionField,
    TableLayout,
    Transform,
)
from ggshell.query.trail_read import COLUMNS, chosen
from ggshell.types import TableName, TrailPosition

ATTEMPTS = 10
"""How often a write is planned. Only maintenance, which commits rarely, writes to the same tables."""
_CODEC = "write.parquet.compression-codec"
_PROPERTIES = {
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}
"""Every batch is a snapshot. Without these properties there would be as many metadata files as batches."""

_TYPES = {
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.float32(): FloatType(),
    pa.float64(): DoubleType(),
    pa.bool_(): BooleanType(),
    pa.date32(): DateType(),
    pa.timestamp("us"): TimestampType(),
    pa.timestamp("us", "UTC"): TimestamptzType(),
    pa.string(): StringType(),
    pa.binary(): BinaryType(),
}
_SIMPLE: Mapping[Transform, type[IcebergTransform[Any, Any]]] = {
    Transform.IDENTITY: IdentityTransform,
    Transform.YEAR: YearTransform,
    Transform.MONTH: MonthTransform,
    Transform.DAY: DayTransform,
    Transform.HOUR: HourTransform,
}
"""The transforms without a number."""


class IcebergTables:
    """The Iceberg tables in a folder."""

    def __init__(self, target: LakeTarget, group: str, cache: Path, layouts: LakeLayouts = DEFAULT_LAYOUTS) -> None:
        if target.folder is not None:
            with disk_errors("create", target.folder):
                target.folder.mkdir(parents=True, exist_ok=True)
        self._target = target
        self._property = f"ggshell.{group.upper()}"
        self._catalog = catalog_of(target)
        self._opened: dict[TableName | None, Table] = {}
        self._cache = cache
        self._layouts = layouts
        self._rows: dict[TableName, RowChanges] = {}

    def reached(self, name: TableName | None) -> TrailPosition | None:
        table = self._table(name)
        return self._reached(table) if table is not None else None

    def _reached(self, table: Table) -> TrailPosition | None:
        text = table.refresh().properties.get(self._property, "")
        if not text:
            return None
        seqno, _, rba = text.partition(":")
        return TrailPosition(int(seqno), int(rba))

    def held(self, name: TableName, batch: LakeBatch) -> HeldTable | None:
        table = self._table(name)
        if table is None:
            return None
        said = source_record(table.properties)
        rows = partial(self._held_rows, name, table)
        return HeldTable(table.schema().as_arrow(), rows, said.numbers, said.key, _partition_of(table))

    def fitting(self, kind: pa.DataType) -> pa.DataType:
        """Iceberg has no small integers."""
        return pa.int32() if kind == pa.int16() else kind

    def widens(self, old: pa.DataType, new: pa.DataType) -> bool:
        return is_wider(old, new)

    @property
    def renames(self) -> bool:
        return True

    def log_layout(self, number: int) -> LogLayout:
        return iceberg_layout(self._log_table(), chosen(COLUMNS))

    def append_log(self, files: Sequence[LogFile], batch: LakeBatch) -> None:
        table = self._log_table()

        def append() -> None:
            with table.transaction() as transaction:
                append_files(transaction, files, _summary(batch))
                self._mark(transaction, batch)

        with _refusing("the log"):
            self._again(table, append, batch)

    def _log_table(self) -> Table:
        with _refusing("the log"):
            if self._table(None) is None:
                with self._transaction(None, chosen(COLUMNS)):
                    pass
            table = self._table(None)
            return table if table is not None else self._catalog.load_table(LOG)

    def apply(self, change: TableChange, batch: LakeBatch) -> None:
        name = change.definition.name
        table = self._table(name)
        with _refusing(str(name)):
            if table is None:
                self._create(change, batch)
            else:
                self._again(table, partial(self._replace, table, change, batch), batch)

    def _again(self, table: Table, write: Callable[[], None], batch: LakeBatch) -> None:
        """Write to a table, and plan the write again if maintenance has replaced the snapshot that it was planned for.

        If the commit of the batch is there, it was stored without an answer, or by another process of this group.
        """
        for _ in range(ATTEMPTS - 1):
            with suppress(*CONFLICTS):
                write()
                return
            reached = self._reached(table)
            if reached is not None and reached >= batch.position:
                return
        write()

    def _create(self, change: TableChange, batch: LakeBatch) -> None:
        name = change.definition.name
        with self._transaction(name, change.rows.schema) as transaction:
            _partition(transaction, self._layouts.of(name))
            changes = RowChanges(transaction._table.io, self._index_folder(name), self._layouts.of(name))
            changes.replace(transaction, change.rows, None, _summary(batch))
            _keep_record(transaction, change)
            self._mark(transaction, batch)

    def _replace(self, table: Table, change: TableChange, batch: LakeBatch) -> None:
        with table.transaction() as transaction:
            rows = self._row_changes(change.definition.name, table)
            if _partition_fields(transaction, change.changed):
                rows.remove_all(transaction, _summary(batch))
            _evolve(transaction, change)
            _keep_record(transaction, change)
            _keep_compression(transaction, self._layouts.of(change.definition.name))
            keys = None if change.cleared else change.replaced
            rows.replace(transaction, change.rows, keys, _summary(batch), change.filled)
            self._mark(transaction, batch)

    def _row_changes(self, name: TableName, table: Table) -> RowChanges:
        if name not in self._rows:
            self._rows[name] = RowChanges(table.io, self._index_folder(name), self._layouts.of(name))
        return self._rows[name]

    def _index_folder(self, name: TableName) -> Path:
        return self._cache / quote(str(name), safe="")

    def _held_rows(self, name: TableName, table: Table, keys: pa.Array | None) -> pa.Table:
        return table.scan().to_arrow() if keys is None else self._row_changes(name, table).rows(table, keys)

    @contextmanager
    def _transaction(self, name: TableName | None, schema: pa.Schema) -> Iterator[Transaction]:
        """A transaction on a table; creates the table if it does not exist."""
        table, folder = self._table(name), "log" if name is None else f"current/{quote(str(name), safe='')}"
        if table is not None:
            with table.transaction() as transaction:
                yield transaction
            return
        self._catalog.create_namespace_if_not_exists(_identifier(name)[0])
        with self._catalog.create_table_transaction(
            _identifier(name), schema, self._location(folder), properties=_PROPERTIES
        ) as transaction:
            if name is None:
                with transaction.update_spec() as spec:
                    spec.add_identity("owner").add_identity("table")
            yield transaction

    def _location(self, folder: str) -> str | None:
        """The location of a table's files; None if the catalog chooses it."""
        if self._target.is_located_by_catalog:
            return None
        prefix = "file://" if self._target.folder is not None else ""
        return f"{prefix}{self._target.location}/{folder}"

    def _table(self, name: TableName | None) -> Table | None:
        """An existing table, or None."""
        if name not in self._opened:
            try:
                self._opened[name] = self._catalog.load_table(_identifier(name))
            except NoSuchTableError:
                return None
        return self._opened[name]

    def _mark(self, transaction: Transaction, batch: LakeBatch) -> None:
        transaction.set_properties({self._property: f"{batch.position.seqno}:{batch.position.rba}"})


def _identifier(name: TableName | None) -> tuple[str, str]:
    return LOG if name is None else (name.owner, name.name)


def _summary(batch: LakeBatch) -> dict[str, str]:
    """The properties of a snapshot."""
    return {"ggshell.batch": str(batch.number)}


def _keep_record(transaction: Transaction, change: TableChange) -> None:
    said, there = record_properties(change), transaction.table_metadata.properties
    if not said.items() <= there.items():
        transaction.set_properties(said)


def _partition(transaction: Transaction, layout: TableLayout) -> None:
    """Partition a new table, and choose its compression."""
    _keep_compression(transaction, layout)
    if not layout.partition:
        return
    with transaction.update_spec() as spec:
        for field in layout.partition:
            spec.add_field(
                field.column, _transform(field), None if field.transform is Transform.IDENTITY else field.name
            )


def _transform(field: PartitionField) -> IcebergTransform[Any, Any]:
    if field.transform in (Transform.BUCKET, Transform.TRUNCATE):
        return (BucketTransform if field.transform is Transform.BUCKET else TruncateTransform)(field.number)
    return _SIMPLE[field.transform]()


def _partition_of(table: Table) -> tuple[PartitionField, ...]:
    """The fields of a table's partitions, without those that LAKETABLE does not have."""
    found, names = [], {str(transform()): each for each, transform in _SIMPLE.items()}
    for field in table.spec().fields:
        column = table.schema().find_column_name(field.source_id) or ""
        match field.transform:
            case BucketTransform(num_buckets=number):
                found.append(PartitionField(column, Transform.BUCKET, number))
            case TruncateTransform(width=number):
                found.append(PartitionField(column, Transform.TRUNCATE, number))
            case other if str(other) in names:
                found.append(PartitionField(column, names[str(other)]))
    return tuple(found)


def _keep_compression(transaction: Transaction, layout: TableLayout) -> None:
    codec = "uncompressed" if layout.compression is Compression.NONE else layout.compression.value
    if transaction.table_metadata.properties.get(_CODEC, "zstd") != codec:
        transaction.set_properties({_CODEC: codec})


def _iceberg_type(kind: pa.DataType) -> IcebergType:
    return DecimalType(kind.precision, kind.scale) if pa.types.is_decimal(kind) else _TYPES[kind]


def _evolve(transaction: Transaction, change: TableChange) -> None:
    """Rename, widen and add columns, and recreate columns whose type has changed; their values are among the rows.

    A column of the table's partitions keeps its identity: no reader accepts another column with the name that the field of
    an old partition has.
    """
    if change.renamed or change.widened:
        with transaction.update_schema() as update:
            for before, after in change.renamed:
                update.rename_column(before, after)
        with transaction.update_schema() as update:
            for field in change.widened:
                update.update_column(field.name, field_type=_iceberg_type(field.type))
    partition = _partition_fields(transaction, change.changed)
    fields = {name: change.rows.schema.field(name) for name in change.changed}
    if partition:
        _retype_partition(transaction, partition, fields)
    recreated = [field for name, field in fields.items() if name not in partition]
    if recreated:
        with transaction.update_schema(allow_incompatible_changes=True) as update:
            for field in recreated:
                update.delete_column((field.name,))
    if change.added or recreated:
        with transaction.update_schema() as update:
            update.union_by_name(pa.schema([*change.added, *recreated]))


def _partition_fields(transaction: Transaction, columns: Collection[str]) -> dict[str, list[SpecField]]:
    """The fields of the table's partitions that follow from these columns, by column."""
    metadata, found = transaction.table_metadata, dict[str, list[SpecField]]()
    for field in metadata.spec().fields:
        name = metadata.schema().find_column_name(field.source_id)
        if name in columns:
            found.setdefault(name, []).append(field)
    return found


def _retype_partition(
    transaction: Transaction, partition: Mapping[str, Sequence[SpecField]], fields: Mapping[str, pa.Field]
) -> None:
    """Change the types of columns of partitions, which stay the same columns: old partitions have their numbers and names.

    A field of the partitions that the new type does not have (the day of a text) goes.
    """
    kinds = {name: _iceberg_type(fields[name].type) for name in partition}
    gone = [field.name for name, several in partition.items() for field in several if not _fits(field, kinds[name])]
    if gone:
        with transaction.update_spec() as spec:
            for name in gone:
                spec.remove_field(name)
    with transaction.update_schema(allow_incompatible_changes=True) as update:
        for name, kind in kinds.items():
            update.update_column(name, field_type=kind)


def _fits(field: SpecField, kind: IcebergType) -> bool:
    return bool(field.transform.can_transform(kind))


@contextmanager
def _refusing(what: str) -> Iterator[None]:
    """Convert errors of the library to ApplyError."""
    try:
        yield
    except OperationalError:
        raise  # The catalog does not answer: a later attempt can succeed.
    except (*CONFLICTS, SQLAlchemyError, ValueError) as error:
        raise ApplyError(f"Iceberg cannot write {what}: {str(error).splitlines()[0]}") from error
