"""The target of a load: the checks before it, and the work of one connection besides the jobs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ggshell.connectors.postgres import session
from ggshell.connectors.postgres.load_books import LoadBooks
from ggshell.connectors.postgres.load_job import PROGRAM, JobSetup, prepare_target
from ggshell.connectors.postgres.session import execute, transaction
from ggshell.errors import DatabaseError
from ggshell.pipeline.load.databases import TargetTable
from ggshell.types import TableName, quote_table

_ONLY_SINCE: Final = 180_000
"""The version from which ANALYZE of a partitioned table can leave its partitions out."""
_TABLES: Final = """
SELECT n.nspname, c.relname, c.relkind::text, row_security_active(c.oid),
       EXISTS (SELECT FROM pg_depend d JOIN pg_constraint f ON f.oid = d.objid
                WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid AND d.classid = 'pg_constraint'::regclass
                  AND f.contype = 'f' AND f.confrelid = c.oid AND f.conrelid <> c.oid),  -- confrelid has no index
       EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgenabled <> 'D'),
       ARRAY(SELECT a.attname FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
              AND a.attgenerated = '' ORDER BY a.attnum),
       ARRAY(SELECT format_type(a.atttypid, a.atttypmod) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0
              AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum)
  FROM unnest(%s::text[], %s::text[]) AS wanted (owner, name)
  JOIN pg_namespace n ON n.nspname = wanted.owner JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = wanted.name"""


class PostgresLoadTarget:
    """A connection to the target."""

    def __init__(self, conninfo: str, source_id: str) -> None:
        self._conninfo = conninfo
        self._connection = session.connect(conninfo, program=PROGRAM)
        prepare_target(self._connection)
        self.books = LoadBooks(self._connection, source_id)
        self.version = self._connection.info.server_version

    def silent(self) -> bool:
        return bool(execute(self._connection, "SELECT current_setting('session_replication_role') = 'replica'")[0][0])

    def tables(self, names: Iterable[TableName]) -> dict[TableName, TargetTable]:
        wanted = list(names)
        rows = execute(self._connection, _TABLES, [[each.owner for each in wanted], [each.name for each in wanted]])
        return {
            TableName(owner, name): TargetTable(
                tuple(zip(columns, types, strict=True)),
                self._is_empty(TableName(owner, name), kind),
                refers,
                fires,
                secured,
            )
            for owner, name, kind, secured, refers, fires, columns, types in rows
        }

    def _is_empty(self, table: TableName, kind: str) -> bool:
        if kind != "r":
            return kind == "p"
        return not execute(self._connection, f"SELECT 1 FROM ONLY {quote_table(table)} LIMIT 1")

    def missing_roles(self, roles: Iterable[str]) -> list[str]:
        asked = (
            "SELECT name FROM unnest(%s::text[]) AS name WHERE name NOT IN (SELECT rolname FROM pg_roles) ORDER BY 1"
        )
        return [row[0] for row in execute(self._connection, asked, [list(roles)])]

    def empty(self, table: TableName) -> None:
        """Remove the rows of a table, and what is recorded about it. Raises DatabaseError."""
        found = self.tables([table]).get(table)
        with transaction(self._connection):
            if found is not None and not found.empty:
                how = "DELETE FROM ONLY" if found.referenced else "TRUNCATE ONLY"
                execute(self._connection, f"{how} {quote_table(table)}")
            self.books.forget_table(table)

    def remove(self, statements: str) -> None:
        """Remove the objects of an earlier load; a schema stays if it holds anything else."""
        for statement in filter(None, statements.splitlines()):
            try:
                execute(self._connection, statement)
            except DatabaseError:
                if not statement.startswith("DROP SCHEMA"):
                    raise
        self.books.forget_definitions()

    def job_setup(self, source: JobSetup) -> JobSetup:
        return source._replace(target=self._conninfo)

    def analyze(self, table: TableName, *, parent: bool = False) -> str:
        only = "ONLY " if parent and self.version >= _ONLY_SINCE else ""
        return f"ANALYZE {only}{quote_table(table)}"

    def close(self) -> None:
        self._connection.close()


def open_target(conninfo: str, source: Any) -> PostgresLoadTarget:
    """Connect to the target of a load; ``source``: the setup of its snapshot."""
    return PostgresLoadTarget(conninfo, source.source_id)
