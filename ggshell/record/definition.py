"""The definition of a table, as a source describes it and a trail's Metadata record stores it."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from ggshell.types import TableName

_COLUMN_BITS: Final = 16
FIRST_USER_TYPE: Final = 16384
"""The first OID of types that users of PostgreSQL make (FirstNormalObjectId). No other source has such large type ids."""


class Column(NamedTuple):
    """One column: its name, type text (``numeric(10,2)``) and type id (PostgreSQL: OID) in the source database.

    ``number`` identifies the column as long as its table exists, even if it is renamed: the number of its table (PostgreSQL:
    OID), then in the last 16 bits its own (attnum); 0 if unknown. Earlier versions recorded only its own.
    ``missing``: the text of its value in rows that are older than the column, which their log records do not contain
    (PostgreSQL: attmissingval); None if it is NULL or unknown.
    """

    name: str
    type_name: str
    type_id: int = 0
    nullable: bool = True
    number: int = 0
    missing: str | None = None

    @property
    def known_type(self) -> str:
        """The type text; empty for a type that users of PostgreSQL have made, whose name says nothing of its values."""
        return self.type_name if self.type_id < FIRST_USER_TYPE else ""


class NumberedColumn(Protocol):
    """What identifies a column."""

    @property
    def name(self) -> str: ...

    @property
    def number(self) -> int: ...


def is_same_column(first: NumberedColumn, second: NumberedColumn) -> bool:
    """Whether two descriptions are of the same column: by the numbers or, if these do not tell, by the names."""
    same = same_number(first.number, second.number)
    return first.name == second.name if same is None else same


def column_number(table: int, number: int) -> int:
    """The ``number`` of a column, from the source's numbers of its table and of the column in it."""
    return table << _COLUMN_BITS | number


def table_number(number: int) -> int:
    """The number of the table in the ``number`` of a column; 0 if it is unknown."""
    return number >> _COLUMN_BITS


def no_column(number: int) -> int:
    """A number that is the one of no column of the same table; 0 if the table is unknown."""
    return column_number(table_number(number), 0)


def same_number(first: int, second: int) -> bool | None:
    """Whether two numbers identify the same column. None if they do not tell: then its name does.

    A table that was dropped and created again, or copied to another server, has another number, and its columns have their
    names in common with the former one at best.
    """
    if not first or not second or table_number(first) != table_number(second):
        return None
    return first == second


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
