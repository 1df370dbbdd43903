"""What ADD SCHEMATRANDATA, and ADD TRANDATA for a table with partitions, install in a source.

They install a table of schemas, a function, and the event trigger that calls the function. The function runs at the end
of every statement that creates or alters a table, in the statement's own transaction. It gives new tables and
partitions the replica identity they need and publishes them, so their first row is in the log. It never makes a
statement fail: a failure is a warning, and an Extract reports the table. It runs with the privileges of its owner
(SECURITY DEFINER), because only the owner can change a publication.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from ggshell.connectors.postgres import existing_rows_sql
from ggshell.connectors.postgres.partition_truncates import FUNCTION as NOTE
from ggshell.connectors.postgres.partition_truncates import INSTALL as INSTALL_NOTE
from ggshell.connectors.postgres.session import execute, transaction
from ggshell.connectors.postgres.slot import PUBLICATION
from ggshell.errors import DatabaseError

if TYPE_CHECKING:
    import psycopg


SCHEMA: Final = "ggshell"
TABLE: Final = f"{SCHEMA}.schematrandata"
FUNCTION: Final = f"{SCHEMA}.add_schematrandata"
FIT: Final = f"{SCHEMA}.fit_replica_identity"
TRIGGER: Final = "ggshell_schematrandata"
OWN: Final = "ggshell.own_statement"
"""The session setting that marks a statement as ggshell's, so that the event trigger ignores it."""
TAGS: Final = ("CREATE TABLE", "CREATE TABLE AS", "SELECT INTO", "ALTER TABLE", "CREATE SCHEMA")

CREATE_TABLE: Final = (
    f"CREATE TABLE IF NOT EXISTS {TABLE} (schema_name text PRIMARY KEY, all_columns boolean NOT NULL DEFAULT false)"
)

KEYED: Final = """EXISTS (
       SELECT FROM pg_index x
        WHERE x.indrelid = {0} AND x.indisprimary AND x.indimmediate AND x.indisvalid
          AND NOT EXISTS (SELECT FROM pg_attribute a
                           WHERE a.attrelid = {0} AND a.attnum = ANY (x.indkey::int2[]) AND a.attgenerated <> ''))"""

CREATE_FIT: Final = f"""
CREATE OR REPLACE FUNCTION {FIT} (part oid, whole boolean) RETURNS boolean
LANGUAGE plpgsql AS $body$
-- Whether a table's replica identity lets a published table take UPDATE and DELETE; sets one that does where it is needed.
-- Called by the function below only, which sets the settings.
DECLARE
  present "char" := (SELECT relreplident FROM pg_class WHERE oid = part);
  generates boolean;
  checked boolean := current_setting('server_version_num')::int >= 180000;
  needed name[];  -- of a partition: the columns in the identity of its root, which the log describes its rows by
  good name[];  -- indexes that may be the identity, the primary key first
  chosen name;
BEGIN
  IF (SELECT relispartition FROM pg_class WHERE oid = part) THEN
    needed := (SELECT array_agg(a.attname)
                 FROM pg_class c JOIN pg_index x ON x.indrelid = c.oid
                  AND CASE c.relreplident WHEN 'd' THEN x.indisprimary ELSE x.indisreplident END
                 JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY ((x.indkey::int2[])[0:x.indnkeyatts - 1])
                WHERE c.oid = pg_partition_root(part) AND c.relreplident IN ('d', 'i'));
  END IF;
  IF present = 'd' AND NOT whole AND needed IS NULL AND {KEYED.format("part")} THEN
    RETURN true;  -- the usual case
  END IF;
  generates := EXISTS (SELECT FROM pg_attribute WHERE attrelid = part AND attnum > 0 AND NOT attisdropped
                          AND attgenerated <> '');
  good := ARRAY(
    SELECT i.relname FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
     WHERE x.indrelid = part AND x.indisunique AND x.indimmediate AND x.indisvalid
       AND x.indpred IS NULL AND x.indexprs IS NULL
       AND NOT EXISTS (SELECT FROM unnest(x.indkey::int2[]) WITH ORDINALITY k (number, place)
                         JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.number
                        WHERE k.place <= x.indnkeyatts AND (NOT a.attnotnull OR a.attgenerated <> ''))
       AND (needed IS NULL OR needed <@ ARRAY(
             SELECT a.attname FROM pg_attribute a
              WHERE a.attrelid = part AND a.attnum = ANY ((x.indkey::int2[])[0:x.indnkeyatts - 1])))
     ORDER BY NOT x.indisprimary, i.relname);
  IF present = 'f' AND NOT (generates AND checked) THEN
    RETURN true;
  END IF;
  IF whole AND NOT (generates AND checked) THEN
    EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', part::regclass);
    RETURN true;
  END IF;
  IF present IN ('d', 'i') AND EXISTS (
       SELECT FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
        WHERE x.indrelid = part AND CASE present WHEN 'd' THEN x.indisprimary ELSE x.indisreplident END
          AND i.relname = ANY (good)) THEN
    RETURN true;
  END IF;
  SELECT i.relname INTO chosen FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
   WHERE x.indrelid = part AND x.indisprimary AND i.relname = ANY (good);
  IF chosen IS NOT NULL THEN
    EXECUTE format('ALTER TABLE %s REPLICA IDENTITY DEFAULT', part::regclass);
  ELSIF NOT (generates AND checked) AND (needed IS NULL OR good[1] IS NULL) THEN
    EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', part::regclass);
  ELSIF good[1] IS NOT NULL THEN
    EXECUTE format('ALTER TABLE %s REPLICA IDENTITY USING INDEX %I', part::regclass, good[1]);
  ELSE
    RETURN false;
  END IF;
  RETURN true;
END $body$"""

