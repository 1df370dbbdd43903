"""TRANDATA: what the log must contain of a table so that its changes can be applied elsewhere.

For PostgreSQL this is the replica identity (which columns of the old row are logged) and membership in the publication.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.connectors.postgres import lock_waits, partition_truncates, schema_trandata_sql
from ggshell.connectors.postgres.identity import Choice, Member, WantedIdentity, choose_all, members
from ggshell.connectors.postgres.session import execute
from ggshell.connectors.postgres.slot import PUBLICATION, ensure_publication
from ggshell.connectors.postgres.table_changes import Statement, TableChange, carry_out
from ggshell.errors import NO_TABLE, DatabaseError, GgsError, NotFoundError
from ggshell.types import TableName, quote, quote_table

if TYPE_CHECKING:
    import psycopg


SCHEMAS_SINCE = 150_000
"""The server version from which a publication can name whole schemas, and rows and columns of a table."""
GENERATED_SINCE = 180_000
"""The server version from which a publication can carry stored generated columns."""
_WHOLE = """CASE WHEN NOT (p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate) THEN 'operations'
            WHEN NOT p.pubviaroot THEN 'partitions' ELSE '' END"""
"""What a publication leaves out of all its tables."""
_PARTS = f"CASE WHEN r.prqual IS NOT NULL THEN 'rows' WHEN r.prattrs IS NOT NULL THEN 'columns' ELSE {_WHOLE} END"
"""What a publication leaves out of a table of its own, where it can name rows and columns."""
_TABLES = """
SELECT n.nspname, c.relname, {}
  FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid
  JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE p.pubname = %(name)s"""
_EVERYTHING = f"""
 UNION ALL SELECT n.nspname, NULL, {_WHOLE} FROM pg_publication p CROSS JOIN pg_namespace n
 WHERE p.pubname = %(name)s AND p.puballtables"""
_SCHEMAS = f"""
 UNION ALL SELECT n.nspname, NULL, {_WHOLE} FROM pg_publication p JOIN pg_publication_namespace s ON s.pnpubid = p.oid
  JOIN pg_namespace n ON n.oid = s.pnnspid WHERE p.pubname = %(name)s"""


_OTHERS = """
SELECT CASE t.relid WHEN to_regclass(%(table)s) THEN 'it' ELSE 'its partition ' || t.relid::regclass::text END,
       pg_get_userbyid(c.relowner), current_user
  FROM (SELECT to_regclass(%(table)s) AS relid UNION SELECT relid FROM pg_partition_tree(%(table)s::regclass)) t
  JOIN pg_class c ON c.oid = t.relid WHERE NOT pg_has_role(c.relowner, 'USAGE')
 UNION ALL
