"""The definition of a table, as a source describes it and a trail's Metadata record stores it."""

from __future__ import annotations

from typing import NamedTuple

from ggshell.types import TableName


class Column(NamedTuple):
    """One column: its name, type text (``numeric(10,2)``) and type id (PostgreSQL: OID) in the source database.

    ``number`` identifies the column as long as its table exists, even if it is renamed (PostgreSQL: attnum); 0 if unknown.
    ``missing``: the text of its value in rows that are older than the column, which their log records do not contain
    (PostgreSQL: attmissingval); None if it is NULL or unknown.
    """

    name: str
    type_name: str
    type_id: int = 0
    nullable: bool = True
    number: int = 0
    missing: str | None = None


class TableDefinition(NamedTuple):
    """A table's columns in log order; a column's index in row images is its index here.

    ``key`` holds the indexes of the columns that identify a row (primary key or KEYCOLS); if it is empty, all columns do.
    """

    name: TableName
    columns: tuple[Column, ...]
    key: tuple[int, ...]

    @property
    def identity(self) -> tuple[int, ...]:
        """The columns that identify a row: the key, or all columns."""
        return self.key or tuple(range(len(self.columns)))