_FITS: Final = f"""CASE c.relreplident
                     WHEN 'f' THEN NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0
                                                  AND NOT a.attisdropped AND a.attgenerated <> '')
                     WHEN 'd' THEN s.all_columns IS NOT TRUE AND {KEYED.format("c.oid")}
                     ELSE false END"""
"""Whether the replica identity of a captured table without partitions certainly needs no change."""

CREATE_FUNCTION: Final = f"""
CREATE OR REPLACE FUNCTION {FUNCTION} () RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $body$
DECLARE
  top oid;
  part oid;
  publication oid;
  root record;
  fits boolean;
  attaches boolean;  -- a partition was attached in this transaction
  is_new boolean;  -- this one was
  detaches boolean := false;
  in_schema boolean;  -- the table is in a schema with SCHEMATRANDATA, whose DDL is captured too
  of_schema boolean := false;  -- some table of the statement is
  arrived oid[];  -- partitions with rows that are not in the log
  context text;
  schema text;
  tops oid[] := '{{}}';
BEGIN
  IF current_setting('{OWN}', true) = 'on' THEN
    RETURN;
  END IF;
  publication := (SELECT oid FROM pg_publication WHERE pubname = '{PUBLICATION}');
  IF publication IS NULL THEN
    RETURN;
  END IF;
  FOR part, schema IN SELECT objid, schema_name FROM pg_event_trigger_ddl_commands()
                       WHERE classid = 'pg_class'::regclass AND starts_with(object_type, 'table')  -- not its indexes
  LOOP
    SELECT CASE WHEN c.relispartition THEN pg_partition_root(c.oid) ELSE c.oid END, s.schema_name IS NOT NULL
      INTO top, in_schema
      FROM pg_class c LEFT JOIN pg_publication_rel r ON r.prrelid = c.oid AND r.prpubid = publication
      LEFT JOIN {TABLE} s ON s.schema_name = schema
     WHERE c.oid = part AND c.relkind IN ('r', 'p') AND c.relpersistence = 'p'
       AND CASE WHEN c.relispartition THEN true WHEN r.oid IS NULL THEN s.schema_name IS NOT NULL
                WHEN c.relkind = 'p' THEN true ELSE NOT ({_FITS}) END;
    IF FOUND AND top <> ALL (tops) THEN
      tops := tops || top;
      of_schema := of_schema OR in_schema;
    END IF;
  END LOOP;
  IF tg_tag = 'ALTER TABLE' THEN
    GET DIAGNOSTICS context = PG_CONTEXT;
    detaches := context ~* 'detach' OR current_query() ~* 'detach';
    IF detaches THEN
      -- A partition that was detached is a table of its own, which the statement's commands do not name.
      tops := tops || ARRAY(
        SELECT c.oid
          FROM {TABLE} s JOIN pg_namespace n ON n.nspname = s.schema_name JOIN pg_class c ON c.relnamespace = n.oid
         WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p' AND NOT c.relispartition AND c.oid <> ALL (tops));
    END IF;
  END IF;
  IF cardinality(tops) = 0 THEN
    RETURN;
  END IF;
  PERFORM set_config('{OWN}', 'on', true);
  FOREACH top IN ARRAY tops
  LOOP
    BEGIN
      SELECT c.relkind = 'r' AND NOT c.relispartition AS plain, s.all_columns,
             EXISTS (SELECT FROM pg_publication_rel r WHERE r.prrelid = c.oid AND r.prpubid = publication) AS member
        INTO root FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        LEFT JOIN {TABLE} s ON s.schema_name = n.nspname AND (n.nspname, c.relname) <> ('{SCHEMA}', 'schematrandata')
       WHERE c.oid = top;
      CONTINUE WHEN root.all_columns IS NULL AND NOT root.member;
      fits := true;
      arrived := '{{}}';
      IF root.plain THEN
        fits := {FIT}(top, coalesce(root.all_columns, false));
      ELSE
        attaches := tg_tag = 'ALTER TABLE' AND EXISTS (
          SELECT FROM pg_partition_tree(top) t JOIN pg_inherits i ON i.inhrelid = t.relid WHERE age(i.xmin) <= 0);
        FOR part IN SELECT relid FROM pg_partition_tree(top) ORDER BY level LOOP
          fits := {FIT}(part, coalesce(root.all_columns, false)
                        OR part <> top AND (SELECT relreplident = 'f' FROM pg_class WHERE oid = top)) AND fits;
          is_new := attaches AND part <> top AND EXISTS (
            SELECT FROM pg_partition_ancestors(part) a JOIN pg_inherits i ON i.inhrelid = a.relid WHERE age(i.xmin) <= 0);
          -- A table that was a partition before still has the trigger of that time. Without DDL, the target has its rows too.
          CONTINUE WHEN EXISTS (SELECT FROM pg_trigger
                                 WHERE tgrelid = part AND tgname IN ('ggshell_truncate', 'ggshell_truncate_ends')
                                   AND (NOT is_new OR age(xmin) <= 0 OR root.all_columns IS NULL));
          IF is_new AND (SELECT relkind = 'r' FROM pg_class WHERE oid = part)
             AND NOT EXISTS (SELECT FROM pg_partition_ancestors(part) a JOIN pg_publication_rel r ON r.prrelid = a.relid
                              WHERE r.prpubid = publication AND a.relid <> top) THEN
            arrived := arrived || part;
          END IF;
          IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = part AND tgname = 'ggshell_truncate') THEN
            EXECUTE format('DROP TRIGGER ggshell_truncate ON %s', part::regclass);
          END IF;
          IF part = top AND pg_partition_root(top) IS NOT NULL THEN
            EXECUTE format('CREATE TRIGGER ggshell_truncate_begins BEFORE TRUNCATE ON %s FOR EACH STATEMENT'
                           ' EXECUTE FUNCTION {NOTE} (''root'')', top::regclass);
            EXECUTE format('CREATE TRIGGER ggshell_truncate_ends AFTER TRUNCATE ON %s FOR EACH STATEMENT'
                           ' EXECUTE FUNCTION {NOTE} (''root'')', top::regclass);
            EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER ggshell_truncate_begins,'
                           ' ENABLE ALWAYS TRIGGER ggshell_truncate_ends', top::regclass);
          ELSIF part <> top AND (SELECT relkind = 'r' FROM pg_class WHERE oid = part) THEN
            EXECUTE format('CREATE TRIGGER ggshell_truncate BEFORE TRUNCATE ON %s FOR EACH STATEMENT'
                           ' EXECUTE FUNCTION {NOTE} ()', part::regclass);
            EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER ggshell_truncate', part::regclass);
          END IF;
        END LOOP;
      END IF;
      IF fits AND NOT root.member THEN
        IF tg_tag IN ('CREATE TABLE', 'CREATE SCHEMA')
           OR detaches AND EXISTS (SELECT FROM pg_trigger WHERE tgrelid = top AND tgname = 'ggshell_truncate') THEN
          -- It is empty, or it was a partition until now, so that its rows are in the log.
          EXECUTE format('ALTER PUBLICATION {PUBLICATION} ADD TABLE ONLY %s', top::regclass);
        ELSE
          PERFORM {existing_rows_sql.TRY} (top, top, tg_tag = 'ALTER TABLE');
        END IF;
      ELSIF root.member AND fits THEN
        PERFORM {existing_rows_sql.TRY} (each, top, true) FROM unnest(arrived) each;
      ELSIF root.member AND NOT fits THEN
        EXECUTE format('ALTER PUBLICATION {PUBLICATION} DROP TABLE ONLY %s', top::regclass);
      END IF;
      IF NOT fits THEN
        RAISE WARNING 'ggshell does not capture table %: without a key of columns that are not generated'
                      ' its UPDATE and DELETE would fail', top::regclass;
        PERFORM {existing_rows_sql.REPORT} (top, '{existing_rows_sql.UNCAPTURED}',
          'without a key of columns that are not generated its UPDATE and DELETE would fail');
      END IF;
    EXCEPTION WHEN OTHERS THEN
      RAISE WARNING 'ggshell does not capture table %: %', top::regclass, sqlerrm;
      PERFORM {existing_rows_sql.REPORT} (top, '{existing_rows_sql.UNCAPTURED}', sqlerrm);
    END;
  END LOOP;
  IF detaches AND of_schema THEN
    -- Tables that are partitions no longer, which this transaction has locked.
    FOR part IN SELECT g.tgrelid FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid
                  JOIN pg_locks l ON l.relation = c.oid AND l.pid = pg_backend_pid() AND l.mode = 'AccessExclusiveLock'
                 WHERE g.tgname = 'ggshell_truncate' AND NOT c.relispartition LOOP
      EXECUTE format('DROP TRIGGER ggshell_truncate ON %s', part::regclass);
    END LOOP;
  END IF;
  PERFORM set_config('{OWN}', 'off', true);
END $body$"""

