"""The source of a load: a snapshot with its CSN, locks on the tables, and what the tables are like in it."""

from __future__ import annotations

import select
from collections.abc import Callable, Sequence
from typing import Any, Final

from ggshell.connectors.postgres import session
from ggshell.connectors.postgres.compare_side import own_tables
from ggshell.connectors.postgres.describe import like_pattern
from ggshell.connectors.postgres.held_snapshot import HeldSnapshot
from ggshell.connectors.postgres.load_books import SCHEMA
from ggshell.connectors.postgres.load_definitions import definitions_of
from ggshell.connectors.postgres.load_job import JobSetup, prepare_source
from ggshell.connectors.postgres.schema_dump import read_dump
from ggshell.connectors.postgres.session import execute
from ggshell.errors import NO_TABLE, DatabaseError, NotFoundError, UsageError
from ggshell.pipeline.load.databases import Definitions, SourceTable
from ggshell.pipeline.load.tasks import RunTask
from ggshell.plurals import counted
from ggshell.types import TableName, postgres_literal, quote, quote_table, split_name

ATTEMPTS: Final = 5
WAIT_SECONDS: Final = 0.5
LOCKED_TOGETHER: Final = 200
TID_RANGES_SINCE: Final = 140_000
_NOT_OF_USERS: Final = f"n.nspname NOT LIKE 'pg\\_%%' AND n.nspname NOT IN ('information_schema', '{SCHEMA}')"
_ROOTS: Final = f"""
SELECT c.oid::bigint, n.nspname, c.relname
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND {_NOT_OF_USERS}
   AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
   AND n.nspname LIKE %(owner)s AND c.relname LIKE %(name)s AND (NOT c.relispartition OR %(exact)s)"""
_TABLES: Final = """
SELECT c.oid::bigint, n.nspname, c.relname, c.relkind::text, pg_table_size(c.oid), pg_relation_size(c.oid)
       / current_setting('block_size')::int, greatest(c.reltuples, 0)::bigint, c.relpersistence = 'p',
       row_security_active(c.oid), c.relfilenode::bigint, has_table_privilege(c.oid, 'SELECT'),
       (SELECT ARRAY[m.nspname::text, r.relname::text] FROM pg_class r JOIN pg_namespace m ON m.oid = r.relnamespace
         WHERE c.relispartition AND r.oid = pg_partition_root(c.oid))
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.oid = ANY (%(oids)s) OR c.oid IN (
   SELECT t.relid FROM unnest(%(oids)s) AS roots (oid) CROSS JOIN LATERAL pg_partition_tree(roots.oid::regclass) t)
 ORDER BY 2, 3"""
_COLUMNS: Final = """
SELECT a.attrelid::bigint, a.attname, format_type(a.atttypid, a.atttypmod),
       t.typtype = 'e' OR b.oid < 10000 AND b.typnamespace = 'pg_catalog'::regnamespace AND b.typsend <> 0 AND b.typreceive <> 0
         AND b.typname !~ '^_?(reg|money$|xml$)'
  FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid JOIN pg_type b ON b.oid = coalesce(nullif(t.typbasetype, 0), t.oid)
 WHERE a.attrelid = ANY (%s) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
 ORDER BY a.attrelid, a.attnum"""
_SHAPES: Final = """
SELECT c.oid::bigint, c.relfilenode::bigint, (SELECT array_agg((attnum, attname, atttypid, attisdropped)::text ORDER BY attnum)
       FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0)::text
  FROM pg_class c WHERE c.oid = ANY (%s) ORDER BY 1"""
_OF_TABLES: Final = """EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
   AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i') AND d.refobjid = ANY (%(oids)s))"""
_SEQUENCES: Final = f"""
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind = 'S' AND c.relpersistence <> 't' AND {_NOT_OF_USERS}
   AND ({_OF_TABLES} OR n.nspname = ANY (%(schemas)s)) ORDER BY 1, 2"""
_VIEWS: Final = f"""
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind = 'm' AND c.relispopulated AND {_NOT_OF_USERS} AND n.nspname = ANY (%s) ORDER BY c.oid"""
_SCHEMAS: Final = f"SELECT n.nspname FROM pg_namespace n WHERE {_NOT_OF_USERS} AND n.nspname LIKE ANY (%s) ORDER BY 1"
_EXTENSIONS: Final = """
SELECT e.extname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
 WHERE e.extname <> 'plpgsql' AND (n.nspname IN ('public', 'pg_catalog') OR n.nspname = ANY (%s)) ORDER BY 1"""


