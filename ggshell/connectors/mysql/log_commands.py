"""The binary log for commands: start positions by time, file or GTID, and how INFO shows them."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final

from ggshell.clock import local_text
from ggshell.connectors.logged_in import LoggedIn, required
from ggshell.connectors.mysql.binlog import events
from ggshell.connectors.mysql.file_events import LogReader
from ggshell.connectors.mysql.gtid_search import GtidSearch
from ggshell.connectors.mysql.gtid_sets import parse_set
from ggshell.connectors.mysql.gtids import parse_position, position_text
from ggshell.connectors.mysql.log_files import (
    LogFile,
    base_of,
    file_named,
    file_number,
    gtid_at,
    log_end,
    log_files,
    next_base,
    value_of,
)
from ggshell.connectors.mysql.logged_in import MysqlLogin
from ggshell.connectors.mysql.requirements import require_captured, server_identity
from ggshell.connectors.mysql.wire import GONE, server_number
from ggshell.connectors.source_log import AlteredLog, AskedPosition, LogStart, SourceLog
from ggshell.errors import CaptureError, StateError, UsageError
from ggshell.home.checkpoint import GroupOptions
from ggshell.types import Csn, CsnForm, LogPosition

if TYPE_CHECKING:
    from ggshell.home.checkpoint import Checkpoint

_FIRST: Final = 4
"""The position of the first event of a file."""
_EXACT: Final = "%Y-%m-%d %H:%M:%S.%f"
_POSITION: Final = 0xFFFFFFFF


class BinaryLog(SourceLog):
    """The binary log of MariaDB and MySQL."""

    title = "MySQL Binary Log"

    def start(self, login: LoggedIn | None, group: str, asked: AskedPosition) -> LogStart:
        """Start at the log's end for NOW, or at the given file, GTID or time. Checks the settings that capture requires."""
        return _start(_login(login), asked)

    def alter(self, login: LoggedIn | None, group: Checkpoint, asked: AskedPosition) -> AlteredLog:
        """Set an Extract to another position.

        Raises StateError for a position before the last transaction in its trail, which would not be written again.
        """
        if asked.seqno is not None or asked.rba is not None:
            asked = asked._replace(lognum=asked.seqno, logpos=asked.rba, seqno=None, rba=None)
        mysql = _login(login)
        start = _start(mysql, asked)
        csn, moved = start.csn, bool(group.options.log_server) and group.options.log_server != start.options.log_server
        done = Csn.parse(group.latest_csn).value if group.latest_csn else 0
        if csn.value and (moved or csn.value < done) and asked.begin.upper() == "NOW":
            # The log of another server, or one that was reset: its files follow those that were captured.
            base = next_base(done >> 32) if csn.value < done else 0
            csn = Csn((base << 32) + csn.value, CsnForm.LOG)
        if csn.value and csn.value < done - 1:
            raise StateError(
                f"{group.group} cannot go back to {_shown(csn)}: its trail already contains everything up to CSN"
                f" {group.latest_csn}.",
                hint="move the readers of its trail back instead: ALTER REPLICAT …, EXTSEQNO …, EXTRBA …",
            )
        at = _position(csn.value + 1 if csn.value else 0)
        last = start.options.log_last
        options = group.options._replace(
            log_server=start.options.log_server,
            log_last=None if last is None else (csn.value, last[1]),
            since=start.options.since,
            decisions=(),
        )
        changed = group._replace(
            options=options,
            read=group.read._replace(startup=LogPosition(0, 0, 0), recovery=at, current=at, current_time=0),
            begin=asked.gtid or asked.begin,
            begin_csn=str(csn),
            begin_time=start.moment,
            record_time=0,
            caught_up=0,
        )
        return AlteredLog(changed, _shown(csn) if csn.value else f"GTID {asked.gtid}")

    def start_text(self, csn: str) -> str:
        found = Csn.parse(csn)
        return f"at {_shown(found)}" if found.value else "after the given GTID"

    def source_name(self, options: GroupOptions) -> str:
        return "MySQL"

    def read_position(self, group: Checkpoint) -> list[tuple[str, str]]:
        read = group.read
        moment = read.current_time or group.begin_time
        when = local_text(moment, _EXACT) if moment else "First Record"
        current = read.current
        value = current.csn if isinstance(current, LogPosition) else 0
        place = _position(value or (Csn.parse(group.begin_csn).value if group.begin_csn else 0))
        lines = [("VAM Read Checkpoint", when), ("", f"LogNum: {place.sequence}, LogPos: {place.rba}")]
        if group.options.log_last is not None and group.options.log_last[1]:
            lines.append(("", f"GTID: {group.options.log_last[1]}"))
        return lines

    def position_facts(self, options: GroupOptions, position: LogPosition) -> list[str]:
        csn = str(Csn(position.csn, CsnForm.LOG)) if position.csn else "Not Available"
        gtid = options.log_last[1] if options.log_last is not None else ""
        lines = [f"LogNum: {position.sequence}", f"LogPos: {position.rba}", f"CSN: {csn}"]
        return [*lines, f"GTID: {gtid}"] if gtid else lines


