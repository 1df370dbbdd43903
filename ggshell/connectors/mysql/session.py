"""Connections to MariaDB and MySQL: settings that make results independent of the server's, and translated errors."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ggshell.connectors.mysql.login import parse_login
from ggshell.connectors.sql_transaction import transaction_of
from ggshell.errors import ConnectionLostError, DatabaseError, GgsError

if TYPE_CHECKING:
    from pymysql.connections import Connection

    from ggshell.time_limit import TimeLimit

CONNECT_SECONDS: Final = 10
LONGEST_WAIT: Final = 24 * 3600.0
SQL_MODE: Final = (
    "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION,ALLOW_INVALID_DATES"
)
"""Values are stored as they are or refused; 0 in an AUTO_INCREMENT column stays 0, and zero dates are dates."""
GENERATED_KEYS: Final = " /*!80030 show_gipk_in_create_table_and_information_schema = ON, */"
"""The primary keys that MySQL adds are shown, as the log has them. MariaDB ignores this comment."""
SESSION: Final = (
    f"SET SESSION sql_mode = '{SQL_MODE}', time_zone = '+00:00', wait_timeout = 28800,{GENERATED_KEYS} net_write_timeout = 600,"
    " net_read_timeout = 600, character_set_results = utf8mb4"
)
"""The settings of every connection of ggshell: TIMESTAMP values are in UTC, text is in UTF-8."""
APPLY_SESSION: Final = (
    f"SET SESSION sql_mode = '{SQL_MODE},NO_BACKSLASH_ESCAPES', time_zone = '+00:00', wait_timeout = 28800,{GENERATED_KEYS}"
    " net_write_timeout = 600, net_read_timeout = 600, character_set_results = utf8mb4, foreign_key_checks = 1,"
    " unique_checks = 1, sql_safe_updates = 0, sql_select_limit = DEFAULT, lc_messages = 'en_US'"
)
"""The settings of a Replicat's connections, which override those of the server. A backslash in a text stands for itself."""
_UNREACHABLE: Final = "start the server, or correct host and port of the login: ALTER CREDENTIALSTORE REPLACE USER …"

_ACCESS: Final = frozenset({1045, 1698, 1251, 2059})
_RIGHTS: Final = frozenset({1044, 1142, 1143, 1227, 1370, 3879})
_NO_DATABASE: Final = frozenset({1049})
_LOST: Final = frozenset(
    {
        1040,
        1053,
        1077,
        1079,
        1080,
        1081,
        1152,
        1158,
        1159,
        1160,
        1161,
        1927,
        2000,
        2002,
        2003,
        2006,
        2013,
        2014,
        2026,
        2055,
        4031,
    }
)
"""Server and client errors after which a new connection may succeed."""
_NUMBER = re.compile(r"(\d+)\.(\d+)\.(\d+)")


class ServerVersion(NamedTuple):
    """What a server is. ``text``: its own version text."""

    mariadb: bool
    number: tuple[int, int, int]
    text: str

    @property
    def product(self) -> str:
        return "MariaDB" if self.mariadb else "MySQL"

    @property
    def shown(self) -> str:
        return ".".join(map(str, self.number))

    @property
    def log_status(self) -> str:
        """The statement that shows the end of the binary log."""
        return "SHOW BINARY LOG STATUS" if not self.mariadb and self.number >= (8, 2, 0) else "SHOW MASTER STATUS"

    @classmethod
    def parse(cls, text: str) -> ServerVersion:
        """Read the result of VERSION(). MariaDB's handshake puts ``5.5.5-`` before the version."""
        match = _NUMBER.search(text.removeprefix("5.5.5-"))
        major, minor, patch = map(int, match.groups()) if match else (0, 0, 0)
        return cls("mariadb" in text.lower(), (major, minor, patch), text)


def connect(
    login: str, *, program: str = "ggshell", limit: TimeLimit | None = None, applies: bool = False
) -> Connection[Any]:
    """Open an autocommit connection whose results do not depend on the server's settings.

    ``applies``: for a Replicat, which sends several statements at once and counts the rows that they find.

    Raises DatabaseError (wrong password, database does not exist …) or ConnectionLostError (the server does not answer).
    """
    import pymysql
    from pymysql.constants import CLIENT

    address = parse_login(login)
    seconds = CONNECT_SECONDS if limit is None else limit.left(CONNECT_SECONDS)
    if not seconds:
        raise ConnectionLostError("the database is not responding: the time limit of the request is reached")
    silence = None if limit is None else max(1.0, limit.left(LONGEST_WAIT))
    with translated():
        return pymysql.connect(
            **address.connect_arguments(),
            autocommit=True,
            charset="utf8mb4",
            connect_timeout=max(1, round(seconds)),
            read_timeout=silence,
            write_timeout=silence,
            program_name=program,
            init_command=APPLY_SESSION if applies else SESSION,
            client_flag=CLIENT.FOUND_ROWS | CLIENT.MULTI_STATEMENTS if applies else 0,
        )


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Translate the driver's errors in a ``with`` block."""
    import pymysql

    try:
        yield
    except pymysql.Error as error:
        raise translate(error) from error
    except OSError as error:
        raise ConnectionLostError(f"the database is not responding: {error}", hint=_UNREACHABLE) from error


def translate(error: Exception) -> GgsError:
    """Translate an error of the driver to an error of ggshell, by the server's number of the error."""
    number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    text = " ".join(str(error.args[1] if len(error.args) > 1 else error).split())
    if number in _ACCESS:
        return DatabaseError(f"login failed: {text}", hint="correct the login: ALTER CREDENTIALSTORE REPLACE USER …")
    if number in _NO_DATABASE:
        return DatabaseError(f"login failed: {text}", hint="check the database name in the login")
    if number in _RIGHTS:
        return DatabaseError(f"a privilege is missing: {text}", hint="GRANT it to the user of the login")
    if number in _LOST or not number:
        hint = _UNREACHABLE if number in (2002, 2003) else ""
        return ConnectionLostError(f"the database is not responding: {text}", hint=hint)
    return DatabaseError(f"the database returned an error: {text} ({number})")


def execute(connection: Connection[Any], statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    """Run one statement and return its rows (none for a command). Driver errors are translated."""
    with translated(), connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())


def transaction(connection: Connection[Any]) -> contextlib.AbstractContextManager[None]:
    """A transaction: all changes of rows within it are made, or none. The server commits each DDL statement at once."""
    return transaction_of(partial(execute, connection))


def variables(connection: Connection[Any], *names: str) -> dict[str, str]:
    """Return global variables of the server by their lower-case names; one that the server does not have is absent."""
    wanted = ", ".join("%s" for _ in names)
    rows = execute(connection, f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({wanted})", names)
    return {str(name).lower(): str(value) for name, value in rows}


def server_version(connection: Connection[Any]) -> ServerVersion:
    ((text,),) = execute(connection, "SELECT VERSION()")
    return ServerVersion.parse(str(text))


def quote_name(name: str) -> str:
    """Quote an identifier for SQL, regardless of the sql_mode."""
    return "`" + name.replace("`", "``") + "`"
