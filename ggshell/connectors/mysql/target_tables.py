"""Describes target tables from the information schema, and refuses those that a Replicat cannot apply to safely."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ggshell.connectors.mysql.literals import LABELED
from ggshell.connectors.mysql.session import execute
from ggshell.errors import ApplyError
from ggshell.pipeline.apply.target import ForeignKey, TargetColumn, TargetTable
from ggshell.types import TableName

if TYPE_CHECKING:
    from pymysql.connections import Connection

LONGEST_NAME: Final = 64
"""The longest name of a table or database, in characters."""
_EXACT: Final = frozenset(
    {
        "tinyint",
        "smallint",
        "mediumint",
        "int",
        "bigint",
        "bit",
        "date",
        "datetime",
        "timestamp",
        "time",
        "year",
        "uuid",
        "varbinary",
        "tinyblob",
        "blob",
        "mediumblob",
        "longblob",
    }
)
"""Types whose equal values have the same text. Texts are equal under a collation, also if they differ."""
_TABLE: Final = """
SELECT t.TABLE_TYPE, t.ENGINE, COALESCE(e.TRANSACTIONS, 'NO') FROM information_schema.TABLES t
  LEFT JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE WHERE t.TABLE_SCHEMA = %s AND t.TABLE_NAME = %s"""
_COLUMNS: Final = """
SELECT COLUMN_NAME, LOWER(DATA_TYPE), COLUMN_TYPE, COALESCE(GENERATION_EXPRESSION, ''), COLLATION_NAME,
       LOWER(EXTRA) LIKE '%%on update%%'
  FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION"""
_UNIQUE: Final = """
SELECT INDEX_NAME, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS
 WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND NON_UNIQUE = 0
 ORDER BY INDEX_NAME = 'PRIMARY' DESC, INDEX_NAME, SEQ_IN_INDEX"""
_FOREIGN: Final = """
SELECT CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME
  FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND REFERENCED_TABLE_NAME IS NOT NULL
 ORDER BY CONSTRAINT_NAME, ORDINAL_POSITION"""
_CASCADES: Final = """
WITH RECURSIVE up (owner, name) AS (
  SELECT UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS
   WHERE CONSTRAINT_SCHEMA = %s AND TABLE_NAME = %s AND {rule}_RULE = 'CASCADE'
   UNION
  SELECT r.UNIQUE_CONSTRAINT_SCHEMA, r.REFERENCED_TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS r
    JOIN up ON r.CONSTRAINT_SCHEMA = up.owner AND BINARY r.TABLE_NAME = BINARY up.name WHERE r.{rule}_RULE = 'CASCADE')
SELECT owner, name FROM up ORDER BY 1, 2"""
_REFERRED: Final = """
SELECT TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, REFERENCED_COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE
 WHERE REFERENCED_TABLE_SCHEMA = %s AND REFERENCED_TABLE_NAME = %s"""


def target_table(connection: Connection[Any], table: TableName, *, any_engine: bool = False) -> TargetTable | None:
    """Describe a table; None if it does not exist.

    Raises ApplyError for a name that no table can have, and for a table whose engine has no transactions unless
    ``any_engine``.
    """
    for part in table:
        if len(part) > LONGEST_NAME:
            raise ApplyError(
                f"the name {part} is too long: MariaDB and MySQL allow {LONGEST_NAME} characters",
                code="GGS-00483",
                hint="name a shorter TARGET in MAP",
            )
    found = execute(connection, _TABLE, [*table])
    if not found:
        return None
    kind, engine, transactions = found[0]
    if "VIEW" not in str(kind).upper() and str(transactions).upper() != "YES" and not any_engine:
        raise ApplyError(
            f"target table {table} has the engine {engine}, which does not support transactions: rows could be applied twice"
            " or in part",
            code="GGS-00484",
            hint=f"ALTER TABLE {table} ENGINE = InnoDB, or allow it with DBOPTIONS ALLOWNONTRANSACTIONAL",
        )
    columns = tuple(_column(*row) for row in execute(connection, _COLUMNS, [*table]))
    unique, opaque = _unique(execute(connection, _UNIQUE, [*table]))
    referred = _referred(execute(connection, _REFERRED, [*table]))
    return TargetTable(
        name=table,
        columns=columns,
        key=unique.get("PRIMARY", ()),
        unique=tuple(map(frozenset, unique.values())),
        cascades=_cascades(connection, table, "DELETE"),
        followed=_cascades(connection, table, "UPDATE"),
        foreign=_foreign(execute(connection, _FOREIGN, [*table])),
        referenced=bool(referred),
        opaque=opaque,
        referred=referred,
    )


def _cascades(connection: Connection[Any], table: TableName, rule: str) -> tuple[TableName, ...]:
    """The tables whose deletes or updates cascade to a table, directly or not."""
    return tuple(TableName(*row) for row in execute(connection, _CASCADES.format(rule=rule), [*table]))


def _column(name: str, base: str, whole: str, expression: str, collation: str | None, renewed: int) -> TargetColumn:
    return TargetColumn(
        name,
        whole if base in LABELED else whole.partition(" /*")[0],
        base,
        writable=not expression,
        comparable=True,
        exact=base in _EXACT and collation is None,
        renewed=bool(renewed),
    )


def _unique(rows: list[tuple[Any, ...]]) -> tuple[dict[str, tuple[str, ...]], bool]:
    """The columns of each unique index, and whether one covers an expression or a part of a column."""
    found: dict[str, tuple[str, ...]] = {}
    partial: set[str] = set()
    for index, column, part in rows:
        if column is None or part is not None:
            partial.add(index)
        found[index] = (*found.get(index, ()), str(column))
    return {index: columns for index, columns in found.items() if index not in partial}, bool(partial)


def _referred(rows: list[tuple[Any, ...]]) -> tuple[frozenset[str], ...]:
    """Each set of columns that foreign keys refer to. An index is enough for them, also one that is not unique."""
    found: dict[tuple[str, str, str], set[str]] = {}
    for owner, child, name, column in rows:
        found.setdefault((owner, child, name), set()).add(column)
    return tuple(dict.fromkeys(map(frozenset, found.values())))


def _foreign(rows: list[tuple[Any, ...]]) -> tuple[ForeignKey, ...]:
    """The foreign keys of a table."""
    found: dict[str, ForeignKey] = {}
    for name, column, owner, parent, parent_column in rows:
        before = found.get(name, ForeignKey((), TableName(owner, parent), ()))
        found[name] = before._replace(
            columns=(*before.columns, column), parent_columns=(*before.parent_columns, parent_column)
        )
    return tuple(found.values())
