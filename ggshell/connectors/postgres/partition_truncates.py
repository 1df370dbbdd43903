"""Captures TRUNCATE of a single partition, which PostgreSQL does not log for a table that is published by its root.

A trigger on each partition writes a message to the log instead, in the same transaction and at the same position. When
the root itself is truncated, the log names the root, and the triggers of its partitions write nothing. The messages are sealed
(``sealed_messages``), with a secret that only the owner of the function and roles with REPLICATION may read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ggshell.connectors.postgres.identity import Member
from ggshell.connectors.postgres.sealed_messages import emitting, shared_secret
from ggshell.connectors.postgres.session import execute, transaction
from ggshell.errors import DatabaseError
from ggshell.files import read_json
from ggshell.record.definition import Column, TableDefinition
from ggshell.types import TableName, parse_lsn, quote_table

if TYPE_CHECKING:
    import psycopg

SCHEMA: Final = "ggshell"
PREFIX: Final = "ggshell.truncate"
TRIGGER: Final = "ggshell_truncate"
ROOT_BEGINS, ROOT_ENDS = f"{TRIGGER}_begins", f"{TRIGGER}_ends"
FUNCTION: Final = f"{SCHEMA}.note_truncate"
SECRET: Final = f"{SCHEMA}.truncate_secret"
_SEALED_FROM: Final = "sealed from "
_COMMENT: Final = """
SELECT obj_description(p.oid, 'pg_proc') FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
 WHERE n.nspname = %s AND p.proname = %s"""
_CREATE_FUNCTION: Final = f"""
CREATE OR REPLACE FUNCTION {FUNCTION} () RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
  body text;
BEGIN
  IF tg_nargs > 0 THEN  -- the root: its TRUNCATE is in the log
    PERFORM set_config('{SCHEMA}.truncates', CASE tg_when WHEN 'BEFORE' THEN tg_relid::text ELSE '' END, true);
  ELSIF pg_partition_root(tg_relid) IS NOT NULL
     AND current_setting('{SCHEMA}.truncates', true) IS DISTINCT FROM pg_partition_root(tg_relid)::oid::text THEN
    body := jsonb_build_object('xid', (pg_current_xact_id()::text::numeric % 4294967296)::bigint,
        'relation', tg_relid::oid::bigint, 'owner', tg_table_schema, 'name', tg_table_name, 'root',
        (SELECT jsonb_build_array(n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE c.oid = pg_partition_root(tg_relid)),
        'columns', (SELECT jsonb_agg(jsonb_build_array(a.attname, format_type(a.atttypid, a.atttypmod), a.atttypid::bigint,
            NOT a.attnotnull, EXISTS (SELECT FROM pg_index x WHERE x.indrelid = tg_relid AND x.indisprimary
                                         AND x.indimmediate AND a.attnum = ANY (x.indkey))) ORDER BY a.attnum)
          FROM pg_attribute a
         WHERE a.attrelid = tg_relid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''))::text;
    {emitting(PREFIX, SECRET)}
  END IF;
  RETURN NULL;
END $body$"""


INSTALL: Final = (
    f"CREATE TABLE IF NOT EXISTS {SECRET} (secret text NOT NULL)",
    f"INSERT INTO {SECRET} SELECT gen_random_uuid()::text || gen_random_uuid() WHERE NOT EXISTS (SELECT FROM {SECRET})",
    _CREATE_FUNCTION,
    f"""DO $do$ DECLARE reader text; BEGIN
  FOR reader IN SELECT quote_ident(r.rolname) FROM pg_roles r
     WHERE (r.rolreplication OR r.oid = (SELECT proowner FROM pg_proc WHERE oid = '{FUNCTION}()'::regprocedure))
       AND NOT has_table_privilege(r.oid, '{SECRET}'::regclass, 'SELECT') LOOP
    EXECUTE format('GRANT SELECT ON {SECRET} TO %s', reader);
  END LOOP;
  FOR reader IN SELECT quote_ident(r.rolname) FROM pg_roles r
     WHERE r.rolreplication AND NOT has_schema_privilege(r.oid, '{SCHEMA}', 'USAGE') LOOP
    BEGIN
      EXECUTE format('GRANT USAGE ON SCHEMA {SCHEMA} TO %s', reader);
    EXCEPTION WHEN insufficient_privilege THEN
      NULL;  -- the schema belongs to another role, which must grant it
    END;
  END LOOP;
  IF coalesce(obj_description('{FUNCTION}()'::regprocedure, 'pg_proc'), '') NOT LIKE '{_SEALED_FROM}%' THEN
    EXECUTE format('COMMENT ON FUNCTION {FUNCTION} () IS %L', '{_SEALED_FROM}' || pg_current_wal_insert_lsn());
  END IF;
END $do$""",
)
"""The statements that create the function and what it needs. The comment says from where on messages must have a seal."""


def statements(part: Member) -> list[str]:
    """The statements that create the triggers of a partitioned table or a partition. Empty if none are needed.

    They also fire in sessions without triggers (``session_replication_role``). Those of an earlier release do not.
    """
    if part.noted or part.partition == (part.kind == "p"):  # neither a root nor a partition with rows
        return []
    table, call = quote_table(part.table), f"FOR EACH STATEMENT EXECUTE FUNCTION {FUNCTION}"
    made = {ROOT_BEGINS: ("BEFORE", "'root'"), ROOT_ENDS: ("AFTER", "'root'")}
    found = []
    for name, (moment, argument) in ({TRIGGER: ("BEFORE", "")} if part.partition else made).items():
        if name not in part.triggers:
            found.append(f"CREATE TRIGGER {name} {moment} TRUNCATE ON {table} {call} ({argument})")
        found.append(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}")
    return found


def install(connection: psycopg.Connection[Any]) -> str:
    """Create the function in a schema of its own, and replace one that writes messages without a seal.

    Return why that is refused, or an empty text."""
    is_there, is_sealed = bool(execute(connection, _COMMENT, FUNCTION.split("."))), bool(sealed_from(connection))
    try:
        if not is_sealed:
            with transaction(connection):
                execute(connection, f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
                for statement in INSTALL:
                    execute(connection, statement)
    except DatabaseError as error:
        return "" if is_there else error.message  # the present function works; Extract reports that it has no seal
    return ""


def secret(connection: Any) -> str | None:
    """Return the secret of the seal, None without one. Raises DatabaseError (GGS-00580) if the user may not read it."""
    return shared_secret(connection, SECRET, "ADD TRANDATA")


def sealed_from(connection: Any) -> int:
    """Return the LSN from which on messages must have a seal; 0 if the function writes none."""
    rows = execute(connection, _COMMENT, FUNCTION.split("."))
    text = str(rows[0][0] or "") if rows else ""
    return parse_lsn(text.removeprefix(_SEALED_FROM)) if text.startswith(_SEALED_FROM) else 0


def remove(connection: psycopg.Connection[Any], part: Member) -> None:
    """Drop the triggers of a table."""
    for name in part.triggers:
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


def content_of(message: bytes) -> Any:
    """Parse a message without a seal. Raises ValueError."""
    return read_json(message)


def noted(found: Any) -> Noted:
    """Return the parsed content of a message. Raises KeyError, TypeError, ValueError for another content."""
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
