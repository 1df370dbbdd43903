"""The present row of a target table, as a conflict is resolved by it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ggshell.apply.target import TableMapping, TargetColumn
from ggshell.databases.postgres.describe import quote, quote_table
from ggshell.databases.postgres.session import translate

if TYPE_CHECKING:
    import psycopg


def fetch_row(
    connection: psycopg.Connection[Any], mapping: TableMapping, key: Mapping[int, bytes | None]
) -> dict[int, bytes | None] | None:
    """Read and lock it, its values in the server's text form by the source's column indexes.  Raises DatabaseError."""
    import psycopg

    columns = [(index, column) for index, column in enumerate(mapping.columns) if column is not None]
    parts: list[str] = []
    values: list[str] = []
    for index, column in columns:
        if index not in key:
            continue
        value = key[index]
        name = _name(column)
        parts.append(f"{name} IS NULL" if value is None else f"{name} = %s")
        values += [] if value is None else [value.decode()]
    names = ", ".join(_name(column) for _, column in columns)
    table = quote_table(mapping.target.name).replace("%", "%%")
    text = f"SELECT {names} FROM {table} WHERE {' AND '.join(parts) or 'true'} LIMIT 1 FOR UPDATE"
    try:
        result = connection.execute(text, values).pgresult
    except psycopg.Error as error:
        raise translate(error) from error
    if result is None or not result.ntuples:
        return None
    return {index: result.get_value(0, place) for place, (index, _) in enumerate(columns)}


def _name(column: TargetColumn) -> str:
    return quote(column.name).replace("%", "%%")
