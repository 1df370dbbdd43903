"""Fills the demo: schemas on both servers, deterministic rows in north, a consistent copy to a target, and a final
transaction as a marker: where it is visible, every transaction before it is visible too.

The database computes rows from their number and a seed, so the same seed creates the same shop on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from uuid import uuid4

import psycopg
from psycopg import sql

from ggshell.demo.servers import ADMIN, ADMIN_PASSWORD, DemoServers

SCHEMA = "shop"
MIRROR = "mirror"
DEFAULT_SEED = 7


def prepare_database(servers: DemoServers, name: str, schemas: tuple[str, ...]) -> None:
    """Create a server's database, the replication role and the given schemas without rows; what exists is kept."""
    server = dict(servers.both())[name]
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        _make_role(connection)
        if not connection.execute("SELECT FROM pg_database WHERE datname = %s", [name]).fetchall():
            owner = sql.Identifier(ADMIN)
            connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), owner))
    with psycopg.connect(servers.dsn(name), autocommit=True) as connection:
        _grant(connection)
        for schema in schemas:
            make_schema(connection, schema)


def _make_role(connection: psycopg.Connection) -> None:
    if not connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [ADMIN]).fetchall():
        create = sql.SQL("CREATE ROLE {} LOGIN REPLICATION PASSWORD {}")
        connection.execute(create.format(sql.Identifier(ADMIN), sql.Literal(ADMIN_PASSWORD)))


def _grant(connection: psycopg.Connection) -> None:
    """Grant what replication needs besides the tables: a schema, session_replication_role and replication origins."""
    admin = sql.Identifier(ADMIN)
    connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {} AUTHORIZATION {}").format(admin, admin))
    connection.execute(sql.SQL("GRANT SET ON PARAMETER session_replication_role TO {}").format(admin))
    origin = "SELECT oid::regprocedure::text FROM pg_proc WHERE proname LIKE 'pg\\_replication\\_origin\\_%'"
    for (function,) in connection.execute(origin).fetchall():
        connection.execute(sql.SQL("GRANT EXECUTE ON FUNCTION {} TO {}").format(sql.SQL(function), admin))


def make_schema(connection: psycopg.Connection, schema: str) -> bool:
    """Create the shop's empty tables in a schema; returns False if the schema exists."""
    if connection.execute("SELECT FROM pg_namespace WHERE nspname = %s", [schema]).fetchall():
        return False
    name, admin = sql.Identifier(schema), sql.Identifier(ADMIN)
    with connection.transaction():
        connection.execute(sql.SQL("SET LOCAL ROLE {}").format(admin))
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(name))
        connection.execute(sql.SQL("SET LOCAL search_path TO {}").format(name))
        connection.execute(_text("schema.sql"))
    return True


def load_rows(connection: psycopg.Connection, schema: str = SCHEMA, *, seed: int = DEFAULT_SEED) -> int:
    """Fill an empty shop in one transaction and return the number of rows."""
    with connection.transaction():
        connection.execute(sql.SQL("SET LOCAL search_path TO {}").format(sql.Identifier(schema)))
        connection.execute("SET LOCAL timezone TO 'UTC'")
        cursor = connection.execute(_text("rows.sql").replace("@seed@", str(int(seed))))
        rows = max(cursor.rowcount, 0)
        while cursor.nextset():
            rows += max(cursor.rowcount, 0)
    connection.execute("ANALYZE")
    return rows


def _text(name: str) -> str:
    return files("ggshell.demo").joinpath(name).read_text(encoding="utf-8")


def is_empty(connection: psycopg.Connection, schema: str = SCHEMA) -> bool:
    """Whether the shop has no customers yet."""
    query = sql.SQL("SELECT FROM {} LIMIT 1").format(sql.Identifier(schema, "customers"))
    return not connection.execute(query).fetchall()


def copy_rows(source: str, target: str, pairs: tuple[tuple[str, str], ...]) -> int:
    """Replace the target's rows with a consistent snapshot of the source's, and return the number of rows copied.

    ``pairs`` are (source schema, target schema). The target's foreign keys are not checked row by row: a snapshot of
    the source satisfies them.
    """
    rows = 0
    with psycopg.connect(source) as reader, psycopg.connect(target) as writer:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        writer.execute("SET LOCAL session_replication_role TO replica")
        for source_schema, target_schema in pairs:
            for table, columns in _copied_columns(reader, source_schema):
                rows += _copy_table(reader, writer, (source_schema, target_schema, table), columns)
    return rows


def _copied_columns(reader: psycopg.Connection, schema: str) -> Iterator[tuple[str, list[str]]]:
    """The tables of a schema (a partitioned table counts once) with all columns that are not generated."""
    rows = reader.execute(
        """SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum)
             FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
            WHERE c.relnamespace = %s::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
              AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' GROUP BY c.relname ORDER BY c.relname""",
        [f'"{schema}"'],
    ).fetchall()
    yield from rows


def _copy_table(
    reader: psycopg.Connection, writer: psycopg.Connection, names: tuple[str, str, str], columns: list[str]
) -> int:
    source, target = sql.Identifier(names[0], names[2]), sql.Identifier(names[1], names[2])
    listed = sql.SQL(", ").join(map(sql.Identifier, columns))
    writer.execute(sql.SQL("DELETE FROM {}").format(target))
    with reader.cursor() as out, writer.cursor() as into:
        select = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT").format(listed, source)
        with out.copy(select) as taken, into.copy(sql.SQL("COPY {} ({}) FROM STDIN").format(target, listed)) as given:
            for block in taken:
                given.write(block)
        return into.rowcount


def send_marker(source: str) -> str:
    """Commit one row in the source's shop and return the text that identifies it."""
    text = f"last {uuid4()}"
    statement = 'INSERT INTO {} ("User", "When", "select") VALUES (%s, now(), NULL)'
    with psycopg.connect(source, autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(sql.Identifier(SCHEMA, "Audit Trail")), (text,))
    return text


def has_marker(target: psycopg.Connection, schema: str, text: str) -> bool:
    """Whether the row has reached a schema of the target."""
    query = sql.SQL('SELECT FROM {} WHERE "User" = %s').format(sql.Identifier(schema, "Audit Trail"))
    return bool(target.execute(query, (text,)).fetchall())
