"""Writes a script that makes a target's rows equal to the source's. A person reads and runs it; ggshell never does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ggshell.connectors.mysql.session import quote_name
from ggshell.connectors.mysql.statements import quote_table
from ggshell.pipeline.compare.drill import Difference, DifferenceKind, Values
from ggshell.pipeline.compare.portable import Family
from ggshell.types import TableName, text_literal

if TYPE_CHECKING:
    from ggshell.pipeline.compare.tables import ComparedColumns

HEAD: Final = """-- Makes the rows of the target equal to those of the source, as COMPARE found them{when}.
-- Rows that were in flight are left out. A row that has changed in the target since then is not changed.
-- Read the script before you run it; run it in the target: mariadb < this-file
{marked}SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES';
SET SESSION time_zone = '+00:00';
SET NAMES utf8mb4;
SET SESSION foreign_key_checks = 0;
START TRANSACTION;
"""
UNLOGGED: Final = """-- The changes are not logged: no Extract captures them. The user needs the privilege BINLOG ADMIN.
-- To replicate the changes from the target to other databases, write the script with REPAIR file REPLICATE.
SET SESSION sql_log_bin = 0;
"""
_NUMBERS: Final = frozenset({Family.INTEGER, Family.DECIMAL, Family.FLOAT, Family.TRUTH})

Compared = tuple[TableName, "ComparedColumns", Sequence[Difference]]


def script(tables: Iterable[Compared], when: str = "", *, replicated: bool = False) -> str:
    """The whole script: deletions first, then changes and insertions."""
    compared = list(tables)
    lines = [
        line
        for kinds in ((DifferenceKind.EXTRA,), (DifferenceKind.CHANGED, DifferenceKind.MISSING))
        for table, columns, found in compared
        for line in _statements(table, columns, [each for each in found if not each.in_flight and each.kind in kinds])
    ]
    head = HEAD.format(when=f" at {when}" if when else "", marked="" if replicated else UNLOGGED)
    return "".join([head, *(f"{line}\n" for line in lines), "COMMIT;\n"])


def _statements(table: TableName, columns: ComparedColumns, found: Iterable[Difference]) -> Iterator[str]:
    name, names = quote_table(table), columns.names
    for each in found:
        if each.source is None and each.target is not None:
            yield f"DELETE FROM {name} WHERE {_equals(columns, names, each.target)} LIMIT 1;"
        elif each.source is not None and each.target is None:
            values = ", ".join(_literal(columns, *pair) for pair in zip(names, each.source, strict=True))
            yield f"INSERT INTO {name} ({', '.join(map(quote_name, names))}) VALUES ({values});"
        elif each.source is not None and each.target is not None:
            rows = list(zip(names, each.source, each.target, strict=True))
            changed = [(column, value) for column, value, before in rows if value != before]
            sets = ", ".join(f"{quote_name(column)} = {_literal(columns, column, value)}" for column, value in changed)
            yield f"UPDATE {name} SET {sets} WHERE {_equals(columns, names, each.target)} LIMIT 1;"


def _equals(columns: ComparedColumns, names: Sequence[str], row: Values) -> str:
    return " AND ".join(
        f"{quote_name(name)} <=> {_literal(columns, name, value)}" for name, value in zip(names, row, strict=True)
    )


def _literal(columns: ComparedColumns, name: str, value: str | None) -> str:
    if value is None:
        return "NULL"
    family = columns.families[name]
    if family in _NUMBERS:
        return value
    if family is Family.BYTES:
        return f"x'{value}'"
    return f"b'{value}'" if family is Family.BITS else text_literal(value)
