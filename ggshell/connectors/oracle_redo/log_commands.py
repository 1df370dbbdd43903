"""The redo log for commands: start positions by SCN or time, and how INFO shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ggshell.clock import local_text
from ggshell.connectors.logged_in import Credentials, LoggedIn, required
from ggshell.connectors.oracle_redo.bounds import bound_at, first_bound, last_bound
from ggshell.connectors.oracle_redo.login import folder_of
from ggshell.connectors.source_log import AlteredLog, AskedPosition, LogStart, SourceLog
from ggshell.errors import StateError, UsageError
from ggshell.home.checkpoint import GroupOptions
from ggshell.types import Csn, LogPosition

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
    if asked.lsn:
        raise UsageError("LSN is not valid for redo.", hint="use SCN n or BEGIN")
    if asked.scn:
        return Csn(max(scn_number(asked.scn) - 1, 0), False), 0
    if asked.begin.upper() == "NOW":
        return Csn(last_bound(folder).scn, False), asked.moment
    return Csn(max(bound_at(folder, asked.moment).scn - 1, 0), False), asked.moment


def scn_number(text: str) -> int:
    """Parse an SCN: a number such as ``13415493404927``, or wrap and base, ``3123.2310539519``."""
    wrap, dot, base = text.partition(".")
    return int(wrap) << 32 | int(base) if dot else int(wrap)


def _shown(scn: int) -> str:
    """Format an SCN as wrap and base, and as a number."""
    return f"{scn >> 32}.{scn & 0xFFFFFFFF} ({scn})"
