"""What ADD SCHEMATRANDATA installs in a source to write each DDL statement to the log.

Two event triggers call ``note_ddl`` at the end of each DDL statement and after objects were dropped. It writes a logical
message in the statement's transaction, so the message stands between the rows exactly where the statement ran.

``note_ddl`` runs as the user of the statement, because it reads the user's settings; it uses only qualified names.
``write_ddl`` runs as its owner (SECURITY DEFINER). Every user may write logical messages, so the message carries a seal
that only the owner and an Extract can make: otherwise, any user could have DDL run in the targets. ``write_ddl`` accepts
only calls by ``note_ddl``, which can be called as an event trigger only.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from ggshell.connectors.postgres import ddl_rows_sql, existing_rows_sql
from ggshell.connectors.postgres.schema_trandata_sql import OWN
from ggshell.connectors.postgres.sealed_messages import emitting, shared_secret
from ggshell.connectors.postgres.session import OWN_DDL, execute, transaction
from ggshell.errors import DatabaseError

if TYPE_CHECKING:
    import psycopg

SCHEMA: Final = "ggshell"
PREFIX: Final = "ggshell.ddl"
SECRET: Final = f"{SCHEMA}.ddl_secret"
NOTE: Final = f"{SCHEMA}.note_ddl"
WRITE: Final = f"{SCHEMA}.write_ddl"
DESCRIBE: Final = f"{SCHEMA}.describe_ddl"
EMIT: Final = existing_rows_sql.EMIT
END_TRIGGER, DROP_TRIGGER = "ggshell_ddl", "ggshell_ddl_drop"
SETTINGS: Final = (
    "search_path",
    "DateStyle",
    "IntervalStyle",
    "TimeZone",
    "default_table_access_method",
    "default_tablespace",
    "default_toast_compression",
    "standard_conforming_strings",
    "xmloption",
)
"""The session settings that the meaning of a DDL statement depends on."""

_READ = ", ".join(f"'{name}', pg_catalog.current_setting('{name}', true)" for name in SETTINGS)
CREATE_NOTE: Final = f"""
CREATE OR REPLACE FUNCTION {NOTE} () RETURNS event_trigger LANGUAGE plpgsql AS $body$
BEGIN
  IF 'on' IN (pg_catalog.current_setting('{OWN}', true), pg_catalog.current_setting('{OWN_DDL}', true)) THEN
    RETURN;
  END IF;
  IF tg_event OPERATOR(pg_catalog.=) 'sql_drop' AND NOT pg_catalog.starts_with(tg_tag, 'DROP ') THEN
    RETURN;  -- DROP COLUMN of ALTER TABLE: its end follows
  END IF;
  PERFORM {WRITE} (tg_event, tg_tag, current_user, pg_catalog.jsonb_build_object({_READ}));
