"""The redo log for commands: its beginning and end, start positions by SCN or time, and how INFO shows them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ggshell.clock import local_text
from ggshell.connectors.logged_in import Credentials, LoggedIn, required
from ggshell.connectors.oracle_redo.login import folder_of
from ggshell.connectors.oracle_redo.rows import RedoRow, decode_rows
from ggshell.connectors.oracle_redo.segments import Segment, first_line, last_line, list_segments, open_segment
from ggshell.connectors.source_log import AlteredLog, AskedPosition, LogStart, SourceLog
from ggshell.errors import CaptureError, StateError, UsageError
from ggshell.home.checkpoint import GroupOptions
from ggshell.types import Csn, CsnForm, LogPosition

if TYPE_CHECKING:
    from ggshell.connectors.connector import Connector
    from ggshell.home.checkpoint import Checkpoint


class RedoLogin(LoggedIn):
    """A login to a folder of redo. There is no connection, but the folder exists."""

    def refused(self) -> StateError:
        return StateError(
            f"{self.conninfo} is a redo log, not a database: it does not support this command.",
            hint="DBLOGIN to the target or to the source database",
        )

    def greeting(self, now: int) -> tuple[str, ...]:
        folder = folder_of(self.conninfo)
        first, last = first_bound(folder), last_bound(folder)
        reach = f"from SCN {first.scn} to {last.scn}, {local_text(last.time)}" if last.scn else "which is still empty"
        return (*super().greeting(now), f"Redo {folder}, {reach}.")


def log_in(connector: Connector, given: Credentials) -> RedoLogin:
    """Log in to a folder. Raises DatabaseError when it does not exist."""
    login = given.names_kind.strip()
    return RedoLogin(connector, login, "redo", str(folder_of(login)), "redo")


class RedoLogCommands(SourceLog):
    """Oracle's redo, read from the files of a folder."""

    title = "Oracle Redo Log"

    def start(self, login: LoggedIn | None, group: str, asked: AskedPosition) -> LogStart:
        conninfo = required(login).conninfo
        csn, moment = _position(conninfo, asked)
        return LogStart(csn, moment, GroupOptions(source_login=conninfo))

    def alter(self, login: LoggedIn | None, group: Checkpoint, asked: AskedPosition) -> AlteredLog:
        """Set an Extract on redo to another position.

        Raises StateError for a position before the last transaction in its trail, which would not be written again.
        """
        if asked.seqno is not None or asked.rba is not None:
            raise UsageError("EXTSEQNO and EXTRBA are not valid for redo.", hint="use SCN n or BEGIN")
        csn, moment = _position(group.options.source_login, asked)
        done = Csn.parse(group.latest_csn).value if group.latest_csn else 0
        if csn.value < done:
            raise StateError(
                f"{group.group} cannot go back to SCN {csn.value + 1}: its trail already contains everything up to SCN {done}.",
                hint="move the readers of its trail back instead: ALTER REPLICAT …, EXTSEQNO …, EXTRBA …",
            )
        at = LogPosition(0, 0, csn.value)
        changed = group._replace(
            options=group.options._replace(bounded=None, decisions=()),
            read=group.read._replace(startup=LogPosition(0, 0, 0), recovery=at, current=at, current_time=0),
            begin=asked.scn or asked.begin,
            begin_csn=str(csn),
            begin_time=moment,
            record_time=0,
            caught_up=0,
        )
        return AlteredLog(changed, f"SCN {csn.value + 1}")

    def start_text(self, csn: str) -> str:
        return f"after SCN {csn}"

    def source_name(self, options: GroupOptions) -> str:
        return options.source_login

    def read_position(self, group: Checkpoint) -> list[tuple[str, str]]:
        read, first = group.read, ("Log Read Checkpoint", "Oracle Redo Logs")
        if not isinstance(read.current, LogPosition) or not read.current.csn:
            begin = local_text(group.begin_time) if group.begin_time else "First Record"
            return [first, ("", f"{begin}  SCN {group.begin_csn}" if group.begin_csn else f"{begin}  RBA 0")]
        when = local_text(read.current_time) if read.current_time else "Not Available"
        return [
            first,
            ("", f"{when}  Seqno {read.current.sequence}, RBA {read.current.rba}"),
            ("", f"SCN {_shown(read.current.csn)}"),
        ]

    def position_facts(self, options: GroupOptions, position: LogPosition) -> list[str]:
        shown = _shown(position.csn) if position.csn else "Not Available"
        return [f"SCN: {shown}", f"Redo File: {options.source_login}, segment {position.sequence}"]


