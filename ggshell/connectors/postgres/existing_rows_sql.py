"""The function of ADD SCHEMATRANDATA that writes the rows that a table has to the log, as inserts.

The log lacks rows that were written before their table was captured: by CREATE TABLE AS, in an unlogged table that becomes
logged, in a table that moves to a captured schema or becomes a partition of a captured table. It lacks the rows that a
statement has computed too (``ddl_rows_sql``). The rows are removed and inserted again in the statement's transaction. The
removal is not in the log; instead, a statement that empties the table is.
"""

from __future__ import annotations

from typing import Final

from ggshell.connectors.postgres.slot import PUBLICATION

SCHEMA: Final = "ggshell"
EMIT: Final = f"{SCHEMA}.emit_ddl"
"""The function that writes a sealed message (``ddl_capture_sql``); it exists if DDL is captured."""
WRITE: Final = f"{SCHEMA}.write_existing_rows"
TRY: Final = f"{SCHEMA}.try_existing_rows"
REPORT: Final = f"{SCHEMA}.report_table"
UNSENT: Final = "unsent"
"""The field of a message about rows that could not be written: the reason."""
UNCAPTURED: Final = "uncaptured"
"""The field of a message about a table that could not be published: the reason."""

CREATE_REPORT: Final = f"""
CREATE OR REPLACE FUNCTION {REPORT} (relation oid, field text, reason text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
-- Writes a message about a table, which an Extract reports.
BEGIN
  IF to_regprocedure('{EMIT} (jsonb)') IS NOT NULL THEN
    PERFORM {EMIT} (jsonb_build_object('tag', '', field, reason, 'objects', jsonb_build_array(
      jsonb_build_object('kind', 'TABLE', 'owner', n.nspname, 'name', c.relname))))
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation;
  END IF;
END $body$"""

CREATE_WRITE: Final = f"""
CREATE OR REPLACE FUNCTION {WRITE} (relation oid, root oid, empties boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
-- Publishes ``root`` and writes the rows of ``relation``, which is ``root`` or one of its partitions.
DECLARE
  member boolean := EXISTS (SELECT FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid
                             WHERE p.pubname = '{PUBLICATION}' AND r.prrelid = root);
  referenced boolean := EXISTS (
    SELECT FROM pg_constraint WHERE contype = 'f' AND conrelid <> confrelid
       AND (confrelid = relation OR confrelid IN (SELECT relid FROM pg_partition_tree(relation))));
  named text := (SELECT format('%s%I.%I', CASE relkind WHEN 'p' THEN '' ELSE 'ONLY ' END, n.nspname, c.relname)
                   FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation);
  columns text := (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
                    WHERE attrelid = relation AND attnum > 0 AND NOT attisdropped AND attgenerated = '');
  role text := current_setting('session_replication_role');
  filled boolean;
BEGIN
  EXECUTE 'SELECT EXISTS (SELECT FROM ' || named || ')' INTO filled;
  IF filled AND empties AND to_regprocedure('{EMIT} (jsonb)') IS NOT NULL THEN
    PERFORM {EMIT} (jsonb_build_object('tag', 'TRUNCATE TABLE', 'role', session_user,
      'settings', CASE WHEN referenced THEN '{{"session_replication_role": "replica"}}' ELSE '{{}}' END::jsonb,
      'text', CASE WHEN referenced THEN 'DELETE FROM ' ELSE 'TRUNCATE TABLE ' END || named,
      'objects', jsonb_build_array(jsonb_build_object('kind', 'TABLE', 'owner', n.nspname, 'name', c.relname,
                                                      'table', jsonb_build_array(n.nspname, c.relname)))))
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation;
  END IF;
  IF filled THEN
    -- Only here: each change of this setting discards all plans of the session.
    PERFORM set_config('session_replication_role', 'replica', true);
    EXECUTE format('CREATE TEMPORARY TABLE ggshell_rows ON COMMIT DROP AS SELECT %s FROM %s', columns, named);
    IF member AND referenced THEN
      EXECUTE format('ALTER PUBLICATION {PUBLICATION} DROP TABLE ONLY %s', root::regclass);
      member := false;
    END IF;
    -- As if the root were truncated, so that the partition's trigger writes nothing.
    PERFORM set_config('{SCHEMA}.truncates', root::text, true);
    EXECUTE CASE WHEN referenced THEN 'DELETE FROM ' ELSE 'TRUNCATE ' END || named;
    PERFORM set_config('{SCHEMA}.truncates', '', true);
  END IF;
  IF NOT member THEN
    EXECUTE format('ALTER PUBLICATION {PUBLICATION} ADD TABLE ONLY %s', root::regclass);
  END IF;
  IF filled THEN
    EXECUTE format('INSERT INTO %s (%2$s) OVERRIDING SYSTEM VALUE SELECT %2$s FROM pg_temp.ggshell_rows',
                   relation::regclass, columns);
    DROP TABLE pg_temp.ggshell_rows;
    PERFORM set_config('session_replication_role', role, true);
  END IF;
END $body$"""

CREATE_TRY: Final = f"""
CREATE OR REPLACE FUNCTION {TRY} (relation oid, root oid, empties boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
-- The same; if the rows cannot be written, an Extract reports it.
BEGIN
  PERFORM {WRITE} (relation, root, empties);
EXCEPTION WHEN OTHERS THEN
  RAISE WARNING 'ggshell does not capture the rows that table % has now: %', relation::regclass, sqlerrm;
  IF NOT EXISTS (SELECT FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid
                  WHERE p.pubname = '{PUBLICATION}' AND r.prrelid = root) THEN
    EXECUTE format('ALTER PUBLICATION {PUBLICATION} ADD TABLE ONLY %s', root::regclass);
  END IF;
  PERFORM {REPORT} (relation, '{UNSENT}', sqlerrm);
END $body$"""

FUNCTIONS: Final = (CREATE_REPORT, CREATE_WRITE, CREATE_TRY)
REVOKE: Final = (
    f"REVOKE ALL ON FUNCTION {WRITE} (oid, oid, boolean), {TRY} (oid, oid, boolean), {REPORT} (oid, text, text)"
    " FROM PUBLIC"
)
REMOVE: Final = (
    f"DROP FUNCTION IF EXISTS {WRITE} (oid, oid, boolean)",
    f"DROP FUNCTION IF EXISTS {TRY} (oid, oid, boolean)",
    f"DROP FUNCTION IF EXISTS {REPORT} (oid, text, text)",
)