END $body$"""

CREATE_EMIT: Final = f"""
CREATE OR REPLACE FUNCTION {EMIT} (content jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
  body text := (content || jsonb_build_object('xid', (pg_current_xact_id()::text::numeric % 4294967296)::bigint))::text;
BEGIN
  {emitting(PREFIX, SECRET)}
END $body$"""

CREATE_DESCRIBE: Final = f"""
CREATE OR REPLACE FUNCTION {DESCRIBE} (class oid, object oid, kind text, owner text) RETURNS jsonb
LANGUAGE plpgsql AS $body$
-- An object of a statement; an empty array for a temporary one. Each query reads one object by its key, and only those that
-- the class needs run: one query for all classes needs more time to start than to read.
DECLARE
  name text;
  relation oid;  -- the table of the object
  kept "char" := 'p';
  relkind "char";
  owner_of_table text := owner;
  table_name text;
  columns jsonb;
BEGIN
  IF class = 'pg_class'::regclass THEN
    SELECT c.relname, c.relpersistence, c.relkind INTO name, kept, relkind FROM pg_class c WHERE c.oid = object;
    IF relkind IN ('r', 'p', 'f') THEN
      table_name := name;
      SELECT jsonb_agg(jsonb_build_array(a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.atttypid::bigint,
                                         NOT a.attnotnull,
                                         CASE WHEN a.attcollation <> 0 AND a.attcollation <>
                                                   (SELECT y.typcollation FROM pg_type y WHERE y.oid = a.atttypid)
                                              THEN a.attcollation::regcollation::text END) ORDER BY a.attnum)
        INTO columns FROM pg_attribute a WHERE a.attrelid = object AND a.attnum > 0 AND NOT a.attisdropped;
    ELSIF relkind IN ('i', 'I') THEN
      relation := (SELECT x.indrelid FROM pg_index x WHERE x.indexrelid = object);
    END IF;
  ELSIF class = 'pg_proc'::regclass THEN
    name := (SELECT f.proname FROM pg_proc f WHERE f.oid = object);
  ELSIF class = 'pg_type'::regclass THEN
    name := (SELECT y.typname FROM pg_type y WHERE y.oid = object);
  ELSIF class IS NOT NULL THEN
    SELECT i.object_names[array_length(i.object_names, 1)] INTO name FROM pg_identify_object_as_address(class, object, 0) i;
    IF class = 'pg_trigger'::regclass THEN
      relation := (SELECT g.tgrelid FROM pg_trigger g WHERE g.oid = object);
    ELSIF class = 'pg_policy'::regclass THEN
      relation := (SELECT p.polrelid FROM pg_policy p WHERE p.oid = object);
    ELSIF class = 'pg_rewrite'::regclass THEN
      relation := (SELECT r.ev_class FROM pg_rewrite r WHERE r.oid = object);
    ELSIF class = 'pg_constraint'::regclass THEN
      relation := (SELECT k.conrelid FROM pg_constraint k WHERE k.oid = object);
    ELSIF class = 'pg_statistic_ext'::regclass THEN
      relation := (SELECT s.stxrelid FROM pg_statistic_ext s WHERE s.oid = object);
    END IF;
  END IF;
  IF relation <> 0 THEN
    SELECT n.nspname, c.relname, c.relpersistence INTO owner_of_table, table_name, kept
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation;
  END IF;
  IF kept = 't' THEN
    RETURN '[]';
  END IF;
  RETURN jsonb_build_object('kind', upper(kind), 'owner', coalesce(owner, owner_of_table, ''), 'name', coalesce(name, ''),
                            'table', CASE WHEN table_name IS NOT NULL THEN jsonb_build_array(owner_of_table, table_name) END,
                            'columns', columns, 'persistence', CASE WHEN class = 'pg_class'::regclass THEN kept END);
END $body$"""

CREATE_WRITE: Final = f"""
CREATE OR REPLACE FUNCTION {WRITE} (event text, tag text, role text, settings jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lc_messages = 'C' AS $body$
DECLARE
  context text;
  frames text;      -- the calls around the statement; empty if the client sent it
  string text := statement_timestamp()::text;  -- identifies the string that the client sent
  place text;       -- identifies the text that holds the statement: the string, or an EXECUTE in a function
  history jsonb := coalesce(nullif(current_setting('{SCHEMA}.ddl_fired', true), ''), '{{}}');
  fired text;
  command record;
  extension boolean := false;  -- the statement is part of an extension's script
  objects jsonb;
  partial boolean;  -- a DROP names temporary objects too
  content jsonb;
BEGIN
  GET DIAGNOSTICS context = PG_CONTEXT;
  IF split_part(context, E'\\n', 3) NOT LIKE 'PL/pgSQL function {NOTE}() line % at PERFORM' THEN
    RAISE insufficient_privilege USING MESSAGE = '{WRITE} is called by the event triggers of ggshell only';
  END IF;
  frames := substr(context, length(split_part(context, E'\\n', 1)) + length(split_part(context, E'\\n', 2))
                            + length(split_part(context, E'\\n', 3)) + 4);
  IF frames ~ '(^|\\n)extension script (file )?"' THEN
    RETURN;  -- a part of CREATE EXTENSION or ALTER EXTENSION, which a target executes as a whole
  END IF;
  -- The tags of the earlier statements of the same text show which of its statements this one is.
  IF history ->> 'string' IS DISTINCT FROM string THEN
    history := jsonb_build_object('string', string);
  END IF;
  place := CASE frames WHEN '' THEN 'client' ELSE md5(frames) END;
  fired := coalesce(history ->> place, '');
  IF event = 'sql_drop' THEN
    SELECT jsonb_agg(jsonb_build_object(
             'kind', upper(d.object_type), 'owner', coalesce(d.schema_name, ''),
             'name', coalesce(d.object_name, CASE WHEN array_length(d.address_names, 1) = 3 THEN d.address_names[3] END,
                              d.object_identity),
             'table', CASE WHEN d.object_type IN ('table', 'foreign table') THEN d.address_names
                           WHEN array_length(d.address_names, 1) = 3 THEN d.address_names[1:2] END))
             FILTER (WHERE NOT t.is_temporary), bool_or(t.is_temporary)
      INTO objects, partial FROM pg_event_trigger_dropped_objects() d,
      -- A rule, trigger or policy of a temporary table is temporary too.
      LATERAL (SELECT d.is_temporary OR array_length(d.address_names, 1) > 1
                                        AND d.address_names[1] = 'pg_temp') t (is_temporary)
     WHERE d.original;
  ELSE
    FOR command IN SELECT classid, objid, object_type, schema_name, in_extension FROM pg_event_trigger_ddl_commands() LOOP
      extension := extension OR command.in_extension;
      CONTINUE WHEN starts_with(tag, 'DROP ') OR command.in_extension OR starts_with(command.schema_name, 'pg_temp')
                    OR command.schema_name = '{SCHEMA}';
      objects := coalesce(objects, '[]')
                 || {DESCRIBE} (command.classid, command.objid, command.object_type, command.schema_name);
    END LOOP;
    IF NOT extension AND (frames = '' OR frames LIKE 'SQL statement "%;%') THEN
      PERFORM set_config('{SCHEMA}.ddl_fired', (history || jsonb_build_object(place, fired || tag || ','))::text, false);
    END IF;
  END IF;
  IF coalesce(objects, '[]') = '[]' THEN
    RETURN;  -- nothing was done (IF NOT EXISTS), or only to temporary objects
  END IF;
  content := jsonb_build_object('tag', tag, 'role', role, 'settings', settings, 'objects', objects, 'fired', fired,
                                'frames', frames, 'partial', partial);
  IF frames = '' AND current_setting('{SCHEMA}.ddl_sent', true) IS DISTINCT FROM string THEN
    -- Each message of a long script would contain the whole script, so only the first of the transaction does.
    content := content || jsonb_build_object('string', current_query());
    PERFORM set_config('{SCHEMA}.ddl_sent', string, true);
  ELSIF frames LIKE 'SQL function "%' THEN
    content := content || jsonb_build_object('bodies', (
      SELECT jsonb_agg(p.prosrc) FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
       WHERE l.lanname = 'sql' AND p.proname = substring(frames FROM '^SQL function "(.*?)" ')));
  END IF;
  PERFORM {EMIT} (content);
END $body$"""

INSTALL: Final = (
    f"CREATE TABLE IF NOT EXISTS {SECRET} (secret text NOT NULL)",
    f"INSERT INTO {SECRET} SELECT gen_random_uuid()::text || gen_random_uuid() WHERE NOT EXISTS (SELECT FROM {SECRET})",
    CREATE_EMIT,
    CREATE_DESCRIBE,
    f"REVOKE ALL ON FUNCTION {EMIT} (jsonb), {DESCRIBE} (oid, oid, text, text) FROM PUBLIC",
    CREATE_WRITE,
    CREATE_NOTE,
    *ddl_rows_sql.FUNCTIONS,
    f"GRANT USAGE ON SCHEMA {SCHEMA} TO PUBLIC",
    f"GRANT EXECUTE ON FUNCTION {WRITE} (text, text, text, jsonb) TO PUBLIC",
)
TRIGGERS: Final = {
    END_TRIGGER: f"CREATE EVENT TRIGGER {END_TRIGGER} ON ddl_command_end EXECUTE FUNCTION {NOTE} ()",
    DROP_TRIGGER: f"CREATE EVENT TRIGGER {DROP_TRIGGER} ON sql_drop EXECUTE FUNCTION {NOTE} ()",
    **ddl_rows_sql.TRIGGERS,
}
REMOVE: Final = (
    *(f"DROP EVENT TRIGGER IF EXISTS {name}" for name in TRIGGERS),
    *ddl_rows_sql.REMOVE,
    f"DROP FUNCTION IF EXISTS {NOTE} ()",
    f"DROP FUNCTION IF EXISTS {WRITE} (text, text, text, jsonb)",
    f"DROP FUNCTION IF EXISTS {DESCRIBE} (oid, oid, text, text)",
    f"DROP FUNCTION IF EXISTS {EMIT} (jsonb)",
    f"DROP TABLE IF EXISTS {SECRET}",
)
_READERS = f"""
SELECT quote_ident(rolname) FROM pg_roles
 WHERE rolreplication AND NOT rolsuper AND NOT has_table_privilege(oid, '{SECRET}'::regclass, 'SELECT')"""


def install(connection: psycopg.Connection[Any]) -> None:
    """Create the event triggers with everything they need. Raises DatabaseError without the privilege.

    Roles that may replicate may read the seal's secret: an Extract needs it, and such a role can read the log anyway.
    """
    for statement in INSTALL:
        execute(connection, statement)
    for (role,) in execute(connection, _READERS):
        execute(connection, f"GRANT SELECT ON {SECRET} TO {role}")
    found = {name for (name,) in execute(connection, "SELECT evtname FROM pg_event_trigger")}
    for name, statement in TRIGGERS.items():
        if name not in found:
            execute(connection, statement)
        execute(connection, f"ALTER EVENT TRIGGER {name} ENABLE ALWAYS")


def remove(connection: psycopg.Connection[Any]) -> None:
    """Drop everything that ``install`` created. If that is refused, it stays and writes messages that are not read."""
    with contextlib.suppress(DatabaseError), transaction(connection):
        for statement in REMOVE:
            execute(connection, statement)


def fires(connection: psycopg.Connection[Any]) -> bool:
    """Whether the event triggers exist and are enabled, so that DDL is in the log."""
    names = list(TRIGGERS)
    rows = execute(
        connection, "SELECT 1 FROM pg_event_trigger WHERE evtname = ANY (%s) AND evtenabled IN ('O', 'A')", [names]
    )
    return len(rows) == len(names)


def secret(connection: psycopg.Connection[Any]) -> str | None:
    """The secret of the seal; None if DDL capture is not installed. Raises DatabaseError without the privilege."""
    return shared_secret(connection, SECRET, "ADD SCHEMATRANDATA")