SELECT 'publication ' || pubname, pg_get_userbyid(pubowner), current_user
  FROM pg_publication WHERE pubname = %(publication)s AND NOT pg_has_role(pubowner, 'USAGE')"""
DENIED = "42501"


class Later(StrEnum):
    """What happens to a partition that is created later, until ADD TRANDATA is given again."""

    COVERED = ""
    UNNOTED = "TRUNCATE of it alone is not captured"
    BREAKS = "the application's UPDATE and DELETE on it fail"

    @property
    def remedy(self) -> str:
        """How to avoid it."""
        key = "create a primary key, or " if self is Later.BREAKS else ""
        return f"{key}run ADD TRANDATA once as a superuser to create an event trigger for new partitions"


class Trandata(NamedTuple):
    """The TRANDATA state of a table.

    ``before`` and ``identity`` are its replica identity before and now, ``key`` the columns that identify a row.
    ``lacks`` is the reason why changes of its rows cannot be captured (empty when they can). ``unnoted`` are the
    partitions whose own TRUNCATE is not in the log, and ``later`` is what happens to partitions created later.
    ``generated`` are the generated columns, which are not published, and ``unlogged`` the UNLOGGED partitions.
    """

    table: TableName
    before: str
    identity: str
    key: tuple[str, ...]
    published: bool
    lacks: str = ""
    unnoted: tuple[TableName, ...] = ()
    partitions: tuple[TableName, ...] = ()
    later: Later = Later.COVERED
    generated: tuple[str, ...] = ()
    unlogged: tuple[TableName, ...] = ()

    @property
    def enabled(self) -> bool:
        """Whether all changes of the table can be captured."""
        return self.published and not self.lacks

    @property
    def warning(self) -> str:
        """The warning about partitions created later, with the remedy; empty when nothing needs to be done."""
        again = f"until ADD TRANDATA {self.table} is run again"
        text = f"When a partition of {self.table} is created later, {self.later} {again}: {self.later.remedy}."
        return text if self.later else ""

    @property
    def note(self) -> str:
        """The note about generated columns that the log lacks; empty when it lacks none."""
        if not self.generated:
            return ""
        names, some = ", ".join(self.generated), len(self.generated) > 1
        text = f"Generated column{'s' * some} {names} of {self.table} {'are' if some else 'is'} not logged"
        return f"{text}: in the target, generate such columns as well, or map them with COLMAP."

    @property
    def reason(self) -> str:
        """The reason why changes cannot be captured; empty when they can."""
        return self.lacks if self.published else "it has no TRANDATA"


class Published(NamedTuple):
    """The published tables, as pairs of schema and table. None as the table stands for every table of the schema.

    The values say what an administrator has excluded: rows, columns, operations or partitions; empty for nothing.
    """

    names: Mapping[tuple[str, str | None], str]

    def has(self, table: TableName) -> bool:
        return (table.owner, table.name) in self.names or (table.owner, None) in self.names

    def left_out(self, table: Member) -> str:
        """What the publication leaves out of a table."""
        name = table.table
        found = self.names.get((name.owner, name.name)) or self.names.get((name.owner, None), "")
        return "" if found == "partitions" and table.kind != "p" else found


def published(connection: psycopg.Connection[Any]) -> Published:
    """The tables in the publication."""
    parts, schemas = (_PARTS, _SCHEMAS) if connection.info.server_version >= SCHEMAS_SINCE else (_WHOLE, "")
    rows = execute(connection, _TABLES.format(parts) + _EVERYTHING + schemas, {"name": PUBLICATION})
    return Published({(schema, table): left_out for schema, table, left_out in rows})


def info_all(connection: psycopg.Connection[Any], tables: Iterable[TableName]) -> dict[TableName, Trandata]:
    """The states of the tables that exist. The number of queries does not depend on the number of tables."""
    here = published(connection)
    version = connection.info.server_version
    found = members(connection, list(tables))
    covered = not any(parts[0].kind == "p" for parts in found.values()) or schema_trandata_sql.fires(connection)
    carried = any(parts[0].generated for parts in found.values()) and _publishes_generated(connection)
    states = {table: _state(parts, here, version, covered=covered) for table, parts in found.items()}
    return {table: state._replace(generated=()) for table, state in states.items()} if carried else states


def _publishes_generated(connection: psycopg.Connection[Any]) -> bool:
    """Whether the publication carries stored generated columns, which an administrator may have set."""
    if connection.info.server_version < GENERATED_SINCE:
        return False
    asked = "SELECT 1 FROM pg_publication WHERE pubname = %s AND pubgencols = 's'"
    return bool(execute(connection, asked, [PUBLICATION]))


def info(connection: psycopg.Connection[Any], table: TableName) -> Trandata:
    """The state of one table. Raises NotFoundError when it does not exist."""
    found = info_all(connection, [table])
    if table not in found:
        raise _missing(table)
    return found[table]


def _missing(table: TableName) -> NotFoundError:
    return NotFoundError(f"table {table} does not exist", code=NO_TABLE)


def _state(parts: list[Member], here: Published, version: int, *, covered: bool) -> Trandata:
    table, *partitions = parts
    lacks, left_out = table.lacks(version), here.left_out(table)
    if left_out:
        lacks = f"the publication {PUBLICATION} leaves out some of its {left_out}"
    for part in partitions:
        why = part.lacks(version) or part.lacks_of(table)
        if why and not lacks:
            lacks = f"for its partition {part.table}, {why}"
    leaves = [part for part in partitions if part.kind == "r"]
    unnoted = tuple(part.table for part in leaves if not part.noted)
    names = tuple(part.table for part in leaves)
    later = Later.COVERED if covered else _later(table)
    return Trandata(
        *(table.table, table.identity, table.identity, table.logged, here.has(table.table)),
        *(lacks, unnoted, names, later, table.generated),
        tuple(part.table for part in leaves if not part.in_log),
    )


def _later(table: Member) -> Later:
    """What happens to later partitions of a table.

    A new partition gets the indexes of its table and, with a primary key, a replica identity, but no trigger.
    """
    if table.kind != "p":
        return Later.COVERED
    return Later.BREAKS if table.primary is None else Later.UNNOTED


class TrandataOutcome(NamedTuple):
    """The result for a list of tables: the states of those that were changed, the errors of those that were refused."""

    states: list[Trandata]
    errors: list[GgsError]


def add_all(
    connection: psycopg.Connection[Any],
    tables: Iterable[TableName],
    keycols: tuple[str, ...] = (),
    *,
    all_columns: bool = False,
) -> TrandataOutcome:
    """Have all changes of tables logged: set their replica identity and publish them.

    A refused table does not stop the others. By default the primary key identifies rows. ``keycols`` names the columns
    of another unique index (without such an index the whole old row is logged). ``all_columns`` logs whole old rows. A
    stronger identity that is already set stays. A table with inheritance children is published alone, because each
    child is a table of its own.
    """
    ensure_publication(connection)
    here, version, wanted = published(connection), connection.info.server_version, WantedIdentity(all_columns, keycols)

    def statements(parts: list[Member]) -> list[Statement]:
        chosen = zip(parts, choose_all(parts, wanted, version), strict=True)
        found = [each for part, choice in chosen for each in _set_identity(part, choice)]
        return found + _publish(parts[0], here)

    def note_truncates(parts: list[Member]) -> None:
        schema_trandata_sql.installed(connection)
        _note_truncates(connection, parts)

    return _each(connection, list(tables), statements, note_truncates)


def _publish(table: Member, here: Published) -> list[Statement]:
    """The statements that publish all changes of a table."""
    name, left_out = table.table, here.left_out(table)
    change, only = f"ALTER PUBLICATION {PUBLICATION}", f"TABLE ONLY {quote_table(name)}"
    if left_out in ("rows", "columns"):
        return [Statement(name, f"{change} DROP {only}"), Statement(name, f"{change} ADD {only}")]
    return [] if here.has(name) else [Statement(name, f"{change} ADD {only}")]


def _note_truncates(connection: psycopg.Connection[Any], parts: list[Member]) -> None:
    """Have TRUNCATE of a single partition written to the log. Where this login may not do so, the state reports it."""
    if partition_truncates.install(connection):
        return
    for part in parts:
        for statement in partition_truncates.statements(part):
            with lock_waits.explained(connection, part.table):
                execute(connection, statement)


def delete_all(connection: psycopg.Connection[Any], tables: Iterable[TableName]) -> TrandataOutcome:
    """Stop publishing tables, and set their replica identity back to the default."""
    here = published(connection)

    def statements(parts: list[Member]) -> list[Statement]:
        table, found = parts[0].table, []
        if (table.owner, table.name) in here.names:
            found.append(Statement(table, f"ALTER PUBLICATION {PUBLICATION} DROP TABLE ONLY {quote_table(table)}"))
        return found + [each for part in parts for each in _set_identity(part, Choice("default"))]

    def remove_triggers(parts: list[Member]) -> None:
        for part in parts:
            partition_truncates.remove(connection, part)

    outcome = _each(connection, list(tables), statements, remove_triggers)
    schema_trandata_sql.remove_unneeded(connection)
    return outcome


def _each(
    connection: psycopg.Connection[Any],
    tables: list[TableName],
    statements: Callable[[list[Member]], list[Statement]],
    triggers: Callable[[list[Member]], None],
) -> TrandataOutcome:
    """Change tables; ``triggers`` changes those of a partitioned table or a partition. Raises ConnectionLostError."""
    known = members(connection, tables)
    changes: list[TableChange] = []
    errors: dict[TableName, GgsError] = {}
    for table in tables:
        try:
            if table not in known:
                raise _missing(table)
            parts = known[table]
            first = functools.partial(triggers, parts) if parts[0].kind == "p" or parts[0].triggers else None
            changes.append(TableChange(table, statements(parts), first))
        except GgsError as error:
            errors[table] = error
    for table, refusal in carry_out(connection, changes).items():
        errors[table] = _owned(connection, table, refusal)
    after = info_all(connection, [table for table in tables if table not in errors])
    states = [state._replace(before=known[table][0].identity) for table, state in after.items()]
    return TrandataOutcome(states, [errors[table] for table in tables if table in errors])


def _owned(connection: psycopg.Connection[Any], table: TableName, error: GgsError) -> GgsError:
    """Add the owner's name to a permission error: tables and publications can be changed only by their owners."""
    if getattr(error.__cause__, "sqlstate", "") != DENIED:
        return error
    quoted = {"table": quote_table(table), "publication": PUBLICATION}
    for what, owner, user in execute(connection, _OTHERS, quoted):
        return DatabaseError(
            f"TRANDATA of table {table} cannot be changed: {what} belongs to role {owner}, but the login is {user}",
            code="GGS-00423",
            hint=f"log in as {owner}, or GRANT {owner} TO {user}",
        )
    return error


