"""What ADD SCHEMATRANDATA installs to write the rows to the log again that a DDL statement has computed.

The log does not contain the rows that a statement rewrites, because a Replicat executes the same statement. It computes the
same rows, unless they depend on the moment, the session or a sequence: ``ADD COLUMN c uuid DEFAULT gen_random_uuid()``,
``DEFAULT now()``, an identity column, ``ALTER … USING`` with such a function. An event trigger then writes the table's rows
after the statement: updates where the rows have a key, otherwise a TRUNCATE and inserts. User triggers and foreign keys do
not fire for them (``session_replication_role``).
"""

from __future__ import annotations

from typing import Final

from ggshell.connectors.postgres.existing_rows_sql import TRY
from ggshell.connectors.postgres.schema_trandata_sql import OWN, SCHEMA
from ggshell.connectors.postgres.session import OWN_DDL, REPLICATED_DDL
from ggshell.connectors.postgres.slot import PUBLICATION

NOTE: Final = f"{SCHEMA}.note_rewrite"
REPEAT: Final = f"{SCHEMA}.repeat_rows"
UNSTABLE: Final = f"{SCHEMA}.depends_on_moment"
FIRST_OF_USERS: Final = 16384
"""The first OID of objects that are not PostgreSQL's own."""
REWRITE_TRIGGER, ROWS_TRIGGER = "ggshell_rewrite", "ggshell_rows"

CREATE_NOTE: Final = f"""
CREATE OR REPLACE FUNCTION {NOTE} () RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
  PERFORM set_config('{SCHEMA}.rewritten', coalesce(current_setting('{SCHEMA}.rewritten', true), '') || ','
    || pg_event_trigger_table_rewrite_oid() || ':' || pg_event_trigger_table_rewrite_reason(), true);
END $body$"""

CREATE_UNSTABLE: Final = f"""
CREATE OR REPLACE FUNCTION {UNSTABLE} (expression text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $body$
-- Whether a text may call a function whose result is not the same in every session. A column of the same name counts too.
SELECT EXISTS (
  SELECT FROM regexp_matches(lower(expression), '[a-z_][a-z0-9_$]*', 'g') AS word (parts)
   WHERE parts[1] ~ '^(current_|localtime|session_user|user$)'
      OR EXISTS (SELECT FROM pg_proc f WHERE f.proname = parts[1] AND f.provolatile <> 'i'))
$body$"""

