"""Connections to a DuckDB file: the login, who else holds the file, and errors that say what to do.

A file that one process has open for writing no other process can open, not even to read.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ggshell.errors import ConflictError, ConnectionLostError, DatabaseError, GgsError

if TYPE_CHECKING:
    import duckdb

SCHEME = "duckdb://"
LOCK_SECONDS = 5.0
"""How long to wait for a file that somebody else has open: a statement of a shell takes less."""

_PAUSE_SECONDS = 0.1
_ALIAS = "_ggshell_file"
"""The file's name within a connection: under its own, ``shop.duckdb`` and a schema ``shop`` in it could not be told apart."""

_LOCKED = "Could not set lock"
_HOLDER = re.compile(r"held in (?P<program>.*?) \(PID (?P<pid>\d+)\)")


def is_duckdb(login: str) -> bool:
    """Whether a login names a DuckDB file."""
    return login.strip().lower().startswith(SCHEME)


def file_of(login: str, home: Path) -> Path:
    """The file of ``duckdb:///folder/file.duckdb``; without the third slash it lies in the home."""
    return home / login.strip()[len(SCHEME) :]


def login_of(file: Path) -> str:
    """The login to a file, as ``connect`` takes it."""
    return f"{SCHEME}{file.absolute()}"


def database_name(login: str) -> str:
    """What the database is called: its file without folder and ending."""
    return Path(login[len(SCHEME) :]).stem


def connect(
    login: str, *, patience: float = LOCK_SECONDS, wait: Callable[[float], object] | None = None
) -> duckdb.DuckDBPyConnection:
    """Open the file, which is made when there is none in an existing folder.

    ``patience``: seconds for another holder to leave; ``wait`` pauses for seconds.  Raises ConflictError when the file stays
    locked, DatabaseError when it is no database or cannot be made.
    """
    import duckdb

    wait, waited = wait or threading.Event().wait, 0.0
    connection = duckdb.connect(":memory:", config={"autoinstall_known_extensions": False})
    try:
        while not _attached(connection, login, last=waited >= patience):
            wait(_PAUSE_SECONDS)
            waited += _PAUSE_SECONDS
    except BaseException:
        connection.close()
        raise
    return connection


def _attached(connection: duckdb.DuckDBPyConnection, login: str, *, last: bool) -> bool:
    """Whether the file could be opened; when it is locked at the ``last`` try, that is an error too."""
    import duckdb

    literal = login[len(SCHEME) :].replace("'", "''")
    try:
        connection.execute(f"ATTACH '{literal}' AS {_ALIAS}")
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
        f"the DuckDB file {file} is locked by {who}: only one process at a time can have it open",
        code="GGS-00414",
        hint="end that process, or STOP the Replicat that applies to it, and try again",
    )


def translate(error: Exception) -> GgsError:
    """The engine's error as ours; what makes the connection useless is a lost one."""
    import duckdb

    text = line(error)
    if isinstance(error, duckdb.FatalException | duckdb.IOException | duckdb.ConnectionException):
        return ConnectionLostError(f"the DuckDB file cannot be used: {text}")
    return DatabaseError(f"DuckDB refuses: {text}")


def line(error: Exception) -> str:
    """An error's first lines in one, without the statement it quotes."""
    return " ".join(str(error).split("\n\nLINE ")[0].split())


def execute(connection: duckdb.DuckDBPyConnection, statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    """Run one statement and fetch its rows, with our errors."""
    import duckdb

    try:
        return connection.execute(statement, parameters).fetchall()
    except duckdb.Error as error:
        raise translate(error) from error
