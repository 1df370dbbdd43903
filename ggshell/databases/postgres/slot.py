"""Replication slots and the publication: what REGISTER EXTRACT makes, and what Extract checks before it reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.databases.postgres.session import execute, require_primary
from ggshell.errors import CaptureError, ConflictError, DatabaseError, NotFoundError
from ggshell.types import format_lsn

if TYPE_CHECKING:
    import psycopg

PUBLICATION = "ggshell"
"""One publication a database, shared by all Extracts: the tables with TRANDATA."""

_STATUS = """
SELECT active, coalesce(active_pid, 0), coalesce(restart_lsn - '0/0', 0), coalesce(confirmed_flush_lsn - '0/0', 0),
       coalesce(wal_status, ''), coalesce(pg_current_wal_lsn() - restart_lsn, 0), safe_wal_size,
       pg_current_wal_lsn() - '0/0', database = current_database()
  FROM pg_replication_slots WHERE slot_name = %s"""


class SlotStatus(NamedTuple):
    """A slot as the server shows it; LSNs and sizes in bytes.  ``room`` is what may still be written before the server
    gives the slot up (max_slot_wal_keep_size), None where nothing limits it."""

    name: str
    active: bool
    pid: int
    restart: int
    confirmed: int
    wal_status: str
    retained: int
    room: int | None
    current: int
    here: bool


def slot_name(group: str) -> str:
    """The slot of an Extract group."""
    return f"ggs_{group.lower()}"


def slot_status(connection: psycopg.Connection[Any], name: str) -> SlotStatus | None:
    """What the server says of a slot, None when there is none of that name.  Raises ConnectionLostError in recovery."""
    require_primary(connection)
    rows = execute(connection, _STATUS, [name])
    if not rows:
        return None
    active, pid, restart, confirmed, wal, retained, room, current, here = rows[0]
    numbers = (int(restart), int(confirmed))
    return SlotStatus(
        name, active, pid, *numbers, wal, int(retained), None if room is None else int(room), int(current), here
    )


def free_disk(connection: psycopg.Connection[Any]) -> int | None:
    """Bytes free for the log where server and Extract share a machine, and somebody may see the data folder; else None.

    The server names the folder to privileged logins only; otherwise it is where the server's own process stands.
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
    except OSError:  # it is another machine behind this address, or nobody but the server may look
        return None
    return found.f_bavail * found.f_frsize


def ensure_publication(connection: psycopg.Connection[Any]) -> bool:
    """Make the shared publication unless it is there; whether it was made."""
    if execute(connection, "SELECT 1 FROM pg_publication WHERE pubname = %s", [PUBLICATION]):
        return False
    execute(connection, f"CREATE PUBLICATION {PUBLICATION} WITH (publish_via_partition_root = true)")
    return True


def register(connection: psycopg.Connection[Any], group: str) -> int:
    """Make an Extract's slot (and the publication); the LSN from which its changes are kept.

    Raises ConflictError when the slot exists, DatabaseError when wal_level or a privilege is missing.
    """
    name = slot_name(group)
    level = execute(connection, "SELECT current_setting('wal_level')")[0][0]
    if level != "logical":
        raise DatabaseError(
            f"wal_level is {level}, logical replication needs logical",
            code="GGS-00410",
            hint="ALTER SYSTEM SET wal_level = logical, then restart the server",
        )
    if slot_status(connection, name) is not None:
        raise ConflictError(
            f"EXTRACT {group.upper()} is registered already (slot {name})", hint="UNREGISTER EXTRACT first"
        )
    ensure_publication(connection)
    rows = execute(connection, "SELECT lsn - '0/0' FROM pg_create_logical_replication_slot(%s, 'pgoutput')", [name])
    return int(rows[0][0])


def unregister(connection: psycopg.Connection[Any], group: str) -> bool:
    """Drop an Extract's slot; the publication too when it was the last one.  Whether the publication went.

    Raises NotFoundError without a slot, ConflictError while it is read.
    """
    name = slot_name(group)
    status = slot_status(connection, name)
    if status is None:
        raise NotFoundError(f"EXTRACT {group.upper()} is not registered (no slot {name})")
    if status.active:
        raise ConflictError(f"slot {name} is being read by process {status.pid}", hint="stop the Extract first")
    execute(connection, "SELECT pg_drop_replication_slot(%s)", [name])
    others = execute(
        connection,
        "SELECT 1 FROM pg_replication_slots WHERE slot_name LIKE 'ggs\\_%%' AND database = current_database()",
    )
    if not others:
        execute(connection, f"DROP PUBLICATION IF EXISTS {PUBLICATION}")
    return not others


def check_slot(connection: psycopg.Connection[Any], name: str, durable: int) -> SlotStatus:
    """Refuse a slot that cannot give every change behind ``durable``.  Raises the errors that ``PostgresLog.open`` names."""
    status = slot_status(connection, name)
    if status is None:
        raise DatabaseError(
            f"replication slot {name} does not exist",
            code="GGS-00412",
            hint="REGISTER EXTRACT makes it; if it was there before, changes since are lost: load the tables anew",
        )
    if not status.here:
        raise DatabaseError(f"replication slot {name} belongs to another database", code="GGS-00413")
    if status.wal_status == "lost":
        raise CaptureError(
            f"replication slot {name} is lost: the server removed log that was not read yet",
            code="GGS-00502",
            hint="UNREGISTER and REGISTER EXTRACT, then load the tables anew; raise max_slot_wal_keep_size",
        )
    if status.confirmed > durable:
        raise CaptureError(
            f"replication slot {name} is ahead: it was confirmed to {format_lsn(status.confirmed)},"
            f" the trail and the checkpoint end at {format_lsn(durable)}",
            code="GGS-00503",
            hint="changes between would be skipped: restore the trail or the checkpoint file, or load the tables anew",
        )
    return status
