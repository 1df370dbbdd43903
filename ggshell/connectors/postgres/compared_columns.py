"""What COMPARE reads of a PostgreSQL table: its columns, and those that identify a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from ggshell.pipeline.compare.portable import Family

if TYPE_CHECKING:
    from ggshell.pipeline.compare.tables import ComparedColumns


_FAMILIES: Final = {
    "smallint": Family.INTEGER,
    "integer": Family.INTEGER,
    "bigint": Family.INTEGER,
    "numeric": Family.DECIMAL,
    "real": Family.FLOAT,
    "double precision": Family.FLOAT,
    "boolean": Family.TRUTH,
    "bit": Family.BITS,
    "bit varying": Family.BITS,
    "bytea": Family.BYTES,
    "date": Family.DATE,
    "time without time zone": Family.TIME,
    "interval": Family.DURATION,
    "timestamp without time zone": Family.MOMENT,
    "timestamp with time zone": Family.MOMENT,
    "jsonb": Family.DOCUMENT,
}


def family_of(type_name: str) -> Family:
    """The family of a type from the catalog; arrays and unknown types are texts."""
    head, _, rest = type_name.partition("(")
    return _FAMILIES.get(f"{head.strip()}{rest.partition(')')[2]}", Family.TEXT)


class ComparedColumn(NamedTuple):
    """A column from the catalog; ``key`` is its place in the primary key, or None."""

    name: str
    type: str
    is_text: bool
    is_generated: bool
    identity: str
    key: int | None


@dataclass(frozen=True, slots=True)
class PostgresColumns:
    """What is compared of a table: the columns with stored values, and those that identify a row (none: all do)."""

    columns: tuple[ComparedColumn, ...]
    key_is_complete: ClassVar[bool] = True

    @property
    def key(self) -> tuple[ComparedColumn, ...]:
        return tuple(sorted((each for each in self.columns if each.key is not None), key=lambda each: each.key or 0))

    @property
    def key_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.key)

    @property
    def families(self) -> Mapping[str, Family]:
        return {column.name: family_of(column.type) for column in self.columns}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def postgres_columns(columns: ComparedColumns) -> PostgresColumns:
    """The columns with their types; none for a table that could not be compared."""
    return columns if isinstance(columns, PostgresColumns) else PostgresColumns(())
