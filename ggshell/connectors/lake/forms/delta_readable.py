"""The current version of a Delta table as a list of files and deleted rows."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable

from ggshell.connectors.lake.data_files import ReadableFile, ReadableTable
from ggshell.connectors.lake.rows import plain
from ggshell.errors import NotFoundError

_PARTITION = "partition."


def delta_table(location: str) -> ReadableTable:
    """The table at a location. Raises NotFoundError."""
    if not DeltaTable.is_deltatable(location):
        raise NotFoundError(f"{location} is not a Delta table")
    table = DeltaTable(location)
    schema = plain(pa.schema(table.schema().to_arrow()))
    deleted = _deleted(table) if "deletionVectors" in (table.protocol().reader_features or []) else {}
    files = []
    for row in pa.table(table.get_add_actions(flatten=True)).to_pylist():
        path = f"{location}/{unquote(row['path'])}"
        constants = {name.removeprefix(_PARTITION): _text(row[name]) for name in row if name.startswith(_PARTITION)}
        files.append(ReadableFile(path, deleted.get(Path(path).name, b""), constants))
    return ReadableTable(schema, tuple(files))


def _deleted(table: DeltaTable) -> dict[str, bytes]:
    """The positions of deleted rows by the name of the data file, which is unique."""
    found = pa.table(table.deletion_vectors())
    return {
        Path(unquote(row["filepath"])).name: np.flatnonzero(~np.array(row["selection_vector"], bool))
        .astype("<i8")
        .tobytes()
        for row in found.to_pylist()
    }


def _text(value: object) -> str | None:
    return None if value is None else str(value)
