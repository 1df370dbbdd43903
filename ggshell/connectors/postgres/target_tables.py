"""Describes target tables from PostgreSQL's catalog, and reads the current row of one for conflict resolution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ggshell.connectors.postgres.describe import table_id
from ggshell.connectors.postgres.session import execute, translate
from ggshell.connectors.postgres.shapes import shape_of
from ggshell.pipeline.apply.target import ForeignKey, TableMapping, TargetColumn, TargetTable
from ggshell.types import TableName, quote, quote_table

if TYPE_CHECKING:
    import psycopg


# A single statement, and so a single snapshot: the columns and the shape must match.
_COLUMNS = """
SELECT c.oid::bigint, a.xmin::text,
       a.attname, format_type(a.atttypid, a.atttypmod), format_type(b.oid, -1), a.attgenerated = '',
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
       a.attidentity = 'a',
       (WITH RECURSIVE held (type, modifier) AS (
          SELECT a.atttypid, a.atttypmod
          UNION ALL
          SELECT d.typbasetype, d.typtypmod FROM held JOIN pg_type d ON d.oid = held.type WHERE d.typtype = 'd')
        SELECT format_type(held.type, held.modifier) FROM held JOIN pg_type d ON d.oid = held.type WHERE d.typtype <> 'd')
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_type t ON t.oid = a.atttypid
  LEFT JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
 WHERE n.nspname = %s AND c.relname = %s
 ORDER BY a.attnum"""

_UNIQUE = """
SELECT i.indisprimary AND i.indimmediate, array_agg(a.attname::text ORDER BY k.place)
  FROM pg_index i
  CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(number, place)
  JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
 WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND k.place <= i.indnkeyatts
   AND 0 <> ALL (i.indkey::int2[])
 GROUP BY i.indexrelid, i.indisprimary
 ORDER BY i.indisprimary DESC, i.indexrelid"""

_FACTS = """
SELECT c.relkind = 'p', c.relkind IN ('r', 'p') AND NOT row_security_active(c.oid)
       AND NOT EXISTS (SELECT FROM pg_rewrite w WHERE w.ev_class = c.oid AND w.ev_type = '3' AND w.ev_enabled <> 'D'),
       ARRAY(WITH RECURSIVE up (parent) AS (
               SELECT confrelid FROM pg_constraint WHERE conrelid = c.oid AND contype = 'f' AND confdeltype = 'c'
                UNION
               SELECT f.confrelid FROM pg_constraint f JOIN up ON f.conrelid = up.parent
                WHERE f.contype = 'f' AND f.confdeltype = 'c')
             SELECT ARRAY[n.nspname::text, p.relname::text]
               FROM up JOIN pg_class p ON p.oid = up.parent JOIN pg_namespace n ON n.oid = p.relnamespace ORDER BY 1),
       EXISTS (SELECT FROM pg_constraint x WHERE x.conrelid = c.oid AND x.contype = 'x')
       OR EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique
                  AND (to_jsonb(i) @> '{"indnullsnotdistinct": true}' OR i.indexprs IS NOT NULL OR i.indpred IS NOT NULL)),
       EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = c.oid AND NOT g.tgisinternal AND g.tgtype & 7 = 7)
  FROM pg_class c WHERE c.oid = %s"""

_FOREIGN = """
SELECT array_agg(a.attname::text ORDER BY k.place), n.nspname, p.relname, array_agg(b.attname::text ORDER BY k.place),
       bool_and(a.atttypid = b.atttypid
                OR a.atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)
                   AND b.atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)
                OR a.atttypid IN ('text'::regtype, 'varchar'::regtype)
                   AND b.atttypid IN ('text'::regtype, 'varchar'::regtype))
  FROM pg_constraint f
  JOIN pg_class p ON p.oid = f.confrelid
  JOIN pg_namespace n ON n.oid = p.relnamespace
  CROSS JOIN LATERAL unnest(f.conkey, f.confkey) WITH ORDINALITY AS k(own, other, place)
  JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = k.own
  JOIN pg_attribute b ON b.attrelid = f.confrelid AND b.attnum = k.other
 WHERE f.conrelid = %s AND f.contype = 'f'
 GROUP BY f.oid, n.nspname, p.relname
 ORDER BY f.oid"""

# confrelid has no index.
_REFERRED = """
SELECT DISTINCT array_agg(DISTINCT a.attname::text)
  FROM pg_depend d
  JOIN pg_constraint f ON f.oid = d.objid
  JOIN pg_attribute a ON a.attrelid = f.confrelid AND a.attnum = ANY (f.confkey)
 WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = %s AND d.classid = 'pg_constraint'::regclass
   AND f.contype = 'f' AND f.confrelid = d.refobjid
 GROUP BY f.oid"""


def target_table(connection: psycopg.Connection[Any], table: TableName) -> TargetTable | None:
    """Describe a table. None if it does not exist."""
    facts: list[tuple[Any, ...]] = []
    while not facts:  # the table may be dropped and created again between two statements
        found = (
            execute(connection, _COLUMNS, [table.owner, table.name]) if table_id(connection, table) is not None else []
        )
        if not found:
            return None
        relation = int(found[0][0])
        unique = execute(connection, _UNIQUE, [relation])
        foreign = execute(connection, _FOREIGN, [relation])
        referred = execute(connection, _REFERRED, [relation])
        facts = execute(connection, _FACTS, [relation])
    described = [row[1:] for row in found if row[1] is not None]
    columns = tuple(TargetColumn(*row[1:]) for row in described)
    partitioned, bulk, parents, opaque, routed = facts[0]
    primary = next((tuple(names) for is_primary, names in unique if is_primary), ())
    return TargetTable(
        name=table,
        columns=columns,
        key=primary,
        unique=tuple(frozenset(names) for _, names in unique),
        partitioned=partitioned,
        routed=routed,
        bulk=bulk,
        cascades=tuple(TableName(*parent) for parent in parents),
        foreign=tuple(
            ForeignKey(tuple(own), TableName(owner, name), tuple(other), same_text)
            for own, owner, name, other, same_text in foreign
        ),
        referenced=bool(referred),
        opaque=opaque,
        shape=shape_of(relation, [version for version, *_ in described]),
        referred=tuple(frozenset(names) for (names,) in referred),
    )


def own_rows(table: TargetTable) -> str:
    """The table's name for UPDATE and DELETE, with ONLY unless its rows may be stored in other tables.

    The rows of inheritance children are not a table's own: the log names each table with its own rows.
    """
    quoted = quote_table(table.name)
    return quoted if table.partitioned or table.routed else f"ONLY {quoted}"


def fetch_row(
    connection: psycopg.Connection[Any], mapping: TableMapping, key: Mapping[int, bytes | None]
) -> dict[int, bytes | None] | None:
    """Read and lock a row.

    Returns its values in the server's text form, by the column indexes of the source, or None. Raises DatabaseError.
    """
    import psycopg

    columns = [(index, column) for index, column in enumerate(mapping.columns) if column is not None]
    parts: list[str] = []
    values: list[str] = []
    for index, column in columns:
        if index not in key:
            continue
        value = key[index]
        name = _name(column)
        parts.append(f"{name} IS NULL" if value is None else f"{name} = %s")
        values += [] if value is None else [value.decode()]
    names = ", ".join(_name(column) for _, column in columns)
    rows = own_rows(mapping.target).replace("%", "%%")
    text = f"SELECT {names} FROM {rows} WHERE {' AND '.join(parts) or 'true'} LIMIT 1 FOR UPDATE"
    try:
        # Not prepared: the types of the columns may change while the connection is open.
        result = connection.execute(text, values, prepare=False).pgresult
    except psycopg.Error as error:
        raise translate(error) from error
    if result is None or not result.ntuples:
        return None
    return {index: result.get_value(0, place) for place, (index, _) in enumerate(columns)}


def _name(column: TargetColumn) -> str:
    return quote(column.name).replace("%", "%%")
