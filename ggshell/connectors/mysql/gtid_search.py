"""Where in a MySQL server's log to continue after transactions that are known by their GTIDs.

Another server has the same transactions at other positions. Each file of its log begins with the set of the GTIDs before it,
which says in which file to search. The transactions after the place that is found have not been captured if the servers commit
in the same order, as replicas do with ``replica_preserve_commit_order`` (the default).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ggshell.connectors.mysql.binlog import events
from ggshell.connectors.mysql.binlog.events import EventType
from ggshell.connectors.mysql.binlog.tagged_gtid import BEGINS
from ggshell.connectors.mysql.file_events import LogReader
from ggshell.connectors.mysql.gtid_sets import GtidSet, parse_set, set_of
from ggshell.connectors.mysql.log_files import LogFile, log_files
from ggshell.connectors.mysql.session import execute
from ggshell.connectors.mysql.wire import GONE
from ggshell.errors import CaptureError

if TYPE_CHECKING:
    from pymysql.connections import Connection

_AGAIN: Final = "ALTER EXTRACT …, BEGIN NOW and load the tables again"


class GtidSearch(NamedTuple):
    """The log of a server. ``reader``: sends its events."""

    connection: Connection[Any]
    reader: LogReader

    def place_after(self, gtid: str) -> tuple[LogFile, int]:
        """Return the file and the position after a transaction. Raises CaptureError if the log does not contain it."""
        files = log_files(self.connection)
        file = next((each for each in reversed(files) if gtid not in self.gtids_before(each)), None)
        if file is not None:
            found = False
            for place, name in _transactions(self.reader, file):
                if found:
                    return file, place
                found = name == gtid
            if found:
                return file, file.size
        raise CaptureError(f"the server's log does not contain the transaction {gtid}", code=GONE, hint=_AGAIN)

    def first_missing(self, known: GtidSet) -> tuple[LogFile, int]:
        """Return the file and the position of the first transaction that is not in a set, or of the end of the log.

        Raises CaptureError if transactions that are not in the set have been purged, or others of the set follow.
        """
        files = log_files(self.connection)
        file = next((each for each in reversed(files) if self._is_part(self.gtids_before(each), known)), None)
        if file is None:
            raise CaptureError(
                f"the server has purged transactions that are not in {known}",
                code=GONE,
                hint="use a GTID set that contains @@GLOBAL.gtid_purged",
            )
        passed: list[str] = []
        for place, name in _transactions(self.reader, file):
            if name not in known:
                self._require_no_gap(known, file, passed)
                return file, place
            passed.append(name)
        return file, file.size

    def _require_no_gap(self, known: GtidSet, file: LogFile, passed: list[str]) -> None:
        """Raise CaptureError if a set has transactions after the first one that it lacks: they would be captured too.

        ``passed``: the transactions of the file before that one.
        """
        before = ",".join(filter(None, (str(self.gtids_before(file)), str(set_of(passed)))))
        done = "GTID_SUBTRACT(%s, GTID_SUBTRACT(%s, @@GLOBAL.gtid_executed))"
        ((rest,),) = execute(self.connection, f"SELECT GTID_SUBTRACT({done}, %s)", [str(known), str(known), before])
        if rest:
            raise CaptureError(
                f"the GTID set has transactions after the first one that it lacks: {rest}",
                code=GONE,
                hint="use a set of all transactions up to one of them, or LOGNUM n LOGPOS p",
            )

    def gtids_before(self, file: LogFile) -> GtidSet:
        """The GTIDs of the transactions before a file."""
        for row in execute(self.connection, "SHOW BINLOG EVENTS IN %s LIMIT 2", [file.name]):
            if str(row[2]) == "Previous_gtids":
                return parse_set(str(row[5]))
        return GtidSet({})

    def _is_part(self, some: GtidSet, known: GtidSet) -> bool:
        ((found,),) = execute(self.connection, "SELECT GTID_SUBSET(%s, %s)", [str(some), str(known)])
        return bool(found)


def _transactions(reader: LogReader, file: LogFile) -> Iterator[tuple[int, str]]:
    """Where the transactions of one file begin, with their GTIDs: empty for anonymous ones.

    Raises ConnectionLostError if the server does not send all of them, and CaptureError if an event is damaged.
    """
    checksums = False
    for event in reader.events(file):
        head = events.header(event)
        try:
            if head.kind == EventType.FORMAT_DESCRIPTION:
                checksums = events.format_description(event).checksums
            elif head.kind in BEGINS:
                yield head.start, BEGINS[head.kind](events.whole_event(event, checksums=checksums)).gtid
        except events.UNREADABLE as error:
            raise events.unreadable(error) from error