_LIST = ", ".join(f"'{tag}'" for tag in TAGS)
INSTALL: Final = (
    f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}",
    CREATE_TABLE,
    CREATE_FIT,
    *INSTALL_NOTE,
    *existing_rows_sql.FUNCTIONS,
    existing_rows_sql.REVOKE,
    CREATE_FUNCTION,
    f"REVOKE ALL ON FUNCTION {FIT} (oid, boolean), {FUNCTION} () FROM PUBLIC",
)
CREATE_TRIGGER: Final = (
    f"CREATE EVENT TRIGGER {TRIGGER} ON ddl_command_end WHEN TAG IN ({_LIST}) EXECUTE FUNCTION {FUNCTION} ()"
)
ALWAYS: Final = f"ALTER EVENT TRIGGER {TRIGGER} ENABLE ALWAYS"
"""The trigger also fires in sessions that apply replicated changes (session_replication_role)."""
REMOVE: Final = (
    f"DROP EVENT TRIGGER IF EXISTS {TRIGGER}",
    f"DROP FUNCTION IF EXISTS {FUNCTION} ()",
    f"DROP FUNCTION IF EXISTS {FIT} (oid, boolean)",
    *existing_rows_sql.REMOVE,
    f"DROP TABLE IF EXISTS {TABLE}",
)


