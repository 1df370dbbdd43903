"""Target tables as DuckDB's catalog describes them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ggshell.apply.target import ForeignKey, TargetColumn, TargetTable
from ggshell.databases.duckdb.session import execute
from ggshell.types import TableName

if TYPE_CHECKING:
    import duckdb

_HERE = "database_name = current_database() AND schema_name = ? AND table_name = ?"
_COLUMNS = f"SELECT column_name, data_type, is_generated FROM duckdb_columns() WHERE {_HERE} ORDER BY column_index"
_CONSTRAINTS = f"""
SELECT constraint_type, constraint_column_names, referenced_table, referenced_column_names
  FROM duckdb_constraints() WHERE {_HERE} ORDER BY constraint_index"""
_INDEXES = f"SELECT expressions FROM duckdb_indexes() WHERE is_unique AND NOT is_primary AND {_HERE}"
_REFERENCED = """
SELECT 1 FROM duckdb_constraints()
 WHERE database_name = current_database() AND constraint_type = 'FOREIGN KEY' AND referenced_table = ? LIMIT 1"""
_PLAIN = re.compile(r"[A-Za-z_]\w*")
_QUOTED = re.compile(r"""'?"((?:[^"]|"")*)"'?""")
_INEXACT = ("DECIMAL", "FLOAT", "DOUBLE", "INTERVAL", "TIME WITH", "TIMESTAMP WITH", "JSON", "VARIANT")


def target_table(connection: duckdb.DuckDBPyConnection, table: TableName) -> TargetTable | None:
    """A table, None when it does not exist."""
    columns = tuple(_column(*row) for row in execute(connection, _COLUMNS, [*table]))
    if not columns:
        return None
    constraints = execute(connection, _CONSTRAINTS, [*table])
    keys = [tuple(names) for kind, names, *_ in constraints if kind == "PRIMARY KEY"]
    unique = [frozenset(names) for kind, names, *_ in constraints if kind in ("PRIMARY KEY", "UNIQUE")]
    indexes = [_index_columns(str(row[0]), columns) for row in execute(connection, _INDEXES, [*table])]
    return TargetTable(
        name=table,
        columns=columns,
        key=keys[0] if keys else (),
        unique=(*unique, *(names for names in indexes if names is not None)),
        foreign=tuple(
            ForeignKey(tuple(own), TableName(table.owner, parent), tuple(others))
            for kind, own, parent, others in constraints
            if kind == "FOREIGN KEY"
        ),
        referenced=bool(execute(connection, _REFERENCED, [table.name])),
        opaque=None in indexes,
    )


def _column(name: str, type_name: str, is_generated: Any) -> TargetColumn:
    exact = not type_name.upper().startswith(_INEXACT) and not type_name.endswith("]")
    return TargetColumn(name, type_name, type_name.partition("(")[0], writable=not is_generated, exact=exact)


def _index_columns(expressions: str, columns: tuple[TargetColumn, ...]) -> frozenset[str] | None:
    """The columns of an index as the catalog writes them (``[a, '"b c"']``), None when it has an expression."""
    names = {column.name for column in columns}
    found: set[str] = set()
    for part in expressions.strip("[]").split(", "):
        quoted = _QUOTED.fullmatch(part)
        name = quoted[1].replace('""', '"') if quoted else part
        if name not in names or not (quoted or _PLAIN.fullmatch(part)):
            return None
        found.add(name)
    return frozenset(found)
