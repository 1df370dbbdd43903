"""Reads the values of sequences, and writes them to the log, which does not contain them, as a sealed message."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ggshell.connectors.postgres import ddl_capture_sql
from ggshell.connectors.postgres.sealed_messages import opened, sealed
from ggshell.connectors.postgres.session import execute, transaction
from ggshell.errors import NO_TABLE, DatabaseError, NotFoundError, StateError
from ggshell.record.name_patterns import matches
from ggshell.record.sequences import SequenceValue
from ggshell.types import TableName, quote_table

if TYPE_CHECKING:
    import psycopg

PREFIX: Final = "ggshell.sequences"
LEAST_AHEAD: Final = 1000
"""Minimum number of values that a target is set ahead."""
CACHES_AHEAD: Final = 100
"""A target is set ahead at least this many times the CACHE of the sequence."""
_XID_MODULUS = 1 << 32
_SEQUENCES = """
SELECT n.nspname, c.relname, s.seqincrement, s.seqcache,
       has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
  FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relpersistence <> 't' AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname NOT IN ('information_schema', 'ggshell')
 ORDER BY 1, 2"""


class FoundSequences(NamedTuple):
    """The current values of sequences, and the sequences that the user may not read."""

    values: list[SequenceValue]
    unreadable: list[TableName]


def read_all(connection: psycopg.Connection[Any], takes: Callable[[TableName], bool]) -> list[SequenceValue]:
    """Read the current values of the sequences that ``takes`` selects. Raises DatabaseError if the user may not."""
    found = read(connection, takes)
    if found.unreadable:
        raise DatabaseError(
            f"the user may not read {'sequences' if len(found.unreadable) > 1 else 'sequence'}"
            f" {', '.join(map(str, found.unreadable))}",
            hint="GRANT SELECT on the sequence, and USAGE on its schema",
        )
    return found.values


def read(connection: psycopg.Connection[Any], takes: Callable[[TableName], bool]) -> FoundSequences:
    """Read the current values of the sequences that ``takes`` selects and the user may read. Raises DatabaseError."""
    rows = [(TableName(*row[:2]), *row[2:]) for row in execute(connection, _SEQUENCES)]
    chosen = [row for row in rows if takes(row[0]) and row[3]]
    unreadable = [row[0] for row in rows if takes(row[0]) and not row[3]]
    if not chosen:
        return FoundSequences([], unreadable)
    parts = (f"SELECT {number}, last_value, is_called FROM {quote_table(row[0])}" for number, row in enumerate(chosen))
    found = [
        SequenceValue(
            chosen[number][0], last, called, chosen[number][1], max(LEAST_AHEAD, CACHES_AHEAD * chosen[number][2])
        )
        for number, last, called in execute(connection, " UNION ALL ".join(parts))
    ]
    return FoundSequences(found, unreadable)


def write(connection: psycopg.Connection[Any], secret: str, values: Iterable[SequenceValue]) -> None:
    """Write values to the log as one message, in a transaction of its own. Raises DatabaseError."""
    with transaction(connection):
        xid = int(execute(connection, "SELECT pg_current_xact_id()::text")[0][0]) % _XID_MODULUS
        body = json.dumps({"xid": xid, "values": [[*value.name, *value[1:]] for value in values]})
        execute(connection, "SELECT pg_logical_emit_message(true, %s, %s)", [PREFIX, sealed(secret, body)])


def genuine(secrets: Sequence[str], xid: int, content: bytes) -> list[SequenceValue]:
    """Return the values in a message of transaction ``xid``; none if it was not written with one of the secrets."""
    try:
        found = opened(secrets, xid, content)
    except ValueError:
        return []
    return [SequenceValue(TableName(owner, name), *fields) for owner, name, *fields in found["values"]]


def flush(connection: psycopg.Connection[Any], pattern: str) -> list[SequenceValue]:
    """Write the exact values of the sequences that a pattern names to the log, and return them.

    Raises NotFoundError if there is none, DatabaseError if the user may not read one, and StateError if the database has no
    secret that the Extract knows too.
    """
    values = [
        value._replace(ahead=0, exact=True) for value in read_all(connection, lambda name: matches(pattern, name))
    ]
    if not values:
        raise NotFoundError(f"no sequence matches {pattern}", code=NO_TABLE, hint="check schema, spelling and case")
    secret = ddl_capture_sql.secret(connection)
    if secret is None:
        raise StateError(
            "the Extract could not verify the values: the database has no secret that both share",
            code="GGS-00597",
            hint="run ADD SCHEMATRANDATA for a schema as a superuser: it creates the secret",
        )
    write(connection, secret, values)
    return values
