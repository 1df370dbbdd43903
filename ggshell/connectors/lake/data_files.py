"""The rows of a version of a table, for readers that know no table format: its data files, and the deleted rows of each.

The list is made where the library of the format is. Reading the files takes only Arrow, so Spark's workers need no library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ggshell.errors import GgsError, StoreError
from ggshell.object_stores import open_place

FIELD_ID = b"PARQUET:field_id"


class ReadableFile(NamedTuple):
    """A data file.

    ``deleted``: the positions of its deleted rows, as little-endian 64-bit integers; ``constants``: the values of columns that
    are not in the file, as texts; ``size``: in bytes.
    """

    location: str
    deleted: bytes = b""
    constants: Mapping[str, str | None] = MappingProxyType({})
    size: int = 0


class ReadableTable(NamedTuple):
    """A version of a table.

    ``field_ids``: the identities by which the files name its columns; empty: by their names. ``key``: the columns that identify
    a row at the source, and ``numbered``: the columns that the source has numbered; empty if the table does not record them.
    """

    schema: pa.Schema
    files: tuple[ReadableFile, ...]
    field_ids: tuple[int, ...] = ()
    key: tuple[str, ...] = ()
    numbered: frozenset[str] = frozenset()

    def batches(self, file: ReadableFile) -> Iterator[pa.RecordBatch]:
        """The rows of one of the files, in the table's columns. Raises ConnectionLostError."""
        place = open_place(file.location)
        deleted = np.frombuffer(file.deleted, "<i8")
        with place.system.open_input_file(place.path) as stream, pq.ParquetFile(stream) as opened:
            first = 0
            for group in range(opened.num_row_groups):
                rows = self._projected(opened.read_row_group(group), file)
                left = np.ones(rows.num_rows, bool)
                left[deleted[(deleted >= first) & (deleted < first + rows.num_rows)] - first] = False
                first += rows.num_rows
                yield from rows.filter(pa.array(left)).to_batches()

    def _projected(self, rows: pa.Table, file: ReadableFile) -> pa.Table:
        """Rows in the table's columns: widened, NULL where the file is older."""
        names = columns_by_id(rows.schema) if self.field_ids else {}
        columns = []
        for number, field in enumerate(self.schema):
            name = names.get(self.field_ids[number]) if self.field_ids else field.name
            if name is not None and name in rows.column_names:
                columns.append(rows[name].cast(field.type))
            else:
                columns.append(_constant(file.constants.get(field.name), field.type, rows.num_rows))
        return pa.table(columns, schema=self.schema)


@contextmanager
def unreadable_files(place: str) -> Iterator[None]:
    """Convert the errors of libraries, which raise what they like for a damaged file: StoreError with the place."""
    try:
        yield
    except GgsError:
        raise
    except FileNotFoundError as error:
        raise StoreError(f"{place} is missing", hint="restore it") from error
    except Exception as error:
        raise StoreError(f"{place} cannot be read: {(str(error).splitlines() or [type(error).__name__])[0]}") from error


def columns_by_id(schema: pa.Schema) -> dict[int, str]:
    """The names of a file's columns by their identity."""
    return {int((field.metadata or {})[FIELD_ID]): field.name for field in schema if FIELD_ID in (field.metadata or {})}


def _constant(text: str | None, kind: pa.DataType, rows: int) -> pa.ChunkedArray:
    if text is None:
        return pa.chunked_array([pa.nulls(rows, kind)])
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        text = f"{text}Z"  # Delta writes such values in UTC, without the zone.
    return pa.chunked_array([pa.repeat(pa.scalar(text, pa.string()).cast(kind), rows)])
