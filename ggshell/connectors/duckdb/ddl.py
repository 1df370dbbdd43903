"""Makes DuckDB's own statements of the DDL statements of a PostgreSQL source, from the columns that their records contain.

Tables are created, changed, renamed, emptied and dropped. Constraints, defaults and comments of a table are left out. A
statement that would need more, such as a view or rows that the log does not contain, is refused.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Final

from ggshell.pipeline.apply.target import Refusal, TargetNames, TargetTable
from ggshell.record.ddl import DdlColumn, DdlStatement
from ggshell.record.sql_text import Token, TokenKind, tokens
from ggshell.types import TableName, quote, quote_table

NOT_SUPPORTED: Final = "0A000"
_TYPES: Final = {
    "smallint": "SMALLINT",
    "integer": "INTEGER",
    "bigint": "BIGINT",
    "real": "REAL",
    "double precision": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "time without time zone": "TIME",
    "timestamp without time zone": "TIMESTAMP",
    "timestamp with time zone": "TIMESTAMPTZ",
    "uuid": "UUID",
    "bytea": "BLOB",
    "json": "JSON",
    "jsonb": "JSON",
    "interval": "INTERVAL",
}
_NUMERIC = re.compile(r"numeric\((\d+),(\d+)\)")
_PRECISION = re.compile(r"\(\d+\)(?= with|$)")
_ROWS_FOLLOW: Final = frozenset(
    [
        "now",
        "current_timestamp",
        "clock_timestamp",
        "gen_random_uuid",
        "random",
        "nextval",
        "serial",
        "bigserial",
        "identity",
    ]
)
"""Words of a column whose values differ from row to row: the source writes the rows to the log again."""
_MOVES_ROWS: Final = ("ATTACH", "DETACH", "INHERIT")


class _NotSupportedError(Exception):
    """A statement that cannot be made for DuckDB; its text says what."""


def own_statements(statement: DdlStatement, names: TargetNames, there: TargetTable | None) -> list[str] | Refusal:
    """Return the statements of DuckDB that do the same; none if nothing is to be done.

    ``there``: the target table of the main object as it is now, under the name of ``old_name``.
    """
    try:
        return list(_own_statements(statement, names, there))
    except _NotSupportedError as error:
        return Refusal(f"DuckDB does not execute {error} (SQLSTATE {NOT_SUPPORTED})", NOT_SUPPORTED)


def old_name(statement: DdlStatement) -> TableName:
    """Return the name of the main object before the statement."""
    name, found = statement.main.name, list(tokens(statement.text))
    words = [token.word for token in found]
    if statement.tag != "ALTER TABLE" or "RENAME" not in words or words[words.index("RENAME") + 1] != "TO":
        return name
    return TableName(name.owner, found[words.index("RENAME") - 1].name)


def duck_type(type_name: str) -> str:
    """Return the type of a column of DuckDB for a type of PostgreSQL; one without a counterpart becomes a text."""
    if type_name.endswith("[]"):
        return f"{duck_type(type_name.removesuffix('[]'))}[]"
    numeric = _NUMERIC.fullmatch(type_name)
    if numeric is not None and int(numeric[1]) <= 38:
        return f"DECIMAL({numeric[1]},{numeric[2]})"
    return _TYPES.get(_PRECISION.sub("", type_name), "VARCHAR")


def _own_statements(statement: DdlStatement, names: TargetNames, there: TargetTable | None) -> Iterator[str]:
    table = names.table(statement.main.name)
    match statement.tag:
        case "CREATE TABLE" | "CREATE TABLE AS" | "SELECT INTO":
            yield from _create(statement, table)
        case "ALTER TABLE":
            yield from _alter(statement, names, table, there)
        case "DROP TABLE":
            for each in statement.objects:
                yield f"DROP TABLE {quote_table(names.table(each.name))}"
        case "TRUNCATE TABLE":
            yield f"TRUNCATE {quote_table(table)}"
        case "CREATE SCHEMA":
            yield f"CREATE SCHEMA IF NOT EXISTS {quote(names.schema(statement.main.name.name))}"
        case "COMMENT" | "GRANT" | "REVOKE":
            return
        case _:
            raise _NotSupportedError(statement.tag)


def _create(statement: DdlStatement, table: TableName) -> Iterator[str]:
    words = [token.word for token in tokens(statement.text)]
    if ("PARTITION", "OF") in itertools.pairwise(words):
        return  # the log has its rows under the name of the partitioned table
    if not statement.columns:
        raise _NotSupportedError("CREATE TABLE without columns")
    columns = ", ".join(f"{quote(column.name)} {duck_type(column.type_name)}" for column in statement.columns)
    yield f"CREATE SCHEMA IF NOT EXISTS {quote(table.owner)}"
    yield f"CREATE TABLE {quote_table(table)} ({columns})"


def _alter(statement: DdlStatement, names: TargetNames, table: TableName, there: TargetTable | None) -> Iterator[str]:
    found = list(tokens(statement.text))
    words = [token.word for token in found]
    moved = next((word for word in _MOVES_ROWS if word in words), None)
    if moved is not None or ("SET", "SCHEMA") in itertools.pairwise(words):
        raise _NotSupportedError(f"ALTER TABLE … {moved or 'SET SCHEMA'}")
    if there is None:
        raise _NotSupportedError(f"ALTER TABLE of {table}, which does not exist")
    if there.name != table:
        yield f"ALTER TABLE {quote_table(there.name)} RENAME TO {quote(table.name)}"
    renamed = _renamed(found)
    if renamed is not None:
        yield f"ALTER TABLE {quote_table(table)} RENAME COLUMN {quote(renamed[0])} TO {quote(renamed[1])}"
    before = {
        (renamed[1] if renamed is not None and column.name == renamed[0] else column.name): column.type_name
        for column in there.columns
    }
    yield from _columns(statement.columns, before, table, found)


def _columns(
    columns: Sequence[DdlColumn], before: dict[str, str], table: TableName, found: Sequence[Token]
) -> Iterator[str]:
    """The statements that give a table the columns of the source."""
    alter, after = f"ALTER TABLE {quote_table(table)}", {column.name for column in columns}
    retyped = _retyped(found)
    for column in columns:
        wanted = duck_type(column.type_name)
        if column.name not in before:
            yield f"{alter} ADD COLUMN {quote(column.name)} {wanted}{_default(column.name, wanted, found)}"
        elif column.name in retyped:
            if any(token.word == "USING" for token in found):
                raise _NotSupportedError("ALTER COLUMN … TYPE … USING")
            if wanted != before[column.name]:
                yield f"{alter} ALTER COLUMN {quote(column.name)} TYPE {wanted}"
    for name in before:
        if name not in after:
            yield f"{alter} DROP COLUMN {quote(name)}"


def _renamed(found: Sequence[Token]) -> tuple[str, str] | None:
    """The old and the new name of a column that is renamed."""
    words = [token.word for token in found]
    if "RENAME" not in words or words[words.index("RENAME") + 1] in ("TO", "CONSTRAINT"):
        return None
    place = words.index("RENAME") + 1
    place += words[place] == "COLUMN"
    return found[place].name, found[place + 2].name


def _retyped(found: Sequence[Token]) -> set[str]:
    """The columns whose type is changed: ALTER [COLUMN] name [SET DATA] TYPE."""
    names = set()
    for place, token in enumerate(found):
        before = (
            found[place - 3 : place]
            if [each.word for each in found[place - 2 : place]] == ["SET", "DATA"]
            else found[place - 1 : place]
        )
        if token.word == "TYPE" and before:
            names.add(before[0].name)
    return names


def _default(name: str, type_name: str, found: Sequence[Token]) -> str:
    """The default of a new column, which existing rows receive; a literal, or empty.

    Values that a function computes for each row follow in the log.
    """
    place = next(number for number, token in enumerate(found) if token.name == name and number > 2)
    definition = list(_definition(found[place + 1 :]))
    words = [token.word for token in definition]
    if "GENERATED" in words and "IDENTITY" not in words:
        raise _NotSupportedError("ADD COLUMN of a generated column")
    if _ROWS_FOLLOW & {word.lower() for word in words} or "DEFAULT" not in words:
        return ""
    value = definition[words.index("DEFAULT") + 1 :]
    sign = "-" if value and value[0].text == "-" else ""
    literal = value[1 if sign else 0] if len(value) > bool(sign) else None
    rest = value[2 if sign else 1 :]
    if (
        literal is None
        or not _is_constant(literal)
        or (rest and rest[0].word not in ("NOT", "NULL", "CHECK", "UNIQUE"))
    ):
        raise _NotSupportedError("ADD COLUMN … DEFAULT with an expression")
    return f" DEFAULT CAST({sign}{literal.text} AS {type_name})"


def _is_constant(token: Token) -> bool:
    plain = token.kind is TokenKind.LITERAL and (token.text[0] == "'" or token.text[0].isdigit())
    return plain or token.word in ("TRUE", "FALSE", "NULL")


def _definition(found: Sequence[Token]) -> Iterator[Token]:
    """The tokens up to the comma that ends a column's definition."""
    depth = 0
    for token in found:
        depth += (token.text == "(") - (token.text == ")")
        if token.text == "," and not depth:
            return
        yield token
