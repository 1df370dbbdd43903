"""DDL statements that PostgreSQL executes only outside of a transaction, and what an interrupted one leaves.

CREATE INDEX CONCURRENTLY and REINDEX CONCURRENTLY leave an invalid index, DETACH PARTITION CONCURRENTLY a partition that is
only half detached. If a process ends between the statement and its checkpoint, the statement is executed again.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.connectors.postgres.session import execute
from ggshell.pipeline.apply.target import TargetNames
from ggshell.record.ddl import DdlStatement
from ggshell.record.sql_text import Token, tokens
from ggshell.types import TableName, quote_table

if TYPE_CHECKING:
    import psycopg


class OutsideKind(Enum):
    """The statements that run outside of a transaction."""

    CREATE_INDEX = auto()
    DROP_INDEX = auto()
    REINDEX = auto()
    DETACH = auto()


def outside_statement(statement: DdlStatement) -> OutsideKind | None:
    """Return the kind of a statement that only runs outside of a transaction; None for any other."""
    if "CONCURRENTLY" not in statement.text.upper() and statement.operation != "REINDEX":
        return None
    words = [token.word for token in tokens(statement.text)]
    if words[:3] == ["CREATE", "INDEX", "CONCURRENTLY"] or words[:4] == ["CREATE", "UNIQUE", "INDEX", "CONCURRENTLY"]:
        return OutsideKind.CREATE_INDEX
    if words[:3] == ["DROP", "INDEX", "CONCURRENTLY"]:
        return OutsideKind.DROP_INDEX
    if words[:1] == ["REINDEX"]:  # that of a schema or of a partitioned table commits after each index
        return OutsideKind.REINDEX
    detaches = words[:2] == ["ALTER", "TABLE"] and "DETACH" in words and words[-1] == "CONCURRENTLY"
    return OutsideKind.DETACH if detaches else None


class _Index(NamedTuple):
    name: TableName
    valid: bool


_INDEXES = """
SELECT n.nspname, c.relname, i.indisvalid
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE i.indrelid = to_regclass(%s)"""
_INDEX = """
SELECT i.indisvalid FROM pg_index i WHERE i.indexrelid = to_regclass(%s)"""
_DETACHED = """
SELECT coalesce((SELECT i.inhdetachpending FROM pg_inherits i
                  WHERE i.inhrelid = to_regclass(%s) AND i.inhparent = to_regclass(%s)), false),
       NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = to_regclass(%s) AND i.inhparent = to_regclass(%s))"""


class OutsideStatement:
    """A statement that an earlier run may have executed, completely or in part."""

    def __init__(self, kind: OutsideKind, statement: DdlStatement, names: TargetNames) -> None:
        self._kind = kind
        self._statement = statement
        self._names = names

    def resume(self, connection: psycopg.Connection[Any]) -> bool:
        """Complete or remove what the earlier run has left; return whether nothing remains to be done.

        Raises DatabaseError.
        """
        if self._kind is OutsideKind.CREATE_INDEX:
            return self._resume_index(connection)
        if self._kind is OutsideKind.DROP_INDEX:
            names = self._indexes("INDEX")
            return bool(names) and all(not execute(connection, _INDEX, [quote_table(name)]) for name in names)
        if self._kind is OutsideKind.REINDEX:
            self._drop_copies(connection)
            return False
        return self._resume_detach(connection)

    def _resume_index(self, connection: psycopg.Connection[Any]) -> bool:
        for name in self._indexes("INDEX"):
            found = execute(connection, _INDEX, [quote_table(name)])
            if found and not found[0][0]:
                execute(connection, f"DROP INDEX CONCURRENTLY {quote_table(name)}")
            elif found:
                return True
        return False

    def _drop_copies(self, connection: psycopg.Connection[Any]) -> None:
        """Drop the invalid copies that an interrupted REINDEX CONCURRENTLY has left."""
        tables = {each.table for each in self._statement.objects if each.table is not None}
        for table in sorted(tables):
            for owner, name, valid in execute(connection, _INDEXES, [quote_table(self._names.table(table))]):
                index = _Index(TableName(owner, name), valid)
                if not index.valid and "_cc" in index.name.name:
                    execute(connection, f"DROP INDEX CONCURRENTLY IF EXISTS {quote_table(index.name)}")

    def _resume_detach(self, connection: psycopg.Connection[Any]) -> bool:
        parent = quote_table(self._names.table(self._statement.main.name))
        found = self._partition()
        if found is None:
            return False
        partition = quote_table(self._names.table(found))
        ((pending, detached),) = execute(connection, _DETACHED, [partition, parent] * 2)
        if pending:
            execute(connection, f"ALTER TABLE {parent} DETACH PARTITION {partition} FINALIZE")
        return bool(pending or detached)

    def _partition(self) -> TableName | None:
        """Return the partition that the text names; a name without a schema is taken to be in that of the main table."""
        found: list[Token] = list(tokens(self._statement.text))
        place = next((number for number, token in enumerate(found) if token.word == "PARTITION"), None)
        if place is None:
            return None
        parts = [token.name for token in found[place + 1 : -1] if token.name]
        if not parts:
            return None
        return TableName(parts[-2] if len(parts) > 1 else self._statement.main.name.owner, parts[-1])

    def _indexes(self, kind: str) -> list[TableName]:
        return [self._names.other(each.name) for each in self._statement.objects if each.kind == kind]