def _position(login: str, asked: AskedPosition) -> tuple[Csn, int]:
    """Return the SCN after which capture begins, and its time.

    NOW is the current end of the log; a time is the first row of the log at that time.
    """
    folder = folder_of(login)
    if asked.in_binary_log:
        raise UsageError("LOGNUM, LOGPOS and GTIDSET are not valid for redo.", hint="use SCN n or BEGIN")
    if asked.lsn:
        raise UsageError("LSN is not valid for redo.", hint="use SCN n or BEGIN")
    if asked.scn:
        return Csn(max(scn_number(asked.scn) - 1, 0), CsnForm.NUMBER), 0
    if asked.begin.upper() == "NOW":
        return Csn(last_bound(folder).scn, CsnForm.NUMBER), asked.moment
    return Csn(max(bound_at(folder, asked.moment).scn - 1, 0), CsnForm.NUMBER), asked.moment


def scn_number(text: str) -> int:
    """Parse an SCN: a number such as ``13415493404927``, or wrap and base, ``3123.2310539519``."""
    wrap, dot, base = text.partition(".")
    return int(wrap) << 32 | int(base) if dot else int(wrap)


def _shown(scn: int) -> str:
    """Format an SCN as wrap and base, and as a number."""
    return f"{scn >> 32}.{scn & 0xFFFFFFFF} ({scn})"


class Bound(NamedTuple):
    """An SCN, and the time of its row in microseconds since 1970; zeros for an empty log."""

    scn: int
    time: int


def first_bound(folder: Path) -> Bound:
    """The first row of the log."""
    rows = [_row(first_line(segment), segment) for segment in _in_order(folder)]
    return min((_bound(row) for row in rows if row is not None), default=Bound(0, 0))


def last_bound(folder: Path) -> Bound:
    """The last row of the log that is written so far. With several threads, the last row of all."""
    found = Bound(0, 0)
    for segments in list_segments(folder).values():
        for number in sorted(segments, reverse=True):
            row = _row(last_line(segments[number]), segments[number])
            if row is not None:
                found = max(found, _bound(row))
                break
    return found


def bound_at(folder: Path, moment: int) -> Bound:
    """The first row at a time or later. If there is none yet, the end of the log with the SCN after the last one.

    Raises CaptureError when the log begins later than that time.
    """
    first = first_bound(folder)
    if first.time > moment:
        raise CaptureError(
            f"the redo in {folder} begins after that time, at SCN {first.scn}",
            code="GGS-00524",
            hint="use a later time in BEGIN, or restore older segments",
        )
    candidates = [
        found
        for segments in list_segments(folder).values()
        if (found := _first_since(list(map(segments.__getitem__, sorted(segments))), moment)) is not None
    ]
    if candidates:
        return min(candidates)
    last = last_bound(folder)
    return Bound(last.scn + 1, last.time)


def _first_since(segments: list[Segment], moment: int) -> Bound | None:
    """The first row of a thread at a time or later. Whole segments before it are skipped."""
    start = 0
    for number, segment in enumerate(segments):
        row = _row(first_line(segment), segment)
        if row is None or row.time >= moment:
            break
        start = number
    for segment in segments[start:]:
        with open_segment(segment) as file:
            for line in file:
                row = _row(line, segment)
                if row is not None and row.time >= moment:
                    return _bound(row)
    return None


def _in_order(folder: Path) -> list[Segment]:
    return [segments[min(segments)] for segments in list_segments(folder).values()]


def _row(line: bytes, segment: Segment) -> RedoRow | None:
    rows = decode_rows(line, segment.thread, segment.number, str(segment.path)) if line.endswith(b"\n") else []
    return rows[0] if rows else None


def _bound(row: RedoRow) -> Bound:
    return Bound(row.scn, row.time)
