"""The current version of an Iceberg table as a list of files and deleted rows."""

from __future__ import annotations

import numpy as np
from pyiceberg.exceptions import NoSuchTableError

from ggshell.connectors.lake.data_files import ReadableFile, ReadableTable
from ggshell.connectors.lake.forms.iceberg_catalog import LOG, catalog_of
from ggshell.connectors.lake.forms.iceberg_files import TableFiles
from ggshell.connectors.lake.forms.iceberg_snapshot import Snapshots
from ggshell.connectors.lake.forms.source_record import source_record
from ggshell.connectors.lake.target import LakeTarget
from ggshell.errors import NO_TABLE, NotFoundError
from ggshell.types import TableName


def iceberg_table(target: LakeTarget, name: TableName | None) -> ReadableTable:
    """A table of a lake (None: the log). Raises NotFoundError."""
    try:
        table = catalog_of(target).load_table(LOG if name is None else (name.owner, name.name))
    except NoSuchTableError as error:
        raise NotFoundError(f"lake {target.location} has no table {name or 'log'}", code=NO_TABLE) from error
    live = Snapshots(table.io).read(table.metadata)
    files = tuple(
        ReadableFile(path, np.asarray(live.dead_of(path).to_array(), "<i8").tobytes(), size=file.file_size_in_bytes)
        for path, file in sorted(live.data.items())
    )
    ids = tuple(field.field_id for field in table.schema().fields)
    said = source_record(table.properties)
    schema = TableFiles(table.metadata, table.io).arrow_schema
    return ReadableTable(schema, files, ids, said.key_names, frozenset(said.numbers))


def iceberg_names(target: LakeTarget) -> list[TableName]:
    """The tables of a lake's catalog, without the log of the lake."""
    catalog = catalog_of(target)
    found = [name for space in catalog.list_namespaces() for name in catalog.list_tables(space)]
    return [TableName(*name) for name in found if len(name) == len(TableName._fields) and name != LOG]
