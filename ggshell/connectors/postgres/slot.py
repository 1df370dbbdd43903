"""Replication slots and the publication: what REGISTER EXTRACT creates, and what Extract checks before it reads.

A slot may hold changes from before the position where capture begins. They would be skipped, so they are found too.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ggshell.connectors.postgres import lock_waits
from ggshell.connectors.postgres.session import execute, require_primary, transaction
from ggshell.errors import CaptureError, ConflictError, DatabaseError, NotFoundError
from ggshell.types import format_lsn, postgres_literal

if TYPE_CHECKING:
    import psycopg

    from ggshell.connectors.postgres.lock_waits import Waiting

PUBLICATION = "ggshell"
"""The publication of a database, shared by all Extracts. It lists the tables with TRANDATA."""
_EVERYTHING = "publish = 'insert, update, delete, truncate', publish_via_partition_root = true"

_STATUS = """
SELECT active, coalesce(active_pid, 0), coalesce(restart_lsn - '0/0', 0), coalesce(confirmed_flush_lsn - '0/0', 0),
       coalesce(wal_status, ''), coalesce(pg_current_wal_lsn() - restart_lsn, 0), safe_wal_size,
       pg_current_wal_lsn() - '0/0', coalesce(database, ''), coalesce(database = current_database(), false)
  FROM pg_replication_slots WHERE slot_name = %s"""
OTHER_NAME: Final = "use another group name: slot names are unique in the whole server"
UNCAPTURED_CODE: Final = "GGS-00545"
PEEK_SECONDS: Final = 5
"""How long the server may decode to find a change, in seconds. After that, the slot counts as holding some."""
_LEAVES_OUT_EMPTY: Final = 150_000
"""The version from which pgoutput sends nothing for a transaction without changes."""
_PEEK: Final = """
SELECT count(*) FROM pg_logical_slot_peek_binary_changes(%s, %s::pg_lsn, %s, 'proto_version', '1', 'publication_names', %s)
 WHERE get_byte(data, 0) IN (ascii('I'), ascii('U'), ascii('D'), ascii('T'))"""


class SlotStatus(NamedTuple):
    """A slot as the server reports it, LSNs and sizes in bytes.

    ``room`` is how much may still be written before the server invalidates the slot (max_slot_wal_keep_size), or None
    if there is no limit. ``database``: the database of the slot, empty for a physical slot; ``here``: it is the one of the
    connection. All databases of a server share the names of slots.
    """

    name: str
    active: bool
    pid: int
    restart: int
    confirmed: int
    wal_status: str
    retained: int
    room: int | None
    current: int
    database: str
    here: bool


def slot_name(group: str) -> str:
    """The slot name of an Extract group."""
    return f"ggs_{group.lower().replace('-', '_')}"


def slot_status(connection: psycopg.Connection[Any], name: str) -> SlotStatus | None:
    """The server's status of a slot, or None if it does not exist. Raises ConnectionLostError in recovery."""
    require_primary(connection)
    rows = execute(connection, _STATUS, [name])
    if not rows:
        return None
    active, pid, restart, confirmed, wal, retained, room, current, database, here = rows[0]
    numbers = (int(restart), int(confirmed))
    left = None if room is None else int(room)
    return SlotStatus(name, active, pid, *numbers, wal, int(retained), left, int(current), database, here)


def require_here(connection: psycopg.Connection[Any], status: SlotStatus, hint: str) -> None:
    """Raise DatabaseError unless a slot belongs to the database of the connection."""
    if status.here:
        return
    found = f"database {status.database}" if status.database else "physical replication"
    raise DatabaseError(
        f"replication slot {status.name} belongs to {found}, not to database {connection.info.dbname}",
        code="GGS-00413",
        hint=hint,
    )


def free_disk(connection: psycopg.Connection[Any]) -> int | None:
    """Free bytes on the disk of the log, or None when the Extract cannot see that disk.

    It can see the disk when it runs on the server's machine and may read the data folder. The server names the folder
    to privileged logins only; otherwise it is the working directory of the server process.
    """
    host = connection.info.host
    if not (host.startswith("/") or host in ("localhost", "127.0.0.1", "::1")):
        return None
    rows = execute(connection, "SELECT setting FROM pg_settings WHERE name = 'data_directory'")
    folder = Path(rows[0][0]) if rows else Path(f"/proc/{connection.info.backend_pid}/cwd")
    try:
        if not (folder / "PG_VERSION").exists():
            return None
        found = os.statvfs(folder / "pg_wal")
    except OSError:  # another machine answers at this address, or only the server may look
        return None
    return found.f_bavail * found.f_frsize


def ensure_publication(connection: psycopg.Connection[Any]) -> bool:
    """Create the shared publication, or let it publish every operation. Return whether it was created."""
    whole = "pubinsert AND pubupdate AND pubdelete AND pubtruncate AND pubviaroot"
    found = execute(connection, f"SELECT {whole} FROM pg_publication WHERE pubname = %s", [PUBLICATION])
    if not found:
        execute(connection, f"CREATE PUBLICATION {PUBLICATION} WITH ({_EVERYTHING})")
    elif not found[0][0]:
        execute(connection, f"ALTER PUBLICATION {PUBLICATION} SET ({_EVERYTHING})")
    return not found


