"""Connections to a DuckDB file: the login, the process that holds the file, and error messages that name the remedy.

When a process has opened a file for writing, no other process can open it, not even to read.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ggshell.clock import pause
from ggshell.connectors.sql_transaction import transaction_of
from ggshell.errors import ConflictError, ConnectionLostError, DatabaseError, GgsError, StoppedError
from ggshell.links import LINKS, Link, Seen
from ggshell.pipeline.apply.error_rules import UNIQUE
from ggshell.pipeline.apply.target import ForeignKey, Refusal, TargetColumn, TargetTable
from ggshell.types import TableName, text_literal

if TYPE_CHECKING:
    import duckdb


SCHEME = "duckdb://"
LOCK_SECONDS = 5.0
"""How long to wait for a file that is open elsewhere, in seconds. A statement of a shell takes less."""

_PAUSE_SECONDS = 0.1
_ALIAS = "_ggshell_file"
"""The file's alias in a connection. Under its own name, ``shop.duckdb`` and its schema ``shop`` would be ambiguous."""

_LOCKED = "Could not set lock"
_HOLDER = re.compile(r"held in (?P<program>.*?) \(PID (?P<pid>\d+)\)")


def is_duckdb(login: str) -> bool:
    """Whether a login names a DuckDB file."""
    return login.strip().lower().startswith(SCHEME)


def file_of(login: str, home: Path) -> Path:
    """The file of ``duckdb:///folder/file.duckdb``. Without the third slash it is relative to the home directory."""
    return home / login.strip()[len(SCHEME) :]


def login_of(file: Path) -> str:
    """The login for a file, in the form that ``connect`` accepts."""
    return f"{SCHEME}{file.absolute()}"


def database_name(login: str) -> str:
    """The name of the database: its file name without folder and suffix."""
    return Path(login[len(SCHEME) :]).stem


def connect(
    login: str, *, patience: float = LOCK_SECONDS, wait: Callable[[float], object] | None = None
) -> duckdb.DuckDBPyConnection:
    """Open the file. A file that does not exist is created if its folder exists.

    ``patience`` is how many seconds to wait for another process to release the file; ``wait`` pauses for a number of
    seconds. Raises ConflictError when the file stays locked, DatabaseError when it is not a database or cannot be
    created.
    """
    import duckdb

    wait, waited = wait or pause, 0.0
    connection = duckdb.connect(":memory:", config={"autoinstall_known_extensions": False})
    try:
        while not _attached(connection, login, last=waited >= patience):
            wait(_PAUSE_SECONDS)
            waited += _PAUSE_SECONDS
    except BaseException:
        connection.close()
        raise
    enter(connection, login)
    return connection


def _attached(connection: duckdb.DuckDBPyConnection, login: str, *, last: bool) -> bool:
    """Try to open the file, and return whether that succeeded. A lock at the ``last`` attempt is raised as an error."""
    import duckdb

    try:
        connection.execute(f"ATTACH {text_literal(login[len(SCHEME) :])} AS {_ALIAS}")
        connection.execute(f"USE {_ALIAS}")
        connection.execute("SET TimeZone = 'UTC'")
    except duckdb.Error as error:
        if last or _LOCKED not in str(error):
            raise _refused(login, error) from error
        return False
    return True


def _refused(login: str, error: Exception) -> GgsError:
    text, file = line(error), login[len(SCHEME) :]
    if _LOCKED not in text:
        return DatabaseError(
            f"the DuckDB file {file} cannot be opened: {text}", hint="check the login: duckdb:///folder/file.duckdb"
        )
    holder = _HOLDER.search(text)
    who = f"process {holder['pid']} ({holder['program']})" if holder else "another process"
    return ConflictError(
        f"the DuckDB file {file} is locked by {who}: only one process at a time can open it",
        code="GGS-00414",
        hint="end that process, or STOP the Replicat that applies to it, and try again",
    )


def translate(error: Exception) -> GgsError:
    """Translate an error of the engine. One that makes the connection unusable becomes a ConnectionLostError."""
    import duckdb

    text = line(error)
    if isinstance(error, duckdb.InterruptException):
        return StoppedError("the current statement was interrupted because the process is stopping")
    if isinstance(error, duckdb.FatalException | duckdb.IOException | duckdb.ConnectionException):
        return ConnectionLostError(f"the DuckDB file cannot be used: {text}")
    return DatabaseError(f"DuckDB returned an error: {text}")


def line(error: Exception) -> str:
    """The first lines of an error as one line, without the statement that it quotes."""
    return " ".join(str(error).split("\n\nLINE ")[0].split())


