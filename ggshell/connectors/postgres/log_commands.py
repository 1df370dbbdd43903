"""PostgreSQL's log for commands: start positions, the replication slot, and how INFO shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ggshell.clock import local_text
from ggshell.connectors.logged_in import LoggedIn, required
from ggshell.connectors.postgres import slot
from ggshell.connectors.postgres.history import PAST_END, PAST_END_HINT
from ggshell.connectors.postgres.logged_in import PostgresLogin
from ggshell.connectors.postgres.session import current_position, inserted_position
from ggshell.connectors.source_log import (
    AlteredLog,
    AskedPosition,
    LogStart,
    Registration,
    SourceLog,
    Waiting,
)
from ggshell.errors import StateError, UsageError
from ggshell.home.checkpoint import GroupOptions
from ggshell.home.slot_facts import SlotFacts, SlotLimit
from ggshell.types import Csn, LogPosition, format_lsn, parse_lsn

if TYPE_CHECKING:
    import psycopg

    from ggshell.home.checkpoint import Checkpoint

_EXACT = "%Y-%m-%d %H:%M:%S.%f"


class WriteAheadLog(SourceLog):
    """The write-ahead log, read through a replication slot."""

    title = "PostgreSQL Write-Ahead Log"

    def start(self, login: LoggedIn | None, group: str, asked: AskedPosition) -> LogStart:
        """Start at the given LSN, at the log's end for NOW, or at the slot's position for a time.

        Raises StateError if a time is given and there is no slot, DatabaseError if it belongs to another database.
        """
        _require_lsn(asked)
        if asked.scn:
            hint = "use LSN, for example LSN 0/50056B8; SCN requires DBLOGIN SOURCEDB redo:///folder"
            raise UsageError("SCN is not valid for PostgreSQL.", hint=hint)
        name = slot.slot_name(group)
        if asked.lsn:
            csn = _position(asked.lsn)
            _require_in_log(login, name, csn)
            return LogStart(csn, asked.moment, GroupOptions(slot=name))
        if asked.begin.upper() == "NOW":
            position, moment = current_position(_connection(login))
            return LogStart(Csn(position), moment, GroupOptions(slot=name))
        status = slot.slot_status(_connection(login), name)
        if status is None:
            raise StateError(
                f"EXTRACT {group} is not registered, so the server does not retain log from a time in the past.",
                hint=f"REGISTER EXTRACT {group} first, or use BEGIN NOW",
            )
        slot.require_here(_connection(login), status, slot.OTHER_NAME)
        return LogStart(Csn(status.confirmed), asked.moment, GroupOptions(slot=name, since=asked.moment))

    def alter(self, login: LoggedIn | None, group: Checkpoint, asked: AskedPosition) -> AlteredLog:
        """Set a reader of the log to a position; sequence number and RBA are the two halves of an LSN.

        Raises StateError for a position after the end of the log, and for one before the current position that the slot
        has released.
        """
        _require_lsn(asked)
        if asked.scn:
            raise UsageError("SCN is not valid for PostgreSQL.", hint="use LSN, for example LSN 0/50056B8")
        moment, present = group.begin_time, group.read.current
        if asked.lsn:
            csn = _position(asked.lsn)
        elif asked.seqno is not None or asked.rba is not None:
            sequence = asked.seqno if asked.seqno is not None else getattr(present, "sequence", 0)
            csn = Csn(sequence << 32 | (asked.rba or 0))
        elif asked.begin.upper() == "NOW":
            position, moment = current_position(_connection(login))
            csn = Csn(position)
        else:
            return _since(group, asked)
        _require_in_log(login, _slot(group), csn)
        done = present.csn if isinstance(present, LogPosition) else 0
        if csn.value < done:
            _require_kept(login, group, csn.value, done)
        return AlteredLog(_at(group, csn, moment, asked), f"LSN {format_lsn(csn.value)}", csn.value < done)

    def start_text(self, csn: str) -> str:
        return f"at LSN {csn}"

    def source_name(self, options: GroupOptions) -> str:
        return options.slot or "PostgreSQL"

    def read_position(self, group: Checkpoint) -> list[tuple[str, str]]:
        moment = group.read.current_time or group.begin_time
        return [("VAM Read Checkpoint", local_text(moment, _EXACT) if moment else "First Record")]

    def position_facts(self, options: GroupOptions, position: LogPosition) -> list[str]:
        lsn = format_lsn(position.csn) if position.csn else "Not Available"
        return [f"LSN: {lsn}", f"Slot: {options.slot}"]

    def uncaptured(self, login: LoggedIn | None, group: Checkpoint) -> tuple[str, str] | None:
        captured = isinstance(group.read.current, LogPosition) and group.read.current.csn
        if captured or not isinstance(login, PostgresLogin) or not _slot(group):
            return None
        from ggshell.connectors.postgres.slot import UNCAPTURED_CODE, uncaptured

        held = uncaptured(login.connection, _slot(group), Csn.parse(group.begin_csn).value)
        return (UNCAPTURED_CODE, held.text(group.group.upper())) if held is not None else None

    def register(self, login: LoggedIn, group: str, waiting: Waiting) -> Registration:
        """Create the slot, and the publication."""
        connection = _connection(login)
        position, name = Csn(slot.register(connection, group, waiting)), slot.slot_name(group)
        made = f"Successfully created replication slot '{name}' for Extract group '{group}'"
        kept = f"EXTRACT {group} is registered with slot {name}; changes are retained from LSN {position}."
        database = connection.info.dbname
        return Registration((("OGG-25355", f"{made} in database '{database}'."), ("OGG-02003", kept)), position)

    def unregister(self, login: LoggedIn, group: str) -> str:
        """Drop the slot."""
        slot.unregister(_connection(login), group)
        return f"slot {slot.slot_name(group)} is dropped"

    def registered(self, login: LoggedIn | None, group: Checkpoint) -> bool:
        if not isinstance(login, PostgresLogin) or not _slot(group):
            return False
        status = slot.slot_status(login.connection, slot.slot_name(group.group))
        return status is not None and status.here

    def slot(self, login: LoggedIn | None, group: Checkpoint) -> SlotFacts | None:
        if not isinstance(login, PostgresLogin) or not _slot(group):
            return None
        status = slot.slot_status(login.connection, _slot(group))
        if status is None:
            return None
        return SlotFacts(
            status.name,
            status.retained,
            room=status.room,
            limit=SlotLimit.CONFIGURED if status.room else SlotLimit.UNKNOWN,
            database=status.database,
            pid=status.pid if status.active else 0,
            restart=status.restart,
            flush=status.confirmed,
            current=status.current,
        )


def _require_lsn(asked: AskedPosition) -> None:
    """Raise UsageError for a position in another kind of log."""
    if asked.in_binary_log:
        raise UsageError(
            "LOGNUM, LOGPOS and GTIDSET are not valid for PostgreSQL.", hint="use LSN, for example LSN 0/50056B8"
        )


def _connection(login: LoggedIn | None) -> psycopg.Connection[Any]:
    """The connection of the login. Raises StateError without a login to PostgreSQL."""
    if not isinstance(login, PostgresLogin):
        raise required(login).refused()
    return login.connection


def _slot(group: Checkpoint) -> str:
    return group.options.slot


def _position(text: str) -> Csn:
    """The position that LSN names. Raises UsageError."""
    try:
        return Csn(parse_lsn(text)) if "/" in text else Csn(int(text))
    except ValueError:
        raise UsageError(f"{text} is not a valid log position.", hint="use an LSN such as 0/50056B8") from None


def _require_in_log(login: LoggedIn | None, name: str, csn: Csn) -> None:
    """Raise StateError if a position is after the end of the log.

    The check requires a login to the database that has the slot; without it, nothing is checked.
    """
    if not isinstance(login, PostgresLogin):
        return
    status = slot.slot_status(login.connection, name)
    end = inserted_position(login.connection) if status is not None and status.here else csn.value
    if csn.value > end:
        raise StateError(
            f"LSN {format_lsn(csn.value)} is past the end of the source's log, {format_lsn(end)}.",
            code=PAST_END,
            hint=PAST_END_HINT,
        )


def _require_kept(login: LoggedIn | None, group: Checkpoint, place: int, done: int) -> None:
    """Raise StateError unless the server still has the log from a position that is before what was captured.

    The trail writer skips what the trail already holds; if a trail was lost, its contents are captured again.
    """
    status = slot.slot_status(login.connection, _slot(group)) if isinstance(login, PostgresLogin) else None
    if status is not None and status.here and status.confirmed <= place:
        return
    kept = (
        f"the server retains the log only from LSN {format_lsn(status.confirmed)}"
        if status
        else "without a login to the source, the retained log is not known"
    )
    raise StateError(
        f"{group.type} {group.group} cannot go back to LSN {format_lsn(place)}: everything before {format_lsn(done)} was"
        f" already captured, and {kept}.",
        hint="DBLOGIN to the source and use an LSN at or after the slot's confirmed_flush_lsn, or move the readers of its"
        " trail back instead: ALTER REPLICAT …, EXTSEQNO …, EXTRBA …",
    )


def _at(group: Checkpoint, csn: Csn, moment: int, asked: AskedPosition) -> Checkpoint:
    """The checkpoint of a group that continues at a position."""
    position = LogPosition.of_lsn(csn.value)
    options = group.options._replace(since=0)
    read = group.read._replace(startup=LogPosition(0, 0, 0), recovery=position, current=position, current_time=0)
    fresh: dict[str, Any] = {"record_time": 0, "caught_up": 0} if asked.begin else {}
    begin = asked.lsn or asked.begin
    return group._replace(read=read, begin=begin, begin_csn=str(csn), begin_time=moment, options=options, **fresh)


def _since(group: Checkpoint, asked: AskedPosition) -> AlteredLog:
    """Set a time as the start point of an Extract that has not captured anything yet."""
    if group.started:
        raise StateError(
            f"{group.type} {group.group} has already captured changes: only an Extract that has not can begin at a time.",
            hint="use BEGIN NOW or LSN …",
        )
    options = group.options._replace(since=asked.moment)
    changed = group._replace(begin=asked.begin, begin_time=asked.moment, options=options)
    return AlteredLog(changed, f"the first commit since {asked.begin}")
