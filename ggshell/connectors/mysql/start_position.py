"""Where an Extract continues to read: the file and position after its last transaction, or its GTID on another server.

A position in a file means nothing on another server, or after RESET MASTER. So before a log is read, the server is asked for
the transaction at the position; only if it is the same one, the log is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.connectors.mysql.gtid_search import GtidSearch
from ggshell.connectors.mysql.gtids import same_position
from ggshell.connectors.mysql.log import LastRead
from ggshell.connectors.mysql.log_files import (
    LogFile,
    base_of,
    file_named,
    gtid_at,
    log_files,
    next_base,
    transaction_at,
    value_of,
)
from ggshell.connectors.mysql.wire import GONE, StartAt
from ggshell.errors import CaptureError

if TYPE_CHECKING:
    from pymysql.connections import Connection

_POSITION = 0xFFFFFFFF
_AGAIN = "ALTER EXTRACT …, BEGIN NOW and load the tables again"


class ReadFrom(NamedTuple):
    """Where to begin. ``base``: what is added to file numbers in CSNs; ``csn``: the position as a CSN's value."""

    at: StartAt
    base: int
    csn: int
    gtid: str
    moved: bool = False


class Sought(NamedTuple):
    """What to continue after. ``server``: who had it.

    ``recovery``: where the oldest open transaction began, ``current``: up to where the log was read; 0 for none.
    """

    last: LastRead
    recovery: int
    current: int
    server: str


def last_read(noted: LastRead, trail: LastRead) -> LastRead:
    """Return the last transaction that was read: the checkpoint's, or the one in the trail if it is later in the same log.

    If another server took over after the checkpoint, what the trail has of it is read again and dropped.
    """
    other_log = base_of(trail.csn >> 32) != base_of(noted.csn >> 32)
    if trail.csn < noted.csn or (trail.csn > noted.csn and noted.gtid and other_log):
        return noted
    return trail if trail.csn > noted.csn or trail.gtid else noted


def read_from(connection: Connection[Any], sought: Sought, server: str, search: GtidSearch | None) -> ReadFrom:
    """Return where reading begins. Raises CaptureError if the log no longer contains it.

    ``search``: for MySQL, finds the place after a transaction; None for MariaDB, which does it itself.
    """
    mariadb = search is None
    last, files = sought.last, log_files(connection)
    if not last.csn:
        return ReadFrom(StartAt(gtid=last.gtid), 0, 0, last.gtid)
    base, position = base_of(last.csn >> 32), last.csn & _POSITION
    file = file_named(files, (last.csn >> 32) - base)
    other = bool(sought.server) and sought.server != server
    found = None
    if file is not None and not (other and not (mariadb and last.gtid)):
        found = _position_in(connection, file, position, last.gtid, mariadb=mariadb)
    if file is not None and found is not None:
        return _from_position(files, file, found, sought, base)
    if not last.gtid:
        raise _not_found(files, file, (last.csn >> 32) - base, position)
    if not other and (file is not None or not _is_purged(files, (last.csn >> 32) - base)):
        raise CaptureError(
            "the binary log of the server was reset (RESET MASTER), or restored from a backup: it does not contain the last"
            f" captured transaction, {last.gtid}, at its position",
            code=GONE,
            hint=f"{_AGAIN}, with a new trail",
        )
    if sought.recovery and sought.recovery < last.csn:
        raise CaptureError(
            "an XA transaction was prepared in the log of the previous server, and is not committed yet",
            code=GONE,
            hint=_AGAIN,
        )
    base = next_base(last.csn >> 32) if other else base
    if search is None:
        return ReadFrom(StartAt(gtid=last.gtid), base, max(last.csn, base << 32), last.gtid, other)
    there, position = search.place_after(last.gtid) if other else _where_reading_ended(sought, search, files)
    return ReadFrom(StartAt(there.name, position), base, value_of(base, there.number, position), last.gtid, other)


def _where_reading_ended(sought: Sought, search: GtidSearch, files: list[LogFile]) -> tuple[LogFile, int]:
    """Up to where a log of MySQL was read, if it was in a later file than the last transaction, which has been purged.

    Raises CaptureError if it was not: the purged file may have had further transactions.
    """
    last, current = sought.last, sought.current
    base, position = base_of(current >> 32), current & _POSITION
    file = file_named(files, (current >> 32) - base)
    if current < last.csn or file is None or position > file.size or last.gtid not in search.gtids_before(file):
        raise _not_found(files, None, (last.csn >> 32) - base_of(last.csn >> 32), last.csn & _POSITION)
    return file, max(position, 4)


def _position_in(
    connection: Connection[Any], file: LogFile, position: int, gtid: str, *, mariadb: bool
) -> tuple[int, str] | None:
    """Where to read in the same log: at the last transaction itself, or at the position after ``position``.

    Returns the place and the GTID position there; None if this is another log.
    """
    own, begun = gtid.partition(",")[0], transaction_at(connection, file.name, position)
    if begun is not None and begun == own and (own or not mariadb):
        return position, gtid
    if position + 1 > file.size or (gtid and not mariadb):
        return None
    if not mariadb:
        return position + 1, ""
    there = gtid_at(connection, file.name, position + 1)
    if not gtid:
        return position + 1, there or ""
    return (position + 1, gtid) if there is not None and same_position(there, gtid) else None


def _from_position(files: list[LogFile], file: LogFile, found: tuple[int, str], sought: Sought, base: int) -> ReadFrom:
    position, gtid = found
    if sought.recovery and sought.recovery < (base + file.number) << 32 | position:
        number, position = (sought.recovery >> 32) - base, sought.recovery & _POSITION
        older = file_named(files, number)
        if older is None:
            raise _not_found(files, None, number, position)
        file = older
    return ReadFrom(StartAt(file.name, position), base, base + file.number << 32 | position, gtid)


def _is_purged(files: list[LogFile], number: int) -> bool:
    return bool(files) and number < files[0].number


def _not_found(files: list[LogFile], file: LogFile | None, number: int, position: int) -> CaptureError:
    if file is None and _is_purged(files, number):
        text = f"the server has purged log file {number}, and its oldest one is {files[0].name}"
        hint = f"{_AGAIN}; keep logs for longer with binlog_expire_logs_seconds"
        return CaptureError(text, code=GONE, hint=hint)
    return CaptureError(
        f"the server's log does not contain position {position} of log file {number}", code=GONE, hint=_AGAIN
    )
