"""A PostgreSQL database as one side of a move."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from ggshell.connectors.move_side import MARKERS, OWN_SCHEMA, Direction
from ggshell.connectors.postgres import ddl_capture_sql, describe, schema_trandata_sql, sequence_values, slot
from ggshell.connectors.postgres.compare_side import PostgresComparison
from ggshell.connectors.postgres.session import connect, execute, transaction
from ggshell.errors import DatabaseError
from ggshell.record.sequences import SequenceValue
from ggshell.types import Csn, TableName, quote, quote_table

_LOOK_SECONDS: Final = 0.001
_MOST_LOOKS: Final = 5000
"""Sessions may take five seconds to end."""
_MARKERS: Final = quote_table(MARKERS)
_SCHEMAS = """
SELECT n.nspname FROM pg_namespace n
 WHERE n.nspname NOT LIKE 'pg\\_%%' AND n.nspname NOT IN ('information_schema', %s)
   AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_namespace'::regclass AND d.objid = n.oid AND d.deptype = 'e')
   AND (n.nspname <> 'public' OR EXISTS (
     SELECT FROM (SELECT 'pg_class'::regclass::oid AS kind, c.oid FROM pg_class c
                   WHERE c.relnamespace = n.oid AND c.relkind <> ALL ('{i,I}')
                  UNION ALL SELECT 'pg_proc'::regclass, p.oid FROM pg_proc p WHERE p.pronamespace = n.oid
                  UNION ALL SELECT 'pg_type'::regclass, t.oid FROM pg_type t WHERE t.typnamespace = n.oid) own
      WHERE NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = own.kind AND d.objid = own.oid AND d.deptype IN ('e', 'i'))))
 ORDER BY 1"""
_WITH_TABLES = """
SELECT n.nspname FROM pg_namespace n WHERE n.nspname = ANY (%s)
   AND EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'p')) ORDER BY 1"""
_LOADED = f"""
WITH parts AS (SELECT owner, name, csn FROM {OWN_SCHEMA}.load_part WHERE owner = ANY (%s))
SELECT owner, name, max(csn) FROM (
  SELECT * FROM parts
  UNION ALL
  SELECT n.nspname, c.relname, p.csn
    FROM parts p JOIN pg_class c ON c.oid = pg_partition_root(to_regclass(format('%%I.%%I', p.owner, p.name)))
    JOIN pg_namespace n ON n.oid = c.relnamespace) AS named GROUP BY owner, name"""
"""With the roots of partitions, under whose names the trail has their rows. All partitions of a root have the same CSN."""
_CLIENTS = """
FROM pg_stat_activity
 WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
   AND application_name NOT LIKE 'ggshell%%' AND backend_start <= %s"""
_PREPARED = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() LIMIT 1"
_IS_CLOSED = """
SELECT EXISTS (SELECT FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase
 WHERE d.datname = current_database() AND s.setrole = 0 AND 'default_transaction_read_only=on' = ANY (s.setconfig))"""
_OBJECTS = """
WITH chosen AS (SELECT oid FROM pg_namespace WHERE nspname = ANY (%(schemas)s))
SELECT kind, count(*) FROM (
    SELECT CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'i' THEN 'index'
           WHEN 'I' THEN 'partitioned index' WHEN 'S' THEN 'sequence' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'
           WHEN 'f' THEN 'foreign table' WHEN 'c' THEN 'composite type' END, c.tableoid, coalesce(x.indrelid, c.oid)
      FROM pg_class c LEFT JOIN pg_index x ON x.indexrelid = c.oid
     WHERE c.relnamespace IN (SELECT oid FROM chosen) AND c.relkind <> 't'
    UNION ALL
    SELECT CASE p.prokind WHEN 'p' THEN 'procedure' WHEN 'a' THEN 'aggregate' ELSE 'function' END, p.tableoid, p.oid
      FROM pg_proc p WHERE p.pronamespace IN (SELECT oid FROM chosen)
    UNION ALL
    SELECT CASE t.typtype WHEN 'e' THEN 'enum' WHEN 'd' THEN 'domain' WHEN 'r' THEN 'range' END, t.tableoid, t.oid
      FROM pg_type t WHERE t.typnamespace IN (SELECT oid FROM chosen) AND t.typtype IN ('e', 'd', 'r')
    UNION ALL
    SELECT CASE n.contype WHEN 'p' THEN 'primary key' WHEN 'u' THEN 'unique constraint' WHEN 'f' THEN 'foreign key'
           WHEN 'c' THEN 'check constraint' ELSE 'other constraint' END,
           CASE WHEN n.contypid = 0 THEN 'pg_class'::regclass ELSE 'pg_type'::regclass END, greatest(n.conrelid, n.contypid)
      FROM pg_constraint n WHERE n.connamespace IN (SELECT oid FROM chosen) AND n.contype NOT IN ('n', 't')
    UNION ALL
    SELECT 'trigger', c.tableoid, c.oid FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid
     WHERE c.relnamespace IN (SELECT oid FROM chosen) AND NOT g.tgisinternal AND g.tgname NOT LIKE 'ggshell\\_%%'
    UNION ALL
    SELECT 'policy', c.tableoid, c.oid FROM pg_policy y JOIN pg_class c ON c.oid = y.polrelid
     WHERE c.relnamespace IN (SELECT oid FROM chosen)
    UNION ALL
    SELECT 'statistics object', x.tableoid, x.oid FROM pg_statistic_ext x
     WHERE x.stxnamespace IN (SELECT oid FROM chosen)) AS objects (kind, catalog, owner)
 WHERE NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = catalog AND d.objid = owner AND d.deptype = 'e')
 GROUP BY kind ORDER BY kind"""
"""Objects of extensions are left out: another version of an extension has others."""


class PostgresMoveSide:
    """A database of a move, with a connection of its own."""

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._connection = connect(conninfo, program="ggshell move")
        self._changed_at: datetime | None = None

    def schemas(self) -> list[str]:
        return [row[0] for row in execute(self._connection, _SCHEMAS, [OWN_SCHEMA])]

    def with_tables(self, schemas: Sequence[str]) -> list[str]:
        return [row[0] for row in execute(self._connection, _WITH_TABLES, [list(schemas)])]

    def loaded(self, schemas: Sequence[str]) -> dict[TableName, Csn]:
        rows = execute(self._connection, _LOADED, [list(schemas)])
        return {TableName(owner, name): Csn.parse(csn) for owner, name, csn in rows}

    def prepare(self) -> None:
        with transaction(self._connection):
            execute(self._connection, f"CREATE SCHEMA IF NOT EXISTS {quote(OWN_SCHEMA)}")
            execute(
                self._connection,
                f"CREATE TABLE IF NOT EXISTS {_MARKERS} (direction text PRIMARY KEY, number bigint NOT NULL)",
            )
            execute(
                self._connection,
                f"INSERT INTO {_MARKERS} SELECT unnest(%s::text[]), 0 ON CONFLICT DO NOTHING",
                [list(Direction)],
            )

    def has(self, table: TableName) -> bool:
        return describe.table_id(self._connection, table) is not None

    def is_registered(self, extract: str) -> bool:
        return slot.slot_status(self._connection, slot.slot_name(extract)) is not None

    def write_marker(self, direction: Direction, number: int) -> None:
        execute(self._connection, f"UPDATE {_MARKERS} SET number = %s WHERE direction = %s", [number, direction])

    def marker(self, direction: Direction) -> int:
        rows = execute(self._connection, f"SELECT number FROM {_MARKERS} WHERE direction = %s", [direction])
        return int(rows[0][0]) if rows else 0

    def close_to_clients(self) -> None:
        waiting = execute(self._connection, _PREPARED)
        if waiting:
            raise DatabaseError(
                f"the prepared transaction {waiting[0][0]} is open",
                code="GGS-01250",
                hint="COMMIT PREPARED or ROLLBACK PREPARED it, then repeat the step",
            )
        self._set_default("SET default_transaction_read_only = on")
        self._changed_at = execute(self._connection, "SELECT clock_timestamp()")[0][0]

    def open_to_clients(self) -> None:
        self._set_default("RESET default_transaction_read_only")
        self._changed_at = execute(self._connection, "SELECT clock_timestamp()")[0][0]

    @property
    def is_closed(self) -> bool:
        return bool(execute(self._connection, _IS_CLOSED)[0][0])

    @property
    def captures_ddl(self) -> bool:
        return schema_trandata_sql.fires(self._connection) and ddl_capture_sql.fires(self._connection)

    def _set_default(self, what: str) -> None:
        name = execute(self._connection, "SELECT current_database()")[0][0]
        execute(self._connection, f"ALTER DATABASE {quote(name)} {what}")

    def end_earlier_sessions(self) -> int:
        ended: set[int] = set()
        for _ in range(_MOST_LOOKS):
            # A session that was connecting appears late, so each look ends those that it finds.
            asked = f"SELECT pid, pg_terminate_backend(pid), pg_sleep({_LOOK_SECONDS}) {_CLIENTS}"
            left = {int(row[0]) for row in execute(self._connection, asked, [self._changed_at])}
            if not left:
                return len(ended)
            ended |= left
        raise DatabaseError(
            f"client sessions did not end: {', '.join(map(str, sorted(left)))}",
            code="GGS-01263",
            hint="look them up in pg_stat_activity, end them, then repeat the step",
        )

    def sequences(self, schemas: Sequence[str]) -> list[SequenceValue]:
        chosen = frozenset(schemas)
        return sequence_values.read_all(self._connection, lambda name: name.owner in chosen)

    def set_sequences(self, values: Iterable[SequenceValue]) -> None:
        wanted = [(quote_table(value.name), value.last, value.called) for value in values]
        names, last, called = zip(*wanted, strict=True) if wanted else ((), (), ())
        execute(
            self._connection,
            "SELECT setval(name::regclass, last, called)"
            " FROM unnest(%s::text[], %s::bigint[], %s::bool[]) wanted (name, last, called)",
            [list(names), list(last), list(called)],
        )

    def object_counts(self, schemas: Sequence[str]) -> dict[str, int]:
        return {
            str(kind): int(count) for kind, count in execute(self._connection, _OBJECTS, {"schemas": list(schemas)})
        }

    @contextmanager
    def held(self) -> Iterator[PostgresComparison]:
        connection = connect(self._conninfo, program="ggshell move")
        try:
            execute(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            execute(connection, "SELECT pg_current_snapshot()")
            yield PostgresComparison(connection)
        finally:
            connection.close()

    def remove(self) -> None:
        execute(self._connection, f"DROP TABLE IF EXISTS {_MARKERS}")

    def close(self) -> None:
        self._connection.close()