def add(
    connection: psycopg.Connection[Any], table: TableName, keycols: tuple[str, ...] = (), *, all_columns: bool = False
) -> Trandata:
    """Same as ``add_all`` for one table.

    Raises NotFoundError, ConflictError for a lock, or DatabaseError naming what is missing.
    """
    return _only(add_all(connection, [table], keycols, all_columns=all_columns))


def delete(connection: psycopg.Connection[Any], table: TableName) -> Trandata:
    """Same as ``delete_all`` for one table. Raises NotFoundError, ConflictError for a lock, DatabaseError."""
    return _only(delete_all(connection, [table]))


def _only(outcome: TrandataOutcome) -> Trandata:
    if outcome.errors:
        raise outcome.errors[0]
    return outcome.states[0]


def _set_identity(part: Member, choice: Choice) -> list[Statement]:
    """The statement that sets the replica identity; none, so that no lock is taken, if it is already set."""
    index = part.identity_index
    if part.identity == choice.identity and (choice.identity != "index" or (index and index.name == choice.index_name)):
        return []
    clause = choice.clause(quote(choice.index_name))
    return [Statement(part.table, f"ALTER TABLE {quote_table(part.table)} REPLICA IDENTITY {clause}")]


def require_logged(found: Trandata, columns: tuple[str, ...]) -> None:
    """Refuse KEYCOLS whose old values are not in the log. Raises DatabaseError naming the remedy."""
    missing = [column for column in columns if column not in found.key]
    if missing:
        raise DatabaseError(
            f"KEYCOLS of table {found.table}: the log does not contain the old value of {', '.join(missing)}",
            code="OGG-10005",
            hint=f"check that the columns exist, and run ADD TRANDATA {found.table}, COLS ({', '.join(columns)})",
        )


def require_capturable(found: Trandata) -> None:
    """Refuse a table whose changes are not in the log. Raises DatabaseError naming the table and the remedy."""
    if not found.enabled:
        raise DatabaseError(
            f"changes of table {found.table} cannot be captured: {found.reason}",
            code="OGG-10004",
            hint=f"DBLOGIN, then ADD TRANDATA {found.table}",
        )