# The event trigger in a source. It is installed when something needs it and removed when nothing needs it any longer.
#
# A schema with SCHEMATRANDATA needs it for its new tables, and a published table with partitions for new partitions:
# without a replica identity, the application's UPDATE and DELETE on them would fail.


_PARTITIONED = """
SELECT 1 FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid JOIN pg_class c ON c.oid = r.prrelid
 WHERE p.pubname = %s AND c.relkind = 'p' LIMIT 1"""


def fires(connection: psycopg.Connection[Any]) -> bool:
    """Whether the event trigger exists and is not disabled."""
    rows = execute(connection, "SELECT evtenabled::text FROM pg_event_trigger WHERE evtname = %s", [TRIGGER])
    return bool(rows) and rows[0][0] in ("O", "A")


def schemas(connection: psycopg.Connection[Any]) -> dict[str, bool]:
    """The schemas that have SCHEMATRANDATA, and whether with all columns."""
    if execute(connection, "SELECT to_regclass(%s)", [TABLE])[0][0] is None:
        return {}
    return dict(execute(connection, f"SELECT schema_name, all_columns FROM {TABLE}"))


def install(connection: psycopg.Connection[Any]) -> None:
    """Create the event trigger with everything it needs, or enable it. Raises DatabaseError without the privilege."""
    for statement in INSTALL:
        execute(connection, statement)
    if not execute(connection, "SELECT 1 FROM pg_event_trigger WHERE evtname = %s", [TRIGGER]):
        execute(connection, CREATE_TRIGGER)
    execute(connection, ALWAYS)


def installed(connection: psycopg.Connection[Any]) -> bool:
    """Install the event trigger if this login may create it. Return whether it exists and is enabled."""
    if not fires(connection):
        with contextlib.suppress(DatabaseError), transaction(connection):  # the state reports what is missing
            install(connection)
    return fires(connection)


def remove_unneeded(connection: psycopg.Connection[Any]) -> None:
    """Drop the event trigger when nothing needs it. If that is refused, it stays and finds nothing to do."""
    there = execute(connection, "SELECT 1 FROM pg_event_trigger WHERE evtname = %s", [TRIGGER])
    if not there or schemas(connection) or execute(connection, _PARTITIONED, [PUBLICATION]):
        return
    with contextlib.suppress(DatabaseError), transaction(connection):
        for statement in REMOVE:
            execute(connection, statement)