CREATE_REPEAT: Final = f"""
CREATE OR REPLACE FUNCTION {REPEAT} () RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $body$
DECLARE
  rewritten text := coalesce(current_setting('{SCHEMA}.rewritten', true), '');
  publication oid;
  frames text := '';  -- the calls around the statement; empty if the client sent it
  computed boolean;
  casts boolean := false;  -- a cast of a user calls a function whose result is not the same in every database
  top oid;
  part oid;
  kind "char";
  whole boolean;
  keyed boolean;
  chosen name;
  role text;
BEGIN
  IF rewritten <> '' THEN
    PERFORM set_config('{SCHEMA}.rewritten', '', true);
  END IF;
  IF current_setting('{OWN}', true) = 'on' OR current_setting('{OWN_DDL}', true) IN ('on', '{REPLICATED_DDL}') THEN
    RETURN;  -- a Replicat executes the rows of the source too
  END IF;
  IF rewritten <> '' THEN
    GET DIAGNOSTICS frames = PG_CONTEXT;
    frames := substr(frames, length(split_part(frames, E'\\n', 1)) + 2);
    casts := EXISTS (SELECT FROM pg_cast k JOIN pg_proc f ON f.oid = k.castfunc
                      WHERE k.oid >= {FIRST_OF_USERS} AND f.provolatile = 'v');
    IF NOT casts AND rewritten ~ '^(,\\d+:4)+$' AND frames = '' AND current_query() !~* 'using' THEN
      rewritten := '';  -- only other types of columns, without an expression: a target converts the rows the same way
    END IF;
  END IF;
  IF rewritten = '' THEN
    FOR part IN SELECT e.objid FROM pg_event_trigger_ddl_commands() e
                 WHERE e.classid = 'pg_class'::regclass AND starts_with(e.object_type, 'table') LOOP
      SELECT c.relhassubclass OR EXISTS (
               SELECT FROM pg_attribute a
                WHERE a.attrelid = c.oid AND a.atthasmissing AND age(a.xmin) <= 0
                  AND (SELECT pg_get_expr(d.adbin, d.adrelid) ~* '\\(|current_|localtime|user'
                         FROM pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum))
        INTO computed FROM pg_class c WHERE c.oid = part;
      EXIT WHEN computed;
    END LOOP;
    IF computed IS NOT TRUE THEN
      RETURN;  -- the usual case: the statement gave no row a value that it has computed
    END IF;
  END IF;
  publication := (SELECT oid FROM pg_publication WHERE pubname = '{PUBLICATION}');
  IF publication IS NULL THEN
    RETURN;
  END IF;
  role := current_setting('session_replication_role');
  PERFORM set_config('{OWN}', 'on', true);
  FOR top, part IN
    -- An unlogged partition of a published table became logged.
    SELECT DISTINCT pg_partition_root(c.oid), c.oid
      FROM regexp_matches(rewritten, ',(\\d+):(\\d+)', 'g') AS found (parts) JOIN pg_class c ON c.oid = parts[1]::oid
     WHERE parts[2]::int & 1 <> 0 AND c.relispartition AND c.relpersistence = 'p'
       AND EXISTS (SELECT FROM pg_publication_rel WHERE prpubid = publication AND prrelid = pg_partition_root(c.oid))
  LOOP
    PERFORM {TRY} (part, top, true);
  END LOOP;
  FOR top IN
    WITH RECURSIVE family (member) AS (
      SELECT c.oid
        FROM pg_event_trigger_ddl_commands() e JOIN pg_class c ON e.classid = 'pg_class'::regclass AND c.oid = e.objid
       WHERE c.relkind IN ('r', 'p') AND NOT e.in_extension
      UNION SELECT inhrelid FROM family JOIN pg_inherits ON inhparent = member)
    SELECT DISTINCT coalesce(pg_partition_root(member), member) FROM family ORDER BY 1
  LOOP
    CONTINUE WHEN NOT EXISTS (SELECT FROM pg_publication_rel WHERE prpubid = publication AND prrelid = top);
    CONTINUE WHEN NOT EXISTS (
      SELECT FROM (SELECT top UNION SELECT relid FROM pg_partition_tree(top)) family (member)
       WHERE EXISTS (SELECT FROM regexp_matches(rewritten, ',' || member || ':(\\d+)', 'g') AS found (reasons)
                      WHERE reasons[1]::int & 2 <> 0
                         OR reasons[1]::int & 4 <> 0 AND casts
                         OR reasons[1]::int & 4 <> 0 AND (frames <> '' OR current_query() ~* 'using')
                            AND {UNSTABLE} (frames || current_query()))
          OR EXISTS (SELECT FROM pg_attribute a JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
                      WHERE a.attrelid = member AND a.atthasmissing AND NOT a.attisdropped AND age(a.xmin) <= 0
                        AND {UNSTABLE} (pg_get_expr(d.adbin, d.adrelid))));
    SELECT relreplident = 'f', relkind INTO whole, kind FROM pg_class WHERE oid = top;
    keyed := NOT whole OR EXISTS (SELECT FROM pg_index WHERE indrelid = top AND indisprimary);
    SELECT attname INTO chosen FROM pg_attribute
     WHERE attrelid = top AND attnum > 0 AND NOT attisdropped AND attgenerated = '' AND attidentity <> 'a' LIMIT 1;
    IF keyed AND chosen IS NOT NULL THEN
      IF whole THEN
        EXECUTE format('ALTER TABLE %s REPLICA IDENTITY DEFAULT', top::regclass);  -- the row is logged as a whole
      END IF;
      PERFORM set_config('session_replication_role', 'replica', true);
      EXECUTE format('UPDATE %s%s SET %I = %3$I', CASE kind WHEN 'p' THEN '' ELSE 'ONLY ' END, top::regclass, chosen);
      PERFORM set_config('session_replication_role', role, true);
      IF whole THEN
        EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', top::regclass);
      END IF;
    ELSE
      PERFORM {TRY} (top, top, true);
    END IF;
  END LOOP;
  PERFORM set_config('{OWN}', 'off', true);
END $body$"""

FUNCTIONS: Final = (CREATE_NOTE, CREATE_UNSTABLE, CREATE_REPEAT)
TRIGGERS: Final = {
    REWRITE_TRIGGER: f"CREATE EVENT TRIGGER {REWRITE_TRIGGER} ON table_rewrite EXECUTE FUNCTION {NOTE} ()",
    ROWS_TRIGGER: f"CREATE EVENT TRIGGER {ROWS_TRIGGER} ON ddl_command_end WHEN TAG IN ('ALTER TABLE')"
    f" EXECUTE FUNCTION {REPEAT} ()",
}
"""Triggers of one event fire in the order of their names: the statement first (``ggshell_ddl``), then its rows."""
REMOVE: Final = (
    f"DROP FUNCTION IF EXISTS {NOTE} ()",
    f"DROP FUNCTION IF EXISTS {REPEAT} ()",
    f"DROP FUNCTION IF EXISTS {UNSTABLE} (text)",
)
