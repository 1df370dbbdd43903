"""Oracle redo as an Extract's source. The database does not retain the log; the checkpoint's recovery position decides."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from ggshell.clock import SystemClock
from ggshell.connectors.oracle_redo.definitions import Definitions, read_definitions
from ggshell.connectors.oracle_redo.folder import open_rows
from ggshell.connectors.oracle_redo.log import NoDefinitions, RedoLog
from ggshell.connectors.oracle_redo.login import folder_of
from ggshell.connectors.oracle_redo.messages import unpack_row
from ggshell.connectors.oracle_redo.rows import Operation, format_xid, parse_xid, scn_text, undo_slot
from ggshell.connectors.source import Places, SourceDatabase, SourceProcess
from ggshell.home.checkpoint import GroupOptions
from ggshell.home.events import Severity
from ggshell.home.shown_place import PlacePart, ShownPlace
from ggshell.parameters.process_parameters import ExtractParameters
from ggshell.parameters.table_patterns import keycols_of
from ggshell.pipeline.capture.cache import OpenTransaction
from ggshell.pipeline.capture.source import LogState
from ggshell.record.definition import TableDefinition
from ggshell.record.transaction import Completed
from ggshell.trail.fileheader import Producer
from ggshell.types import Csn, LogPosition, TableName

_RUN = 1000
WAITING_SECONDS = 300.0
"""An export of several threads makes rows wait for less than this."""


class RedoSource(SourceDatabase):
    """A folder of Oracle redo."""

    def __init__(
        self, context: SourceProcess, parameters: ExtractParameters, wanted: Callable[[TableName], bool], login: str
    ) -> None:
        self._context = context
        self._parameters = parameters
        self._wanted = wanted
        self._login = login
        self._log: RedoLog | None = None
        self._clock = SystemClock()
        self._waits: tuple[tuple[int, int] | None, float] = None, 0.0
        self._warned: tuple[int, int] | None = None
        self._recovery = LogPosition(0, 0, 0)

    def noted(self, options: GroupOptions) -> GroupOptions:
        return options._replace(source_kind="oracle_redo", source_login=self._login)

    def producer(self, group: str) -> Producer:
        return Producer(group, "ggshell Capture", "Oracle", str(folder_of(self._login)), "redo")

    @property
    def end(self) -> int:
        """After the rows that wait for another thread, so that the end of the log is not reached before them."""
        waiting = self._log.waiting if self._log is not None else None
        return waiting.scn + 1 if waiting is not None else 0

    def check(self) -> str | None:
        """Report rows that have waited for another thread for a long time, once for each place where it stopped."""
        waiting = self._log.waiting if self._log is not None else None
        place = (waiting.thread, waiting.after) if waiting is not None else None
        now = self._clock.steady()
        if place != self._waits[0]:
            self._waits = place, now
        if waiting is None or place == self._warned or now - self._waits[1] < WAITING_SECONDS:
            return None
        self._warned = place
        self._warn(
            "GGS-00549",
            f"Redo from SCN {waiting.scn} on waits for thread {waiting.thread}, which has no rows after SCN {waiting.after}.",
        )
        return None

    @property
    def bounded(self) -> RedoLog | None:
        return self._log

    @property
    def bounded_recovery_refusal(self) -> str:
        return ""

    @property
    def definitions(self) -> NoDefinitions:
        return NoDefinitions()

    def database_fact(self, detail: str) -> str | None:
        return str(folder_of(self._login)) if detail == "DBNAME" else None

    def open(self, after: Completed, begin: Csn, start: LogPosition | None = None) -> RedoLog:
        """Start reading at ``start``, or at the recovery position, or on the first run after BEGIN."""
        start = start or self._start(begin)
        definitions = Definitions(self._given(), lambda name: keycols_of(self._parameters.tables, name))
        abends = self._parameters.ends_at_unreadable
        self._log = RedoLog(open_rows(self._login, start), start, self._wanted, definitions, self._warn, abends=abends)
        self._recovery = start
        text = f"Capture begins after CSN {after.csn}, reading redo from SCN {start.csn}, segment {start.sequence}."
        self._context.report.event(Severity.INFO, "OGG-01515", text)
        return self._log

    def places(self, state: LogState, oldest: OpenTransaction | None) -> Places:
        log = self._log
        if log is None:
            return Places(self._recovery, self._recovery)
        if state.safe != self._recovery.csn:
            self._recovery = log.position(state.safe)
        current, before = log.position(state.read), self._context.checkpoint.read.current
        if isinstance(before, LogPosition) and before.csn > current.csn:
            current = before  # during a recovery, keep the position that was read before
        return Places(self._recovery, current)

    def shown(self, place: int) -> ShownPlace:
        found = self._position(place)
        return ShownPlace(
            str(place),
            (PlacePart("thread", "Redo Thread", found.thread or 1),),
            (
                PlacePart("scn", "SCN", str(place), scn_text(place)),
                PlacePart("seqno", "Redo Seq", found.sequence),
                PlacePart("rba", "Redo RBA", found.rba),
            ),
        )

    def read_position(self, place: int) -> ShownPlace:
        found = self._position(place)
        return ShownPlace(
            str(place),
            (
                PlacePart("thread", "Redo thread #", found.thread or 1),
                PlacePart("seqno", "Sequence #", found.sequence),
                PlacePart("rba", "RBA", found.rba),
            ),
            (PlacePart("scn", "SCN", str(place)),),
        )

    def restart_text(self, oldest: int, persisted: LogPosition | None) -> str:
        place = persisted or self._position(oldest)
        return (
            "Oldest redo log file necessary to restart Extract is:\n"
            f"Redo Thread {place.thread or 1}, Redo Log Sequence Number {place.sequence}, SCN {scn_text(place.csn)},"
            f" RBA {place.rba}"
        )

    def _position(self, scn: int) -> LogPosition:
        return self._log.position(scn) if self._log is not None else LogPosition(0, 0, scn)

    def orphans(self, known: Collection[int]) -> Mapping[int, str]:
        """Return the transactions whose undo slot is used by a later one.

        They result from an instance failure: instance recovery rolls them back without a record of the transaction.
        """
        latest: dict[int, int] = {}
        for xid in known:
            slot = undo_slot(xid)
            latest[slot] = max(latest.get(slot, 0), xid)
        users = {xid: latest[undo_slot(xid)] for xid in known}
        return {xid: f"its undo slot is reused by {format_xid(user)}" for xid, user in users.items() if user != xid}

    def thread(self, transaction: OpenTransaction) -> int:
        return self._log.begin_of(transaction).thread or 1 if self._log is not None else 1

    def transaction_id(self, xid: int) -> str:
        return format_xid(xid)

    def transaction_number(self, text: str) -> int:
        return parse_xid(text)

    def changes(self, transaction: OpenTransaction) -> Iterator[str]:
        for _, parts in transaction.runs(_RUN):
            for part in parts:
                for row in map(unpack_row, part):
                    yield f"{Operation(row.operation).name} {row.owner}.{row.table} {row.row_id}  {row.redo.decode()}"

    def close(self) -> None:
        """Close the log and report how many changes could not be captured."""
        log, self._log = self._log, None
        if log is not None:
            for (table, reason), count in sorted(log.problems.items()):
                if count > 1:
                    self._warn("GGS-00532", f"{table or 'Transactions'}: {reason}: {count} in this run, not captured.")

    def _start(self, begin: Csn) -> LogPosition:
        recovery = self._context.checkpoint.read.recovery
        if isinstance(recovery, LogPosition) and recovery.csn > begin.value:
            return recovery
        return LogPosition(0, 0, begin.value + 1 if begin.value else 0)

    def _given(self) -> dict[TableName, TableDefinition]:
        if not self._parameters.definitions:
            return {}
        path = Path(self._parameters.definitions)
        return read_definitions(path if path.is_absolute() else self._context.home.root / path)

    def _warn(self, code: str, text: str) -> None:
        self._context.report.event(Severity.WARNING, code, text)