def execute(connection: duckdb.DuckDBPyConnection, statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    """Run one statement and return its rows. Engine errors are translated."""
    import duckdb

    try:
        return connection.execute(statement, parameters).fetchall()
    except duckdb.Error as error:
        raise translate(error) from error


def transaction(connection: duckdb.DuckDBPyConnection) -> AbstractContextManager[None]:
    """A transaction: all changes within it are made, or none."""
    return transaction_of(partial(execute, connection))


# The connection to a DuckDB file for other threads, which can interrupt its statement, but not observe it.


PATIENCE_SECONDS = 10.0
"""Seconds to wait at a stop. A file is written in bulk, so the last statements of a run may take a while."""


class DuckLink:
    """One connection to a DuckDB file."""

    patience = PATIENCE_SECONDS
    observable = False

    def __init__(self, connection: duckdb.DuckDBPyConnection, login: str) -> None:
        self.canceled = False
        self._connection = weakref.ref(connection)
        self._login = login

    @property
    def waits(self) -> bool:
        return self._connection() is not None

    def address(self) -> str:
        return self._login

    def observe(self, links: Sequence[Link]) -> Mapping[Link, Seen]:
        return {link: Seen("") for link in links}

    def cancel(self) -> None:
        """Interrupt the running statement. It fails, and so does its transaction. Does nothing if no statement runs."""
        self.canceled = True
        connection = self._connection()
        if connection is not None:
            connection.interrupt()

    def break_off(self) -> None:
        self.cancel()


def enter(connection: duckdb.DuckDBPyConnection, login: str) -> None:
    """Register a connection with the process."""
    LINKS.enter(connection, DuckLink(connection, login))


# DuckDB's errors, with the SQLSTATEs that other databases use for the same errors.
#
# DuckDB has no error codes. The class of an error gives its rough kind; for a constraint, only the text says which
# kind.


_CONSTRAINTS = {
    "NOT NULL": "23502",
    "foreign key": "23503",
    "CHECK": "23514",
    "duplicate key": UNIQUE,
    "Duplicate key": UNIQUE,
}


def refusal(error: Exception) -> Refusal:
    """Convert an error of the engine to a refusal. Raises ConnectionLostError if it broke the connection."""
    import duckdb

    ours = translate(error)
    if isinstance(ours, ConnectionLostError):
        raise ours from error
    text = line(error)
    if isinstance(error, duckdb.ConstraintException):
        return Refusal(text, next((state for mark, state in _CONSTRAINTS.items() if mark in text), "23000"))
    if isinstance(error, duckdb.OutOfRangeException):
        return Refusal(text, "22003")
    if isinstance(error, duckdb.ConversionException | duckdb.InvalidInputException):
        return Refusal(text, "22P02")
    return Refusal(text)


# Target tables, from DuckDB's catalog.


_HERE = "database_name = current_database() AND schema_name = ? AND table_name = ?"
_COLUMNS = f"SELECT column_name, data_type, is_generated FROM duckdb_columns() WHERE {_HERE} ORDER BY column_index"
_CONSTRAINTS_OF = f"""
SELECT constraint_type, constraint_column_names, referenced_table, referenced_column_names
  FROM duckdb_constraints() WHERE {_HERE} ORDER BY constraint_index"""
_INDEXES = f"SELECT expressions FROM duckdb_indexes() WHERE is_unique AND NOT is_primary AND {_HERE}"
_REFERENCED = """
SELECT 1 FROM duckdb_constraints()
 WHERE database_name = current_database() AND constraint_type = 'FOREIGN KEY' AND referenced_table = ? LIMIT 1"""
_PLAIN = re.compile(r"[A-Za-z_]\w*")
_QUOTED = re.compile(r"""'?"((?:[^"]|"")*)"'?""")
_INEXACT = ("DECIMAL", "FLOAT", "DOUBLE", "INTERVAL", "TIME WITH", "TIMESTAMP WITH", "JSON", "VARIANT")


def target_table(connection: duckdb.DuckDBPyConnection, table: TableName) -> TargetTable | None:
    """Describe a table. None if it does not exist."""
    columns = tuple(_column(*row) for row in execute(connection, _COLUMNS, [*table]))
    if not columns:
        return None
    constraints = execute(connection, _CONSTRAINTS_OF, [*table])
    keys = [tuple(names) for kind, names, *_ in constraints if kind == "PRIMARY KEY"]
    unique = [frozenset(names) for kind, names, *_ in constraints if kind in ("PRIMARY KEY", "UNIQUE")]
    indexes = [_index_columns(str(row[0]), columns) for row in execute(connection, _INDEXES, [*table])]
    return TargetTable(
        name=table,
        columns=columns,
        key=keys[0] if keys else (),
        unique=(*unique, *(names for names in indexes if names is not None)),
        foreign=tuple(
            ForeignKey(tuple(own), TableName(table.owner, parent), tuple(others))
            for kind, own, parent, others in constraints
            if kind == "FOREIGN KEY"
        ),
        referenced=bool(execute(connection, _REFERENCED, [table.name])),
        opaque=None in indexes,
    )


def _column(name: str, type_name: str, is_generated: Any) -> TargetColumn:
    exact = not type_name.upper().startswith(_INEXACT) and not type_name.endswith("]")
    return TargetColumn(name, type_name, type_name.partition("(")[0], writable=not is_generated, exact=exact)


def _index_columns(expressions: str, columns: tuple[TargetColumn, ...]) -> frozenset[str] | None:
    """The columns of an index, from the catalog's text (``[a, '"b c"']``). None if the index contains an expression."""
    names = {column.name for column in columns}
    found: set[str] = set()
    for part in expressions.strip("[]").split(", "):
        quoted = _QUOTED.fullmatch(part)
        name = quoted[1].replace('""', '"') if quoted else part
        if name not in names or not (quoted or _PLAIN.fullmatch(part)):
            return None
        found.add(name)
    return frozenset(found)
