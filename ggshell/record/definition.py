"""The shape of a table, as a source describes it and as a trail's Metadata record carries it."""

from __future__ import annotations

from typing import NamedTuple

from ggshell.types import TableName


class Column(NamedTuple):
    """One column: the database's own name and type text (``numeric(10,2)``), the type's id there (PostgreSQL: OID)."""

    name: str
    type_name: str
    type_id: int = 0
    nullable: bool = True


class TableDefinition(NamedTuple):
    """A table's columns in log order; a column's index in row images is its place here.

    ``key`` holds the indexes of the columns that identify a row (primary key, or KEYCOLS); empty means that the whole
    row does.
    """

    name: TableName
    columns: tuple[Column, ...]
    key: tuple[int, ...]

    @property
    def identity(self) -> tuple[int, ...]:
        """The columns to find a row by: the key, or all of them."""
        return self.key or tuple(range(len(self.columns)))