def register(connection: psycopg.Connection[Any], group: str, waiting: Waiting | None = None) -> int:
    """Create an Extract's slot (and the publication). Return the LSN from which its changes are kept.

    The server waits for every transaction that writes, in any database. ``waiting`` is called about once a second with
    those that it still waits for. An interrupt leaves no slot.

    Raises ConflictError when the slot exists, DatabaseError when it belongs to another database, or when wal_level or a
    privilege is missing.
    """
    name = slot_name(group)
    level = execute(connection, "SELECT current_setting('wal_level')")[0][0]
    if level != "logical":
        raise DatabaseError(
            f"wal_level is {level}, but replication requires logical",
            code="GGS-00410",
            hint="ALTER SYSTEM SET wal_level = logical, then restart the server",
        )
    status = slot_status(connection, name)
    if status is not None:
        require_here(connection, status, OTHER_NAME)
        raise ConflictError(
            f"EXTRACT {group.upper()} is already registered (slot {name})",
            hint="use another group name, or run UNREGISTER EXTRACT first if no other home uses the slot",
        )
    ensure_publication(connection)
    statement = f"SELECT lsn - '0/0' FROM pg_create_logical_replication_slot({postgres_literal(name)}, 'pgoutput')"
    return int(lock_waits.watched(connection, statement, waiting or (lambda _: None)))


def unregister(connection: psycopg.Connection[Any], group: str) -> bool:
    """Drop an Extract's slot, and the publication if no slot and no table needs it. Return whether that was dropped.

    Tables stay published: TRANDATA belongs to the tables, and an Extract that is added again would otherwise miss them.

    Raises NotFoundError when the slot does not exist, DatabaseError when it belongs to another database, ConflictError
    while it is being read.
    """
    name = slot_name(group)
    status = slot_status(connection, name)
    if status is None:
        hint = "check the name, and that DBLOGIN is to the source database"
        raise NotFoundError(f"EXTRACT {group.upper()} is not registered (no slot {name})", hint=hint)
    require_here(
        connection,
        status,
        "DBLOGIN to the database of the Extract, unless the slot belongs to an Extract of another home",
    )
    if status.active:
        raise ConflictError(f"slot {name} is being read by process {status.pid}", hint="stop the Extract")
    execute(connection, "SELECT pg_drop_replication_slot(%s)", [name])
    others = execute(
        connection,
        "SELECT 1 FROM pg_replication_slots WHERE slot_name LIKE 'ggs\\_%%' AND database = current_database()"
        " UNION ALL SELECT 1 FROM pg_publication_tables WHERE pubname = %s",
        [PUBLICATION],
    )
    if not others:
        execute(connection, f"DROP PUBLICATION IF EXISTS {PUBLICATION}")
    return not others


def check_slot(connection: psycopg.Connection[Any], name: str, durable: int) -> SlotStatus:
    """Refuse a slot that cannot deliver every change after ``durable``. Raises the errors of ``PostgresLog.open``."""
    status = slot_status(connection, name)
    if status is None:
        raise DatabaseError(
            f"replication slot {name} does not exist",
            code="GGS-00412",
            hint="create it with REGISTER EXTRACT; if it existed before, later changes are lost: also run ALTER EXTRACT …,"
            " BEGIN NOW, and load the tables again",
        )
    require_here(connection, status, "correct SOURCEDB or USERIDALIAS, or use another group name")
    if status.wal_status == "lost":
        raise CaptureError(
            f"replication slot {name} is lost: the server removed log that had not been read",
            code="GGS-00502",
            hint="UNREGISTER and REGISTER EXTRACT, ALTER EXTRACT …, BEGIN NOW, and load the tables again;"
            " raise max_slot_wal_keep_size",
        )
    if status.confirmed > durable:
        raise CaptureError(
            f"replication slot {name} is ahead: it is confirmed up to {format_lsn(status.confirmed)},"
            f" but the trail and the checkpoint end at {format_lsn(durable)}",
            code="GGS-00503",
            hint="restore the trail or the checkpoint file, because the changes in between would be skipped; or run ALTER"
            " EXTRACT …, BEGIN NOW, and load the tables again",
        )
    return status


class UncapturedLog(NamedTuple):
    """The log from ``confirmed`` to ``begin`` that a slot holds and capture would skip.

    It contains changes. ``certain`` is False if the server did not confirm that in time.
    """

    slot: str
    confirmed: int
    begin: int
    certain: bool

    def text(self, group: str) -> str:
        """The warning: what would be skipped, and the statement that begins there instead."""
        place = format_lsn(self.confirmed)
        holds = "holds" if self.certain else "may hold"
        return (
            f"Slot {self.slot} {holds} changes that were committed before LSN {format_lsn(self.begin)}, where capture begins:"
            f" {self.begin - self.confirmed} bytes of log from LSN {place}. Changes that are not in the trail are skipped."
            f" To capture them, run ALTER EXTRACT {group}, LSN {place} while the group is stopped, before it captures anything"
        )


def uncaptured(connection: psycopg.Connection[Any], name: str, begin: int) -> UncapturedLog | None:
    """What capture from a position on would skip.

    None if the slot does not exist, is being read, or holds no change before the position.
    """
    status = slot_status(connection, name)
    if status is None or not status.here or status.active or status.confirmed >= begin:
        return None
    found = _holds_changes(connection, name, begin)
    return UncapturedLog(name, status.confirmed, begin, found is True) if found is not False else None


def _holds_changes(connection: psycopg.Connection[Any], name: str, begin: int) -> bool | None:
    """Whether the slot holds a change of a published table that committed before a position.

    None if the server does not answer in time.
    """
    most = 1 if connection.info.server_version >= _LEAVES_OUT_EMPTY else None
    try:
        with transaction(connection):
            execute(connection, f"SET LOCAL statement_timeout = '{PEEK_SECONDS}s'")
            rows = execute(connection, _PEEK, [name, format_lsn(begin), most, PUBLICATION])
    except DatabaseError:
        return None
    return bool(rows[0][0])
