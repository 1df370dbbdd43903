"""Target tables as the catalog describes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ggshell.apply.target import ForeignKey, TargetColumn, TargetTable
from ggshell.databases.postgres.describe import table_id
from ggshell.databases.postgres.session import execute
from ggshell.types import TableName

if TYPE_CHECKING:
    import psycopg

_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), format_type(b.oid, -1), a.attgenerated = '',
       b.typtype IN ('e', 'r', 'm') OR b.typcategory = 'A' AND EXISTS (
         SELECT FROM pg_type e JOIN pg_opclass o ON o.opcintype = e.oid OR e.typtype IN ('e', 'r', 'm')
                                                 OR e.typname IN ('varchar', 'cidr')
          WHERE e.oid = b.typelem AND o.opcdefault AND o.opcmethod IN (403, 405))
       OR b.typname IN ('varchar', 'cidr')
       OR EXISTS (SELECT FROM pg_opclass o WHERE o.opcintype = b.oid AND o.opcdefault AND o.opcmethod IN (403, 405)),
       (b.typtype = 'e' OR b.typname IN ('bool', 'bytea', 'char', 'name', 'int8', 'int2', 'int4', 'text', 'varchar', 'oid',
         'date', 'time', 'timestamp', 'timestamptz', 'uuid', 'bit', 'varbit', 'macaddr', 'macaddr8', 'pg_lsn'))
       AND NOT EXISTS (SELECT FROM pg_collation l WHERE l.oid = a.attcollation
                       AND to_jsonb(l) @> '{"collisdeterministic": false}'),
       a.attidentity = 'a'
  FROM pg_attribute a
  JOIN pg_type t ON t.oid = a.atttypid
  JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
 WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attnum"""

_UNIQUE = """
SELECT i.indisprimary, array_agg(a.attname::text ORDER BY k.place)
  FROM pg_index i
  CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(number, place)
  JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
 WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND k.place <= i.indnkeyatts
   AND 0 <> ALL (i.indkey::int2[])
 GROUP BY i.indexrelid, i.indisprimary
 ORDER BY i.indisprimary DESC, i.indexrelid"""

_FACTS = """
SELECT c.relkind = 'p', c.relkind IN ('r', 'p') AND NOT row_security_active(c.oid),
       ARRAY(SELECT DISTINCT ARRAY[n.nspname::text, p.relname::text]
               FROM pg_constraint f JOIN pg_class p ON p.oid = f.confrelid JOIN pg_namespace n ON n.oid = p.relnamespace
              WHERE f.conrelid = c.oid AND f.contype = 'f' AND f.confdeltype = 'c'),
       EXISTS (SELECT FROM pg_constraint f WHERE f.confrelid = c.oid AND f.contype = 'f'),
       EXISTS (SELECT FROM pg_constraint x WHERE x.conrelid = c.oid AND x.contype = 'x')
       OR EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique
                  AND (to_jsonb(i) @> '{"indnullsnotdistinct": true}' OR i.indexprs IS NOT NULL OR i.indpred IS NOT NULL))
  FROM pg_class c WHERE c.oid = %s"""

_FOREIGN = """
SELECT array_agg(a.attname::text ORDER BY k.place), n.nspname, p.relname, array_agg(b.attname::text ORDER BY k.place)
  FROM pg_constraint f
  JOIN pg_class p ON p.oid = f.confrelid
  JOIN pg_namespace n ON n.oid = p.relnamespace
  CROSS JOIN LATERAL unnest(f.conkey, f.confkey) WITH ORDINALITY AS k(own, other, place)
  JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = k.own
  JOIN pg_attribute b ON b.attrelid = f.confrelid AND b.attnum = k.other
 WHERE f.conrelid = %s AND f.contype = 'f'
 GROUP BY f.oid, n.nspname, p.relname
 ORDER BY f.oid"""


def target_table(connection: psycopg.Connection[Any], table: TableName) -> TargetTable | None:
    """A table, None when it does not exist."""
    relation = table_id(connection, table)
    if relation is None:
        return None
    columns = tuple(TargetColumn(*row) for row in execute(connection, _COLUMNS, [relation]))
    unique = execute(connection, _UNIQUE, [relation])
    foreign = execute(connection, _FOREIGN, [relation])
    partitioned, bulk, parents, referenced, opaque = execute(connection, _FACTS, [relation])[0]
    primary = next((tuple(names) for is_primary, names in unique if is_primary), ())
    return TargetTable(
        name=table,
        columns=columns,
        key=primary,
        unique=tuple(frozenset(names) for _, names in unique),
        partitioned=partitioned,
        bulk=bulk,
        cascades=tuple(TableName(*parent) for parent in parents),
        foreign=tuple(
            ForeignKey(tuple(own), TableName(owner, name), tuple(other)) for own, owner, name, other in foreign
        ),
        referenced=referenced,
        opaque=opaque,
    )
