"""Captures TRUNCATE of a single partition, which PostgreSQL does not log for a table that is published by its root.

A trigger on each partition writes a message to the log instead, in the same transaction and at the same position. When
the root itself is truncated, the log names the root, and the triggers of its partitions write nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ggshell.connectors.postgres.identity import Member
from ggshell.connectors.postgres.session import execute, transaction
from ggshell.errors import DatabaseError
from ggshell.files import read_json
from ggshell.record.definition import Column, TableDefinition
from ggshell.types import TableName, quote_table

if TYPE_CHECKING:
    import psycopg

SCHEMA: Final = "ggshell"
PREFIX: Final = "ggshell.truncate"
TRIGGER: Final = "ggshell_truncate"
ROOT_BEGINS, ROOT_ENDS = f"{TRIGGER}_begins", f"{TRIGGER}_ends"
FUNCTION: Final = f"{SCHEMA}.note_truncate"
CREATE_FUNCTION: Final = f"""
CREATE OR REPLACE FUNCTION {FUNCTION} () RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $body$
BEGIN
  IF tg_nargs > 0 THEN  -- the root: its TRUNCATE is in the log
    PERFORM set_config('{SCHEMA}.truncates', CASE tg_when WHEN 'BEFORE' THEN tg_relid::text ELSE '' END, true);
  ELSIF pg_partition_root(tg_relid) IS NOT NULL
     AND current_setting('{SCHEMA}.truncates', true) IS DISTINCT FROM pg_partition_root(tg_relid)::oid::text THEN
    PERFORM pg_logical_emit_message(true, '{PREFIX}',
      jsonb_build_object('relation', tg_relid::oid::bigint, 'owner', tg_table_schema, 'name', tg_table_name, 'root',
        (SELECT jsonb_build_array(n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE c.oid = pg_partition_root(tg_relid)),
        'columns', (SELECT jsonb_agg(jsonb_build_array(a.attname, format_type(a.atttypid, a.atttypmod), a.atttypid::bigint,
            NOT a.attnotnull, EXISTS (SELECT FROM pg_index x WHERE x.indrelid = tg_relid AND x.indisprimary
                                         AND x.indimmediate AND a.attnum = ANY (x.indkey))) ORDER BY a.attnum)
          FROM pg_attribute a
         WHERE a.attrelid = tg_relid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''))::text);
  END IF;
  RETURN NULL;
END $body$"""


def statements(part: Member) -> list[str]:
    """The statements that create the triggers of a partitioned table or a partition. Empty if none are needed."""
    if part.noted or part.partition == (part.kind == "p"):  # neither a root nor a partition with rows
        return []
    on = f"TRUNCATE ON {quote_table(part.table)} FOR EACH STATEMENT EXECUTE FUNCTION {FUNCTION}"
    if part.partition:
        return [f"CREATE TRIGGER {TRIGGER} BEFORE {on} ()"]
    return [f"CREATE TRIGGER {ROOT_BEGINS} BEFORE {on} ('root')", f"CREATE TRIGGER {ROOT_ENDS} AFTER {on} ('root')"]


def install(connection: psycopg.Connection[Any]) -> str:
    """Create the function in a schema of its own. Return why that is refused, or an empty text."""
    try:
        if execute(connection, "SELECT to_regprocedure(%s)", [f"{FUNCTION}()"])[0][0] is None:
            with transaction(connection):
                execute(connection, f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
                execute(connection, CREATE_FUNCTION)
    except DatabaseError as error:
        return error.message
    return ""


def remove(connection: psycopg.Connection[Any], part: Member) -> None:
    """Drop the triggers of a table."""
    if part.noted:
        for name in (TRIGGER, ROOT_BEGINS, ROOT_ENDS):
            execute(connection, f"DROP TRIGGER IF EXISTS {name} ON {quote_table(part.table)}")


class Noted(NamedTuple):
    """The content of a message: a partition, by its catalog id and its definition, and the root it is captured through.

    The log describes a partition only if a row of it changes, so the message has its columns of this moment. A message that
    an older release's function wrote has neither the root nor columns.
    """

    relation: int
    partition: TableDefinition
    root: TableName | None

    @property
    def table(self) -> TableName:
        return self.partition.name


def noted(content: bytes) -> Noted:
    """Parse the content of a message."""
    found = read_json(content)
    root = TableName(*found["root"]) if found.get("root") else None
    columns = found.get("columns") or ()
    key = tuple(index for index, column in enumerate(columns) if column[4])
    definition = TableDefinition(
        TableName(found["owner"], found["name"]), tuple(Column(*column[:4]) for column in columns), key
    )
    return Noted(int(found["relation"]), definition, root)


def root_of(connection: Any, relation: int) -> TableName | None:
    """The current root of a partition in the catalog. None if the table is no longer a partition."""
    rows = execute(
        connection,
        "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE c.oid = pg_partition_root(%s::oid)",
        [relation],
    )
    return TableName(*rows[0]) if rows else None
