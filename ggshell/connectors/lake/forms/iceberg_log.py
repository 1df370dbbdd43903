"""The log of an Iceberg lake: data files that Spark's tasks have written are committed without reading them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import uuid4

import pyarrow as pa
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.typedef import Record
from pyiceberg.types import MapType, NestedField

from ggshell.connectors.lake.log_files import LogFile, LogLayout

_ID = b"PARQUET:field_id"


def iceberg_layout(table: Table, columns: pa.Schema) -> LogLayout:
    """Where tasks write files of the log, and their schema with the table's field ids."""
    schema = pa.schema([_with_ids(field, table.schema()) for field in columns])
    return LogLayout(table.location(), "data", schema, f"-{uuid4()}")


def _with_ids(field: pa.Field, schema: Schema) -> pa.Field:
    known = schema.find_field(field.name)
    kind = field.type
    if isinstance(known.field_type, MapType):
        key, value = known.field_type.key_field, known.field_type.value_field
        kind = pa.map_(_numbered(key, kind.key_type, nullable=False), _numbered(value, kind.item_type))
    return _numbered(known, kind)


def _numbered(known: NestedField, kind: pa.DataType, *, nullable: bool = True) -> pa.Field:
    return pa.field(known.name, kind, nullable, metadata={_ID: str(known.field_id).encode()})


def append_files(transaction: Transaction, files: Sequence[LogFile], summary: Mapping[str, str]) -> None:
    """Add data files to the log in a transaction."""
    metadata = transaction.table_metadata
    plan = compute_statistics_plan(metadata.schema(), metadata.properties)
    ids = parquet_path_to_id_mapping(metadata.schema())
    with transaction.update_snapshot(snapshot_properties=dict(summary)).merge_append() as append:
        for file in files:
            statistics = data_file_statistics_from_parquet_metadata(
                parquet_metadata=file.metadata, stats_columns=plan, parquet_column_mapping=ids
            )
            append.append_data_file(
                DataFile.from_args(
                    content=DataFileContent.DATA,
                    file_path=f"{metadata.location}/{file.path}",
                    file_format=FileFormat.PARQUET,
                    partition=Record(file.table.owner, file.table.name),
                    file_size_in_bytes=file.size,
                    sort_order_id=None,
                    spec_id=metadata.default_spec_id,
                    equality_ids=None,
                    key_metadata=None,
                    **statistics.to_serialized_dict(),
                )
            )
