"""What a load has done, in tables of the target: each row is written in the transaction of the work that it records.

The row of a task is written before its work. A process that was killed can leave a server process that is still at work;
the next load then waits for that row, and knows whether the work was committed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from ggshell.connectors.postgres.session import execute, transaction
from ggshell.pipeline.load.tasks import CopyTask, RunTask
from ggshell.types import TableName

SCHEMA: Final = "ggshell"
TABLES: Final = ("load", "load_part", "load_entry")
_CREATE: Final = (
    f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}",
    f"""CREATE TABLE IF NOT EXISTS {SCHEMA}.load (
  source text PRIMARY KEY, definitions text NOT NULL, removal text NOT NULL, begun timestamptz NOT NULL DEFAULT now())""",
    f"""CREATE TABLE IF NOT EXISTS {SCHEMA}.load_part (
  source text, owner text, name text, part int, parts int NOT NULL, csn text NOT NULL, rows bigint, bytes bigint,
  seconds double precision, PRIMARY KEY (source, owner, name, part))""",
    f"""CREATE TABLE IF NOT EXISTS {SCHEMA}.load_entry (
  source text, entry text, done timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (source, entry))""",
)
_LOCK: Final = 0x67675F6C6F6164
"""The advisory lock of the load that works in a database: ``gg_load``."""


class TableBook(NamedTuple):
    """What is recorded about a table: the CSN, how many parts are there of how many, and their totals."""

    csn: str
    found: int
    parts: int
    rows: int
    bytes: int
    seconds: float

    @property
    def complete(self) -> bool:
        return self.found == self.parts


class LoadBooks:
    """The bookkeeping of the load from one source. ``source`` identifies that database."""

    def __init__(self, connection: Any, source: str) -> None:
        self._connection = connection
        self._source = source

    def lock(self) -> bool:
        """Reserve the target for this load until the connection ends; False if another load has it."""
        return bool(execute(self._connection, "SELECT pg_try_advisory_lock(%s)", [_LOCK])[0][0])

    def create(self) -> None:
        """Create the tables unless they exist. Raises DatabaseError."""
        for statement in () if self._exist() else _CREATE:
            execute(self._connection, statement)

    def _exist(self) -> bool:
        return bool(execute(self._connection, f"SELECT to_regclass('{SCHEMA}.load_entry') IS NOT NULL")[0][0])

    def definitions(self) -> tuple[str, str] | None:
        """The sum of the definitions that were loaded, and the statements that remove them. None if there are none."""
        if not self._exist():
            return None
        asked = f"SELECT definitions, removal FROM {SCHEMA}.load WHERE source = %s"
        rows = execute(self._connection, asked, [self._source])
        return (rows[0][0], rows[0][1]) if rows else None

    def record_definitions(self, content: str, removal: str) -> None:
        execute(
            self._connection,
            f"INSERT INTO {SCHEMA}.load (source, definitions, removal) VALUES (%s, %s, %s) ON CONFLICT (source)"
            " DO UPDATE SET definitions = excluded.definitions, removal = excluded.removal, begun = now()",
            [self._source, content, removal],
        )

    def tables(self) -> dict[TableName, TableBook]:
        if not self._exist():
            return {}
        rows = execute(
            self._connection,
            "SELECT owner, name, min(csn), count(*), max(parts), coalesce(sum(rows), 0)::bigint,"
            f" coalesce(sum(bytes), 0)::bigint, coalesce(sum(seconds), 0) FROM {SCHEMA}.load_part WHERE source = %s"
            " GROUP BY owner, name",
            [self._source],
        )
        return {TableName(owner, name): TableBook(*row) for owner, name, *row in rows}

    def entries(self) -> set[str]:
        """The keys of the entries that are done."""
        asked = f"SELECT entry FROM {SCHEMA}.load_entry WHERE source = %s"
        return {row[0] for row in execute(self._connection, asked, [self._source])}

    def forget_table(self, table: TableName) -> None:
        """Remove the rows of a table in the transaction that empties it."""
        where = "WHERE source = %s AND owner = %s AND name = %s"
        execute(self._connection, f"DELETE FROM {SCHEMA}.load_part {where}", [self._source, *table])

    def forget_entries(self, keys: Iterable[str] | None = None) -> None:
        """Remove some entries, or all of this source."""
        one = "" if keys is None else " AND entry = ANY (%s)"
        values = [self._source, *([] if keys is None else [list(keys)])]
        execute(self._connection, f"DELETE FROM {SCHEMA}.load_entry WHERE source = %s{one}", values)

    def forget_definitions(self) -> None:
        with transaction(self._connection):
            for table in TABLES:
                execute(self._connection, f"DELETE FROM {SCHEMA}.{table} WHERE source = %s", [self._source])

    def begin_part(self, task: CopyTask) -> bool:
        """Record a part in its open transaction; False if it is committed already."""
        return bool(
            execute(
                self._connection,
                f"INSERT INTO {SCHEMA}.load_part (source, owner, name, part, parts, csn) VALUES (%s, %s, %s, %s, %s, %s)"
                " ON CONFLICT DO NOTHING RETURNING 1",
                [self._source, *task.table, task.part, task.parts, task.csn],
            )
        )

    def end_part(self, task: CopyTask, rows: int, size: int, seconds: float) -> None:
        execute(
            self._connection,
            f"UPDATE {SCHEMA}.load_part SET rows = %s, bytes = %s, seconds = %s"
            " WHERE source = %s AND owner = %s AND name = %s AND part = %s",
            [rows, size, seconds, self._source, *task.table, task.part],
        )

    def begin_entry(self, task: RunTask) -> bool:
        """Record an entry in its open transaction; False if it is committed already."""
        asked = f"INSERT INTO {SCHEMA}.load_entry (source, entry) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING 1"
        return bool(execute(self._connection, asked, [self._source, task.key]))
