"""SCHEMATRANDATA: captures every table of a schema, including tables created later, from their first row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.connectors.postgres import describe, trandata
from ggshell.connectors.postgres import schema_trandata_sql as sql
from ggshell.connectors.postgres.session import execute, transaction
from ggshell.connectors.postgres.slot import ensure_publication
from ggshell.errors import DatabaseError, GgsError, NotFoundError
from ggshell.types import quote

if TYPE_CHECKING:
    import psycopg


class SchemaTrandata(NamedTuple):
    """The state of a schema. ``enabled``: the event trigger exists and fires; ``whole``: all columns (ALLCOLS)."""

    schema: str
    added: bool
    whole: bool = False
    enabled: bool = False


def info(connection: psycopg.Connection[Any], pattern: str) -> list[SchemaTrandata]:
    """The state of the schemas that a name or pattern matches. Raises NotFoundError when there are none."""
    names = execute(
        connection,
        "SELECT nspname FROM pg_namespace WHERE nspname LIKE %s AND nspname NOT LIKE 'pg\\_%%'"
        " AND nspname NOT IN ('information_schema', %s) ORDER BY 1",
        [describe.like_pattern(pattern), sql.SCHEMA],
    )
    if not names:
        raise NotFoundError(f"schema {pattern} does not exist", code="GGS-00211", hint="check spelling and case")
    here, fires = sql.schemas(connection), sql.fires(connection)
    return [SchemaTrandata(name, name in here, here.get(name, False), name in here and fires) for (name,) in names]


def add(connection: psycopg.Connection[Any], schema: str, *, whole: bool = False) -> trandata.TrandataOutcome:
    """Install the event trigger, then add TRANDATA to the existing tables. A refused table does not stop the others.

    Returns the result for the tables. Raises DatabaseError naming the missing privilege.
    """
    ensure_publication(connection)
    try:
        with transaction(connection):
            sql.install(connection)
            execute(
                connection,
                f"INSERT INTO {sql.TABLE} VALUES (%s, %s)"
                " ON CONFLICT (schema_name) DO UPDATE SET all_columns = excluded.all_columns",
                [schema, whole],
            )
    except GgsError as error:
        raise _missing_right(error, schema) from error
    return trandata.add_all(connection, describe.matching(connection, f"{quote(schema)}.*"), all_columns=whole)


def _missing_right(error: GgsError, schema: str) -> GgsError:
    if getattr(error.__cause__, "sqlstate", "") != trandata.DENIED:
        return error
    return DatabaseError(
        f"SCHEMATRANDATA requires an event trigger, which only a superuser can create: {error.message}",
        code="GGS-00418",
        hint=f"log in as a superuser once, or run ADD TRANDATA {schema}.* now and after each CREATE TABLE (Extract reports"
        " the tables that are not captured)",
    )


def delete(connection: psycopg.Connection[Any], schema: str) -> trandata.TrandataOutcome:
    """Remove SCHEMATRANDATA, and the event trigger if it is unneeded. Raises NotFoundError, DatabaseError."""
    if schema not in sql.schemas(connection):
        raise NotFoundError(
            f"schema {schema} has no SCHEMATRANDATA",
            code="GGS-00211",
            hint="use INFO SCHEMATRANDATA * to list the schemas",
        )
    try:
        execute(connection, f"DELETE FROM {sql.TABLE} WHERE schema_name = %s", [schema])
    except GgsError as error:
        raise _missing_right(error, schema) from error
    return trandata.delete_all(connection, describe.matching(connection, f"{quote(schema)}.*"))
