"""The files of a server's binary log, and how their numbers continue in CSNs when another server takes over.

A CSN has the number of the file in its upper half. The files of another server, and those after RESET MASTER, are numbered
from 1 again, but CSNs must rise. So each server that takes over begins at the next multiple of ``FILES_OF_SERVER``, and a
file's number in a CSN is that plus its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ggshell.connectors.mysql.binlog.events import DAMAGED
from ggshell.connectors.mysql.session import ServerVersion, execute
from ggshell.errors import CaptureError, DatabaseError

if TYPE_CHECKING:
    from pymysql.connections import Connection

FILES_OF_SERVER: Final = 10_000_000
_ENCRYPTION_HEAD: Final = 512
"""The bytes before the log in an encrypted file of MySQL, which its size includes and its positions do not."""
_MOST: Final = (1 << 32) - 1
_GTID = re.compile(r"\bGTID (\d+-\d+-\d+)|GTID_NEXT= '([^']+)'")
"""What SHOW BINLOG EVENTS says of a GTID event: of MariaDB, and of MySQL."""


class LogFile(NamedTuple):
    """A file of the log. ``size``: the position of its end; ``number``: its suffix."""

    name: str
    size: int

    @property
    def number(self) -> int:
        return file_number(self.name)


class LogEnd(NamedTuple):
    """The end of the log: the file, the position in it, and the GTID position (MariaDB)."""

    file: str
    position: int
    gtid: str


def file_number(name: str) -> int:
    """The number of a file. Raises CaptureError if its name has none."""
    suffix = name.rpartition(".")[2]
    if not suffix.isdecimal():
        raise CaptureError(f"{name} is not the name of a binary log", code=DAMAGED)
    return int(suffix)


def base_of(file: int) -> int:
    """What was added to the number of a file in a CSN."""
    return file - file % FILES_OF_SERVER


def next_base(file: int) -> int:
    """What is added to the numbers of the files of the server that takes over after a CSN with this file."""
    return base_of(file) + FILES_OF_SERVER


def value_of(base: int, file: int, position: int) -> int:
    """The value of a CSN. Raises CaptureError if there were too many servers."""
    if base + file > _MOST or file >= FILES_OF_SERVER:
        raise CaptureError(
            f"the log file number {base + file} is too large for a CSN",
            code=DAMAGED,
            hint="ADD a new Extract with a new trail",
        )
    return base + file << 32 | position & _MOST


def log_files(connection: Connection[Any]) -> list[LogFile]:
    """The files that the server still has, the oldest first. Raises DatabaseError if it writes none."""
    rows = execute(connection, "SHOW BINARY LOGS")
    return [LogFile(name, int(size) - (_ENCRYPTION_HEAD if "Yes" in more else 0)) for name, size, *more in rows]


def file_named(files: Sequence[LogFile], number: int) -> LogFile | None:
    return next((file for file in files if file.number == number), None)


def log_end(connection: Connection[Any], version: ServerVersion) -> LogEnd:
    """The current end of the log. Raises DatabaseError if the server writes none."""
    rows = execute(connection, version.log_status)
    if not rows:
        raise DatabaseError("the server does not write a binary log", hint="start it with log_bin")
    gtid = str(execute(connection, "SELECT @@GLOBAL.gtid_binlog_pos")[0][0]) if version.mariadb else ""
    return LogEnd(str(rows[0][0]), int(rows[0][1]), gtid)


def gtid_at(connection: Connection[Any], file: str, position: int) -> str | None:
    """The GTID position before an event of MariaDB's log; None if the log has no event there."""
    ((found,),) = execute(connection, "SELECT BINLOG_GTID_POS(%s, %s)", [file, position])
    return None if found is None else str(found)


def transaction_at(connection: Connection[Any], file: str, position: int) -> str | None:
    """The GTID of the transaction that begins at a position: empty if it is anonymous, None if none begins there."""
    try:
        rows = execute(connection, f"SHOW BINLOG EVENTS IN %s FROM {position:d} LIMIT 1", [file])
    except DatabaseError:
        return None
    if not rows or int(rows[0][1]) != position:
        return None
    found = _GTID.search(str(rows[0][5]))
    return None if found is None else found[1] or found[2].removeprefix("ANONYMOUS")
