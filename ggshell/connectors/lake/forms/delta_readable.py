"""The current version of a Delta table as a list of files and deleted rows."""

from __future__ import annotations

import numpy as np

from ggshell.connectors.lake.data_files import ReadableFile, ReadableTable
from ggshell.connectors.lake.forms.delta_rows import Vectors
from ggshell.connectors.lake.forms.delta_state import table_location, table_state
from ggshell.connectors.lake.forms.source_record import source_record
from ggshell.errors import NO_TABLE, NotFoundError
from ggshell.types import TableName


def delta_table(lake: str, name: TableName | None) -> ReadableTable:
    """A table of a lake (None: the log). Raises NotFoundError, StoreError."""
    location = table_location(lake, name)
    state = table_state(location)
    if state is None:
        raise NotFoundError(f"{location} is not a Delta table", code=NO_TABLE)
    vectors = Vectors(state)
    files = []
    for file in state.files.values():
        deleted = np.asarray(vectors.of(file).to_array(), "<i8").tobytes() if file.vector is not None else b""
        files.append(ReadableFile(f"{location}/{file.file}", deleted, dict(file.partition), file.size))
    said = source_record(state.configuration)
    return ReadableTable(state.schema, tuple(files), (), said.key_names, frozenset(said.numbers))