class PostgresLoadSnapshot:
    """A snapshot of some tables, which are locked against DDL until it is closed."""

    def __init__(self, conninfo: str, patterns: Sequence[str], target: int, pause: Callable[[float], bool]) -> None:
        self._conninfo = conninfo
        self._patterns = patterns
        self._target = target
        self._pause = pause
        self._held = self._stable()
        self._connection = self._held.connection
        self.csn = self._held.csn
        self.divides = self._connection.info.server_version >= TID_RANGES_SINCE
        self.encoding = self._encoding()
        self.id = str(execute(self._connection, "SELECT pg_export_snapshot()")[0][0])
        self.setup = JobSetup(conninfo, "", self.id, self._source_id())

    def _wait(self, descriptor: int) -> bool:
        """Wait until a descriptor is readable; False if the load is to end."""
        while not select.select([descriptor], [], [], WAIT_SECONDS)[0]:
            if self._pause(0):
                return False
        return True

    def _stable(self) -> HeldSnapshot:
        """Take a snapshot and the locks; again if a table was changed in between."""
        for _ in range(ATTEMPTS):
            held = HeldSnapshot.take(self._conninfo, "load", self._wait)
            if held is None:
                raise DatabaseError("LOAD was interrupted")
            try:
                prepare_source(held.connection)
                self._rows = self._found(held.connection)
                if self._locked(held.connection):
                    return held
            except BaseException:
                held.close()
                raise
            held.close()
        raise DatabaseError("concurrent DDL keeps changing the source tables", hint="stop the DDL, then run LOAD again")

    def _found(self, connection: Any) -> list[tuple[Any, ...]]:
        """The tables that the patterns name, with their partitions.

        Raises NotFoundError if a pattern names neither a table nor a whole schema, which may have no table.
        """
        own = own_tables(connection)
        oids: dict[int, None] = {}
        for pattern in self._patterns or ("*.*",):
            parts = split_name(pattern)
            owner, name = parts[-2:] if len(parts) > 1 else ("public", parts[0])
            exact = not set("*?") & set(pattern)
            values = {"owner": like_pattern(owner), "name": like_pattern(name), "exact": exact}
            roots = execute(connection, _ROOTS, values)
            without = name == "*" and execute(connection, _SCHEMAS, [[like_pattern(owner)]])
            if not roots and not without and self._patterns:
                raise NotFoundError(
                    f"no table matches {pattern}", code=NO_TABLE, hint="check schema, spelling and case"
                )
            oids |= {int(oid): None for oid, *table in roots if exact or TableName(*table) not in own}
        return execute(connection, _TABLES, {"oids": list(oids)})

    def _locked(self, connection: Any) -> bool:
        """Lock the tables. False if one of them was changed since the snapshot: its rows may not be visible in it."""
        refused = [str(TableName(row[1], row[2])) for row in self._rows if not row[10]]
        if refused:
            raise DatabaseError(
                f"the user may not read {', '.join(refused[:10])}", hint="GRANT SELECT on these tables to the user"
            )
        names = [quote_table(TableName(row[1], row[2])) for row in self._rows]
        try:
            for place in range(0, len(names), LOCKED_TOGETHER):
                together = ", ".join(f"ONLY {name}" for name in names[place : place + LOCKED_TOGETHER])
                execute(connection, f"LOCK TABLE {together} IN ACCESS SHARE MODE")
        except DatabaseError as error:
            if "does not exist" in error.message:
                return False
            raise
        oids = [row[0] for row in self._rows]
        with session.connect(self._conninfo) as beside:
            return execute(connection, _SHAPES, [oids]) == execute(beside, _SHAPES, [oids])

    def _encoding(self) -> str:
        found = str(
            execute(
                self._connection,
                "SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()",
            )[0][0]
        )
        return found if found == "SQL_ASCII" else ""

    def _source_id(self) -> str:
        rows = execute(self._connection, "SELECT system_identifier FROM pg_control_system()")
        return f"{rows[0][0]}/{self._connection.info.dbname}"

    def _schemas(self) -> list[str]:
        """The schemas of the patterns, all without patterns; also those without tables."""
        owners = [like_pattern(split_name(pattern)[-2]) for pattern in self._patterns] or ["%"]
        return [row[0] for row in execute(self._connection, _SCHEMAS, [owners])]

    def tables(self) -> list[SourceTable]:
        """The tables with rows of their own."""
        columns: dict[int, list[tuple[str, str, bool]]] = {}
        for relation, *column in execute(self._connection, _COLUMNS, [[row[0] for row in self._rows]]):
            columns.setdefault(relation, []).append((column[0], column[1], bool(column[2])))
        return [self._table(row, columns.get(row[0], [])) for row in self._rows if row[3] == "r"]

    def _table(self, row: tuple[Any, ...], columns: list[tuple[str, str, bool]]) -> SourceTable:
        portable = all(each[2] for each in columns) and not self.encoding
        shape = tuple((name, kind) for name, kind, _ in columns)
        return SourceTable(
            TableName(row[1], row[2]),
            shape,
            int(row[4]),
            int(row[5]),
            int(row[6]),
            portable,
            bool(row[7]),
            bool(row[8]),
            TableName(*row[11]) if row[11] else None,
        )

    def parents(self) -> list[TableName]:
        return [TableName(row[1], row[2]) for row in self._rows if row[3] == "p"]

    def large_objects(self) -> int:
        return int(execute(self._connection, "SELECT count(*) FROM pg_largeobject_metadata")[0][0])

    def refuse_large_objects(self) -> None:
        """Raise DatabaseError if the whole database is loaded and has large objects."""
        count = 0 if self._patterns else self.large_objects()
        if count:
            raise DatabaseError(
                f"the source has {counted(count, 'large object')}, which LOAD does not copy",
                code="GGS-00746",
                hint="move them to columns of type bytea, or name the tables in TABLE to load them without large objects",
            )

    def definitions(self) -> Definitions:
        """Read the definitions. Raises NotFoundError, DatabaseError, UsageError for a table that is not a whole schema."""
        from psycopg.conninfo import conninfo_to_dict

        self.refuse_large_objects()
        fields = {name: str(value) for name, value in conninfo_to_dict(self._conninfo).items()}
        version = self._connection.info.server_version
        return definitions_of(read_dump(fields, self.id, version, self._target, self._choice()), self.tables())

    def _choice(self) -> list[str]:
        """The options of pg_dump that select the schemas of the patterns, and leave out the tables of replication itself."""
        found = [f"--exclude-table={quote_table(name)}" for name in sorted(own_tables(self._connection))]
        if not self._patterns:
            return found
        for pattern in self._patterns:
            parts = split_name(pattern)
            if len(parts) < 2 or parts[-1] != "*":
                raise UsageError(
                    f"DEFINITIONS creates whole schemas, not {pattern}",
                    hint="TABLE schema.*, or LOAD without DEFINITIONS",
                )
        schemas = self._schemas()
        extensions = [row[0] for row in execute(self._connection, _EXTENSIONS, [schemas])]
        found += [f"--schema={quote(name)}" for name in schemas]
        return found + [f"--extension={quote(name)}" for name in extensions]

    def sequences(self, *, every: bool) -> list[RunTask]:
        """The statements that give the sequences their values, of the time when this is called."""
        values = {"oids": [row[0] for row in self._rows], "schemas": self._schemas() if every else []}
        found = []
        for owner, name in execute(self._connection, _SEQUENCES, values):
            sequence = TableName(owner, name)
            last, called = execute(self._connection, f"SELECT last_value, is_called FROM {quote_table(sequence)}")[0]
            literal = postgres_literal(quote_table(sequence))
            value = f"setval({literal}, {last}, {str(called).lower()})"
            text = f"SELECT {value} WHERE to_regclass({literal}) IS NOT NULL"
            found.append(RunTask(f"sequence {sequence}", f"sequence {sequence}", text))
        return found

    def views(self) -> list[RunTask]:
        names = [TableName(*row) for row in execute(self._connection, _VIEWS, [self._schemas()])]
        return [
            RunTask(f"view {name}", f"materialized view {name}", f"REFRESH MATERIALIZED VIEW {quote_table(name)}")
            for name in names
        ]

    def close(self) -> None:
        self._held.close()
