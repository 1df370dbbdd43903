"""TRANDATA: what the log must hold of a table so that its changes can be applied elsewhere.

For PostgreSQL that is the replica identity (which columns of the old row are logged) and membership in the publication.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.databases.postgres import describe
from ggshell.databases.postgres.session import execute
from ggshell.databases.postgres.slot import PUBLICATION, ensure_publication
from ggshell.errors import DatabaseError, NotFoundError
from ggshell.types import TableName

if TYPE_CHECKING:
    import psycopg

IDENTITIES = {"d": "default", "n": "nothing", "f": "full", "i": "index"}


class Trandata(NamedTuple):
    """A table's state: its replica identity before and now, the columns that identify a row, whether it is published."""

    table: TableName
    before: str
    identity: str
    key: tuple[str, ...]
    published: bool

    @property
    def enabled(self) -> bool:
        """Whether all changes of the table can be captured."""
        return self.published and self.identity != "nothing"


def info(connection: psycopg.Connection[Any], table: TableName) -> Trandata:
    """What is set for a table.  Raises NotFoundError when it does not exist."""
    relation = describe.table_id(connection, table)
    if relation is None:
        raise NotFoundError(f"table {table} does not exist", code="GGS-00211")
    identity = IDENTITIES[
        execute(connection, "SELECT relreplident::text FROM pg_class WHERE oid = %s", [relation])[0][0]
    ]
    published = execute(
        connection,
        "SELECT 1 FROM pg_publication_tables WHERE pubname = %s AND schemaname = %s AND tablename = %s",
        [PUBLICATION, table.owner, table.name],
    )
    return Trandata(table, identity, identity, _key(connection, relation, identity), bool(published))


def _key(connection: psycopg.Connection[Any], relation: int, identity: str) -> tuple[str, ...]:
    wanted = {"default": "x.indisprimary", "index": "x.indisreplident"}.get(identity)
    if wanted is None:
        every = [row[0] for row in describe.columns(connection, relation)] if identity == "full" else []
        return tuple(every)
    rows = execute(
        connection,
        "SELECT a.attname FROM pg_index x JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = ANY (x.indkey::int2[])"
        f" WHERE x.indrelid = %s AND {wanted} ORDER BY array_position(x.indkey::int2[], a.attnum)",
        [relation],
    )
    return tuple(row[0] for row in rows)


def add(
    connection: psycopg.Connection[Any], table: TableName, keycols: tuple[str, ...] = (), *, all_columns: bool = False
) -> Trandata:
    """Have a table's changes logged in full: set its replica identity, publish it.

    The primary key identifies rows; ``keycols`` names another unique index's columns (without such an index the whole old
    row is logged); ``all_columns`` logs whole old rows.  Raises NotFoundError, or DatabaseError naming what is missing.
    """
    before = info(connection, table)
    relation = describe.table_id(connection, table)
    quoted = describe.quote_table(table)
    primary = execute(connection, "SELECT 1 FROM pg_index WHERE indrelid = %s AND indisprimary", [relation])
    index = _unique_index(connection, relation, keycols) if keycols else None
    if all_columns or (keycols and index is None) or (not primary and index is None and before.identity != "index"):
        wanted = "FULL"
    elif index is not None:
        wanted = f"USING INDEX {describe.quote(index)}"
    else:
        wanted = "DEFAULT" if primary else ""
    ensure_publication(connection)
    for child in [quoted, *_partitions(connection, relation)]:
        if wanted and not (wanted.startswith("USING") and child != quoted):
            execute(connection, f"ALTER TABLE {child} REPLICA IDENTITY {wanted}")
    if not before.published:
        execute(connection, f"ALTER PUBLICATION {PUBLICATION} ADD TABLE {quoted}")
    return info(connection, table)._replace(before=before.identity)


def delete(connection: psycopg.Connection[Any], table: TableName) -> Trandata:
    """Stop publishing a table and give it its default replica identity back.  Raises NotFoundError."""
    before = info(connection, table)
    quoted = describe.quote_table(table)
    if before.published:
        execute(connection, f"ALTER PUBLICATION {PUBLICATION} DROP TABLE {quoted}")
    for child in [quoted, *_partitions(connection, describe.table_id(connection, table))]:
        execute(connection, f"ALTER TABLE {child} REPLICA IDENTITY DEFAULT")
    return info(connection, table)._replace(before=before.identity)


def require_capturable(found: Trandata) -> None:
    """Refuse a table whose changes the log does not hold.  Raises DatabaseError naming the table and the remedy."""
    if found.enabled:
        return
    why = "its replica identity is NOTHING" if found.published else "it has no TRANDATA"
    raise DatabaseError(
        f"changes of table {found.table} cannot be captured: {why}",
        code="OGG-10004",
        hint=f"DBLOGIN, then ADD TRANDATA {found.table}",
    )


def require_logged(found: Trandata, columns: tuple[str, ...]) -> None:
    """Refuse KEYCOLS of which the log does not hold the old values.  Raises DatabaseError naming the remedy."""
    missing = [column for column in columns if column not in found.key]
    if missing:
        raise DatabaseError(
            f"KEYCOLS of table {found.table}: the log does not hold the old value of {', '.join(missing)}",
            code="OGG-10005",
            hint=f"ADD TRANDATA {found.table}, COLS ({', '.join(columns)}), and see that the columns exist",
        )


def _partitions(connection: psycopg.Connection[Any], relation: int | None) -> list[str]:
    rows = execute(
        connection, "SELECT relid::regclass::text FROM pg_partition_tree(%s) WHERE relid <> %s", [relation, relation]
    )
    return [row[0] for row in rows]


def _unique_index(connection: psycopg.Connection[Any], relation: int | None, names: tuple[str, ...]) -> str | None:
    """A unique, not-null, immediate index over exactly these columns."""
    rows = execute(
        connection,
        "SELECT c.relname, array_agg(a.attname ORDER BY a.attname)::text[] FROM pg_index x"
        " JOIN pg_class c ON c.oid = x.indexrelid"
        " JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = ANY (x.indkey::int2[])"
        " WHERE x.indrelid = %s AND x.indisunique AND x.indimmediate AND x.indpred IS NULL AND x.indexprs IS NULL"
        " GROUP BY c.relname HAVING bool_and(a.attnotnull)",
        [relation],
    )
    return next((name for name, columns in rows if columns == sorted(names)), None)
