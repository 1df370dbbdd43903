"""The columns of a current table that the source does not have: metadata, the mark of soft deletes, validity of versions."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ggshell.connectors.lake.net_effects import Changes, ColumnTexts
from ggshell.errors import ApplyError
from ggshell.parameters.lake_tables import Deletes, Metadata, TableLayout
from ggshell.query.values import texts
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.trail.arrow import ArrowRows

DELETED: Final = "_deleted"
VALID_FROM, VALID_TO, CURRENT = "_valid_from", "_valid_to", "_current"
_TIME: Final = "timestamp with time zone"
_TYPES: Final = {Metadata.CSN: "text", Metadata.COMMITTIME: _TIME, Metadata.OP: "text", Metadata.XID: "text"}
_COLUMNS: Final = {Metadata.CSN: "csn", Metadata.COMMITTIME: "commit_ts", Metadata.XID: "xid"}
_INSERTS: Final = (int(IoType.INSERT),)
_DELETES: Final = (int(IoType.DELETE), int(IoType.PURGE_DATA))


def extra_columns(layout: TableLayout) -> tuple[Column, ...]:
    """The columns that a layout adds to a table. Rows that are older than a mark exist, and are present versions."""
    found = [Column(each.value, _TYPES[each]) for each in layout.metadata]
    if layout.deletes is Deletes.MARKED:
        found.append(Column(DELETED, "boolean", missing="f"))
    if layout.deletes is Deletes.CLOSED:
        found += [Column(VALID_FROM, _TIME), Column(VALID_TO, _TIME), Column(CURRENT, "boolean", missing="t")]
    return tuple(found)


def extended(definition: TableDefinition, layout: TableLayout) -> TableDefinition:
    """A definition with the columns of a layout. Raises ApplyError if the source has a column of such a name."""
    extra = extra_columns(layout)
    names = {column.name for column in definition.columns}
    for column in extra:
        if column.name in names:
            raise ApplyError(
                f"column {column.name} of {definition.name} has a name that LAKETABLE gives to a column of the lake",
                hint="correct LAKETABLE, or exclude the table",
            )
    return definition._replace(columns=(*definition.columns, *extra)) if extra else definition


def with_extras(changes: Changes, rows: ArrowRows, chosen: NDArray[np.int64], layout: TableLayout) -> Changes:
    """Changes with the values of the columns of a layout. A soft delete becomes an update that marks the row."""
    count = len(changes.io_type)
    every = np.ones(count, np.bool_)
    definition = extended(changes.definition, layout)
    found = list(changes.columns)
    if layout.metadata:
        facts = rows.record_batch(list(_COLUMNS.values())).take(pa.array(chosen))
        for each in layout.metadata:
            column = Column(each.value, _TYPES[each])
            values = operations(changes.io_type) if each is Metadata.OP else texts(facts.column(_COLUMNS[each]))
            found.append(ColumnTexts(column, values, every))
    io_type = changes.io_type
    if layout.deletes is Deletes.MARKED:
        deletes = io_type == int(IoType.DELETE)
        marks = pa.array(np.where(np.isin(io_type, _DELETES), "t", "f").tolist(), pa.string())
        found.append(ColumnTexts(Column(DELETED, "boolean"), marks, every))
        io_type = np.where(deletes, int(IoType.FIELD_COMP), io_type).astype(np.uint8)
    return changes._replace(definition=definition, io_type=io_type, columns=tuple(found))


def operations(io_type: NDArray[np.uint8]) -> pa.Array:
    """INSERT, UPDATE or DELETE for each change; a TRUNCATE deletes rows."""
    words = np.where(np.isin(io_type, _DELETES), "DELETE", "UPDATE")
    return pa.array(np.where(np.isin(io_type, _INSERTS), "INSERT", words).tolist(), pa.string())
