"""Changes what the log contains of many tables, in few transactions.

The tables of a batch are changed together, in one round trip and one commit. A refused batch is divided, so that in the end
each refused table is alone: only then is a lock waited for, and the error names what is in the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.connectors.postgres import lock_waits
from ggshell.connectors.postgres.schema_trandata_sql import OWN
from ggshell.connectors.postgres.session import execute, transaction
from ggshell.errors import ConnectionLostError, GgsError
from ggshell.types import TableName

if TYPE_CHECKING:
    import psycopg

BATCH = 100
"""Tables. Their locks are held until the batch commits, for some tens of milliseconds."""
BATCH_LOCK_SECONDS = 0.1
"""A batch waits no longer for the lock of a table, because the application waits for those that it holds already."""


class Statement(NamedTuple):
    """A statement without parameters and the table whose lock it needs."""

    table: TableName
    text: str


class TableChange(NamedTuple):
    """What changes a table. ``first`` runs before the statements; a table with it is never changed with others."""

    table: TableName
    statements: list[Statement]
    first: Callable[[], None] | None = None


def carry_out(connection: psycopg.Connection[Any], changes: Sequence[TableChange]) -> dict[TableName, GgsError]:
    """Carry out the changes, and return the errors of the refused tables. Raises ConnectionLostError."""
    errors: dict[TableName, GgsError] = {}
    for batch in _batches(changes):
        _change(connection, batch, errors)
    return errors


def _batches(changes: Sequence[TableChange]) -> Iterator[list[TableChange]]:
    batch: list[TableChange] = []
    for change in changes:
        if change.first is not None:
            yield [change]
        else:
            batch.append(change)
            if len(batch) == BATCH:
                yield batch
                batch = []
    if batch:
        yield batch


def _change(connection: psycopg.Connection[Any], batch: list[TableChange], errors: dict[TableName, GgsError]) -> None:
    """Change the tables of a batch together, or else the halves of the batch one after the other."""
    try:
        if len(batch) == 1:
            _change_one(connection, batch[0])
        else:
            _change_together(connection, batch)
    except ConnectionLostError:
        raise
    except GgsError as error:
        if len(batch) == 1:
            errors[batch[0].table] = error
            return
        middle = len(batch) // 2
        _change(connection, batch[:middle], errors)
        _change(connection, batch[middle:], errors)


def _change_one(connection: psycopg.Connection[Any], change: TableChange) -> None:
    if change.first is None and not change.statements:
        return
    with transaction(connection):
        execute(connection, _settings(lock_waits.LOCK_SECONDS))
        if change.first is not None:
            change.first()
        for statement in change.statements:
            with lock_waits.explained(connection, statement.table):
                execute(connection, statement.text)


def _change_together(connection: psycopg.Connection[Any], batch: list[TableChange]) -> None:
    texts = [statement.text for change in batch for statement in change.statements]
    if texts:
        with transaction(connection):
            execute(connection, "; ".join([_settings(BATCH_LOCK_SECONDS), *texts]))


def _settings(seconds: float) -> str:
    """Limit the waits for locks, and have the event triggers of ggshell ignore the statements, in this transaction."""
    return f"SET LOCAL lock_timeout = '{int(seconds * 1000)}ms'; SET LOCAL {OWN} = 'on'"
