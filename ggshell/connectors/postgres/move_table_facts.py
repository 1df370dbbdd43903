"""The tables and sequences of a PostgreSQL database, as the check before a move reads them: one query for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ggshell.connectors.move_facts import SequenceFacts, TableFacts, TableKey, TableKind
from ggshell.connectors.postgres.identity import IDENTITIES
from ggshell.connectors.postgres.session import execute
from ggshell.types import TableName

if TYPE_CHECKING:
    import psycopg

_KEYS: Final = {"primary": TableKey.PRIMARY, "unique": TableKey.UNIQUE}
_TABLES: Final = """
WITH chosen AS MATERIALIZED (
  SELECT c.* FROM pg_class c WHERE c.relnamespace = ANY (%(schemas)s::oid[]) AND c.relkind IN ('r', 'p', 'f', 'm')
     AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')),
keys AS (
  SELECT x.indrelid AS relation, bool_or(x.indisprimary) AS is_primary
    FROM pg_index x JOIN chosen c ON c.oid = x.indrelid
   WHERE x.indisunique AND x.indimmediate AND x.indisvalid AND x.indpred IS NULL AND x.indexprs IS NULL
     AND NOT EXISTS (SELECT FROM unnest(x.indkey::int2[]) WITH ORDINALITY k (number, place)
                       JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.number
                      WHERE k.place <= x.indnkeyatts AND (NOT a.attnotnull OR a.attgenerated <> ''))
   GROUP BY 1),
indexes AS (
  SELECT x.indrelid AS relation, sum(i.relpages::bigint) AS pages
    FROM pg_index x JOIN chosen c ON c.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid GROUP BY 1),
columns AS (
  SELECT a.attrelid AS relation, bool_or(a.attgenerated <> '') AS generated, bool_or(a.attgenerated = 'v') AS virtual,
         bool_or(a.attidentity <> '') AS numbered
    FROM pg_attribute a JOIN chosen c ON c.oid = a.attrelid WHERE a.attnum > 0 AND NOT a.attisdropped GROUP BY 1)
SELECT n.nspname, c.relname, c.relkind::text, c.relpersistence = 'p', c.relispartition, c.relreplident::text,
       CASE WHEN k.is_primary THEN 'primary' WHEN k.relation IS NOT NULL THEN 'unique' ELSE '' END, c.reltuples::bigint,
       (c.relpages::bigint + coalesce(t.relpages, 0)) * current_setting('block_size')::bigint,
       coalesce(i.pages, 0)::bigint * current_setting('block_size')::bigint,
       coalesce(a.generated, false), coalesce(a.virtual, false), coalesce(a.numbered, false),
       NOT c.relispartition AND EXISTS (SELECT FROM pg_inherits h WHERE h.inhrelid = c.oid),
       pg_has_role(c.relowner, 'USAGE'),
       has_schema_privilege(c.relnamespace, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'),
       c.relrowsecurity AND row_security_active(c.oid)
  FROM chosen c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN keys k ON k.relation = c.oid
  LEFT JOIN pg_class t ON t.oid = c.reltoastrelid LEFT JOIN indexes i ON i.relation = c.oid
  LEFT JOIN columns a ON a.relation = c.oid
 ORDER BY 1, 2"""
_SEQUENCES: Final = """
SELECT schema, name, start, last, CASE WHEN increment > 0 THEN least(high, column_high) ELSE greatest(low, -column_high - 1) END
  FROM (SELECT n.nspname AS schema, c.relname AS name, q.seqstart AS start, q.seqincrement AS increment,
               q.seqmax AS high, q.seqmin AS low,
               CASE WHEN has_sequence_privilege(c.oid, 'SELECT, USAGE') THEN pg_sequence_last_value(c.oid) END AS last,
               CASE a.atttypid WHEN 'int2'::regtype THEN 32767 WHEN 'int4'::regtype THEN 2147483647
                    ELSE 9223372036854775807 END AS column_high
          FROM pg_sequence q JOIN pg_class c ON c.oid = q.seqrelid JOIN pg_namespace n ON n.oid = c.relnamespace
          LEFT JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i')
                               AND d.refclassid = 'pg_class'::regclass AND d.refobjsubid > 0
          LEFT JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
         WHERE c.relnamespace = ANY (%(schemas)s::oid[]) AND NOT q.seqcycle) AS s
 WHERE last IS NOT NULL ORDER BY 1, 2"""


def tables(connection: psycopg.Connection[Any], schemas: list[int]) -> list[TableFacts]:
    """Read the tables of the schemas with these OIDs."""
    return [_table(row) for row in execute(connection, _TABLES, {"schemas": schemas})]


def _table(row: tuple[Any, ...]) -> TableFacts:
    schema, name, kind, logged, partition, identity, key, *rest = row
    named, found = TableName(schema, name), _KEYS.get(key, TableKey.NONE)
    return TableFacts(named, TableKind(kind), logged, partition, IDENTITIES.get(identity, "nothing"), found, *rest)


def sequences(connection: psycopg.Connection[Any], schemas: list[int]) -> list[SequenceFacts]:
    """Read the sequences that end, and have been used. A sequence of a column ends where the type of the column ends."""
    return [
        SequenceFacts(TableName(schema, name), *map(int, values))
        for schema, name, *values in execute(connection, _SEQUENCES, {"schemas": schemas})
    ]