def _login(login: LoggedIn | None) -> MysqlLogin:
    if not isinstance(login, MysqlLogin):
        raise required(login).refused()
    return login


def _start(login: MysqlLogin, asked: AskedPosition) -> LogStart:
    if asked.lsn or asked.scn:
        word = "LSN" if asked.lsn else "SCN"
        raise UsageError(f"{word} is not valid for MariaDB or MySQL.", hint="use LOGNUM n LOGPOS p, GTIDSET, or BEGIN")
    connection = login.connection
    require_captured(connection, login.server)
    options = GroupOptions(log_server=server_identity(connection, login.server))
    if asked.gtid:
        if not login.server.mariadb:
            file, place = GtidSearch(connection, _reader(login)).first_missing(parse_set(asked.gtid))
            return _started(file.number, place, "", 0, options)
        gtid = position_text(parse_position(asked.gtid))
        return LogStart(Csn(0, CsnForm.LOG), 0, options._replace(log_last=(0, gtid)))
    if asked.lognum is not None or asked.logpos is not None:
        return _at_position(login, asked, options)
    if asked.begin.upper() == "NOW":
        end = log_end(connection, login.server)
        return _started(file_number(end.file), end.position, end.gtid, login.log_end()[1], options)
    file = _file_at(login, asked.moment)
    return _started(file.number, _FIRST, "", asked.moment, options._replace(since=asked.moment))


def _started(number: int, position: int, gtid: str, moment: int, options: GroupOptions) -> LogStart:
    """Capture begins at a position. The CSN is the one before, so that a transaction that begins there is captured."""
    csn = Csn(value_of(0, number, position) - 1, CsnForm.LOG)
    return LogStart(csn, moment, options._replace(log_last=(csn.value, gtid)))


def _at_position(login: MysqlLogin, asked: AskedPosition, options: GroupOptions) -> LogStart:
    files = log_files(login.connection)
    number, position = asked.lognum if asked.lognum is not None else files[-1].number, max(asked.logpos or 0, _FIRST)
    file = file_named(files, number)
    if file is None or position > file.size:
        have = f"{files[0].name} to {files[-1].name}, {files[-1].size} bytes"
        raise CaptureError(
            f"the server's log does not contain position {position} of log file {number}: it has {have}",
            code=GONE,
            hint="use a LOGNUM and a LOGPOS that SHOW BINARY LOGS and SHOW BINLOG EVENTS show",
        )
    gtid = gtid_at(login.connection, file.name, position) if login.server.mariadb else ""
    return _started(number, position, gtid or "", 0, options)


def _file_at(login: MysqlLogin, moment: int) -> LogFile:
    """The last file that was begun at a time or earlier. Raises CaptureError if the log begins later."""
    files = log_files(login.connection)
    low, high = 0, len(files)
    while low < high:
        middle = (low + high) // 2
        if _first_time(login, files[middle]) * 1_000_000 <= moment:
            low = middle + 1
        else:
            high = middle
    if not low:
        raise CaptureError(
            f"the server's log begins after that time, with {files[0].name}",
            code=GONE,
            hint="use a later time in BEGIN",
        )
    return files[low - 1]


def _first_time(login: MysqlLogin, file: LogFile) -> int:
    """When a file was begun, in seconds since 1970."""
    with closing(_reader(login).events(file)) as found:
        for event in found:
            head = events.header(event)
            if head.kind == events.EventType.FORMAT_DESCRIPTION:
                return head.time
    raise CaptureError(f"the server did not send the first event of {file.name}", code=GONE, hint="use BEGIN NOW")


def _reader(login: MysqlLogin) -> LogReader:
    return LogReader(login.conninfo, server_number((login.conninfo, "commands")))


def _position(value: int) -> LogPosition:
    return LogPosition((value >> 32) - base_of(value >> 32), value & _POSITION, value)


def _shown(csn: Csn) -> str:
    place = _position(csn.value)
    return f"log file {place.sequence}, position {place.rba + 1}"
