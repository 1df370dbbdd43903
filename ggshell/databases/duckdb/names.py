"""Names for SQL."""

from __future__ import annotations

from ggshell.types import TableName


def quote(name: str) -> str:
    """An identifier for SQL."""
    return '"' + name.replace('"', '""') + '"'


def quote_table(table: TableName) -> str:
    return f"{quote(table.owner)}.{quote(table.name)}"
