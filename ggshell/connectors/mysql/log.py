"""The binary log as a LogSource: events of a replication connection become committed transactions.

The code relies on these facts. Transactions are in the log in commit order, each as a whole, so they are never interleaved;
only a prepared XA transaction stays open while others follow. The CSN of a transaction is the file and the position at which
it begins. A server that is asked for a position sends everything after it again, so a transaction is read whole or not
at all, and what the trail contains is recognized by its CSN. The rows are kept as received; nothing is decoded before the
commit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from ggshell.clock import Clock
from ggshell.connectors.mysql.binlog import events
from ggshell.connectors.mysql.binlog.cascades import CascadedRows
from ggshell.connectors.mysql.binlog.events import EventHeader, EventType, TransactionBegin
from ggshell.connectors.mysql.binlog.partial_updates import whole_updates
from ggshell.connectors.mysql.binlog.plan import TablePlan
from ggshell.connectors.mysql.binlog.row_events import ROWS
from ggshell.connectors.mysql.binlog.table_map import column_names, table_map, table_name, table_number
from ggshell.connectors.mysql.binlog.tagged_gtid import BEGINS
from ggshell.connectors.mysql.binlog.transaction_payload import payload_events
from ggshell.connectors.mysql.ddl_capture import DdlCapture
from ggshell.connectors.mysql.ddl_text import executed_text, folded
from ggshell.connectors.mysql.encode import CapturedTable, encode_runs, statement_message
from ggshell.connectors.mysql.gtids import position_text
from ggshell.connectors.mysql.log_files import file_number, value_of
from ggshell.connectors.mysql.statements_in_log import StatementKind, read_statement, without_start
from ggshell.connectors.mysql.unlogged_changes import UnloggedChanges
from ggshell.connectors.mysql.wire import LOST_SECONDS, ReplicationWire
from ggshell.errors import CaptureError, ConnectionLostError, GgsError
from ggshell.pipeline.capture.cache import Committed, OpenTransaction, TransactionCache
from ggshell.pipeline.capture.messages import Messages
from ggshell.pipeline.capture.source import LogState, MessageRun
from ggshell.record.change import ChangeBatch
from ggshell.record.ddl import encode_ddl, object_definition
from ggshell.record.definition import TableDefinition
from ggshell.record.image_rules import DEFAULT_IMAGES, ImageRules
from ggshell.record.transaction import TransactionHeader
from ggshell.types import Csn, CsnForm, TableName

PART_BYTES: Final = 1 << 20
"""Rows of an open transaction are handed to the cache in parts of about this size."""
FEED_BYTES: Final = 8 << 20
"""A call of ``feed`` takes about this much of the log at most."""
_SECOND: Final = 1_000_000
_DDL: Final = 1 << 48
"""The number of a DDL statement instead of a table; the numbers after it are those of truncated tables."""
_IGNORABLE: Final = 0x80
_SILENT: Final = frozenset(
    {
        EventType.STOP,
        EventType.HEARTBEAT,
        EventType.HEARTBEAT_V2,
        EventType.IGNORABLE,
        EventType.ROWS_QUERY,
        EventType.PREVIOUS_GTIDS,
        EventType.TRANSACTION_CONTEXT,
        EventType.VIEW_CHANGE,
        EventType.ANNOTATE_ROWS,
        EventType.BINLOG_CHECKPOINT,
        EventType.MARIADB_GTID_LIST,
        EventType.START_ENCRYPTION,
        EventType.INTVAR,
        EventType.RAND,
        EventType.USER_VAR,
    }
)
_LOADS: Final = frozenset({EventType.BEGIN_LOAD_QUERY, EventType.EXECUTE_LOAD_QUERY})
_ROW_KINDS: Final = frozenset(int(kind) for kind in (*ROWS, EventType.PARTIAL_UPDATE_ROWS))
_CHECKPOINTS: Final = frozenset({"group_name", "group_key", "log_cmplt_csn", "log_cmplt_xids"})
"""Columns of a Replicat's checkpoint table and of its transaction table. Each of its transactions changes one of them."""
_SEQUENCE: Final = ("next_not_cached_value", "minimum_value", "maximum_value", "start_value")
"""The first columns of a sequence of MariaDB, which is logged like a table."""


class TableRules(NamedTuple):
    """Which tables are captured, and how. ``keys``: the KEYCOLS; ``images``: which images their rows have.

    ``replicates``: transactions of a Replicat are captured too (GETREPLICATES). ``ddl``: None if DDL is not captured.
    ``folds``: the server has all names of tables in lower case, but logs statements as they were written.
    """

    wanted: Callable[[TableName], bool]
    keys: Callable[[TableName], tuple[str, ...]] = lambda _: ()
    images: Callable[[TableName], ImageRules] = lambda _: DEFAULT_IMAGES
    replicates: bool = False
    ddl: DdlCapture | None = None
    folds: bool = False


class LastRead(NamedTuple):
    """The last transaction that was read: the value of its CSN, and the GTID position after it; 0 and empty for none."""

    csn: int = 0
    gtid: str = ""


class _Open(NamedTuple):
    """The transaction that is being read."""

    begin: TransactionBegin
    csn: int
    transaction: OpenTransaction


class MysqlLog:
    """A replication connection, read from one position on."""

    def __init__(
        self,
        wire: ReplicationWire,
        rules: TableRules,
        clock: Clock,
        base: int,
        start: int,
        last: LastRead,
        position: dict[str, str],
        report: Callable[[str, str], None],
    ) -> None:
        """``base``: added to the numbers of files in CSNs; ``start``: the position at which reading begins, as a CSN's value.

        ``position``: the GTID position before the first transaction. ``report``: receives the code and the text of a warning.
        """
        self._wire = wire
        self._rules = rules
        self._clock = clock
        self._base = base
        self._report = report
        self._unlogged = UnloggedChanges(report)
        self._cascaded = CascadedRows()
        self._file = (start >> 32) - base
        self._read = self._safe = self.end = start
        self._last = last
        self._saved: deque[tuple[int, LastRead]] = deque([(start, last)])
        self._position = dict(position)
        self._events: deque[bytes] = deque()
        self._format: events.FormatDescription | None = None
        self._tables: dict[int, CapturedTable] = {}
        self._maps: dict[int, bytes] = {}
        self._ignored: set[int] = set()
        self._applied: set[int] = set()
        self._by_replicat = False
        self._truncated: dict[TableName, int] = {}
        self._current: _Open | None = None
        self._prepared: dict[str, _Open] = {}
        self._pending: list[bytes] = []
        self._pending_size = 0
        self._failure: GgsError | None = None
        self._heard = clock.steady()
        self.quiet = False

    @property
    def state(self) -> LogState:
        return LogState(self._read, self._safe, max(self.end, self._read))

    @property
    def cursor(self) -> tuple[int, int]:
        return self._read, 0

    @property
    def more(self) -> bool:
        return bool(self._events) or self._wire.pending or self._failure is not None

    def fileno(self) -> int:
        return self._wire.fileno()

    def wait(self, timeout: float) -> bool:
        return self.more or self._wire.wait(timeout)

    def confirm(self, position: int) -> None:
        """Do nothing: the server keeps its log by its own rules."""

    def close(self) -> None:
        self._wire.close()

    def encode(self, runs: Iterable[MessageRun]) -> ChangeBatch | None:
        return encode_runs(runs)

    def last_read(self, safe: int) -> LastRead:
        """The last transaction before a position that ``state`` had as ``safe``; earlier ones are forgotten."""
        while len(self._saved) > 1 and self._saved[1][0] <= safe:
            self._saved.popleft()
        return self._saved[0][1]

    def feed(self, cache: TransactionCache, most: int) -> Sequence[Committed]:
        """Take events until enough rows have arrived, nothing more is available, or a large transaction has committed.

        Raises CaptureError where continuing would lose changes, after handing out everything that committed before.
        """
        if self._failure is not None:
            raise self._failure
        committed: list[Committed] = []
        count = size = 0
        self.quiet = False
        try:
            while count < most and size < FEED_BYTES:
                if not self._events and not self._receive():
                    self.quiet = True
                    break
                event = self._events.popleft()
                size += len(event)
                count += 1
                found = self._take(event, cache)
                if found is not None:
                    committed.append(found)
                    if found.transaction.count > most:
                        break
        except GgsError as error:
            if not committed:
                raise
            self._failure = error
        self._flush(cache)
        self._saved.append((self._safe, self._last))
        return committed

    def _receive(self) -> bool:
        found = self._wire.receive()
        now = self._clock.steady()
        if found:
            self._heard = now
            self._events.extend(found)
        elif now - self._heard > LOST_SECONDS:
            raise ConnectionLostError(
                f"the server has sent nothing for {LOST_SECONDS:.0f} seconds, not even a heartbeat"
            )
        return bool(found)

    def _take(self, event: bytes, cache: TransactionCache) -> Committed | None:
        try:
            return self._read_event(event, cache)
        except events.UNREADABLE as error:
            raise events.unreadable(error) from error

    def _read_event(self, event: bytes, cache: TransactionCache) -> Committed | None:
        kind = event[4]
        if kind == EventType.FORMAT_DESCRIPTION:
            self._described(events.format_description(event), cache)
            return None
        if kind == EventType.ROTATE:
            self._rotate(event)
            return None
        event = events.whole_event(event, checksums=self._format is not None and self._format.checksums)
        head = events.header(event)
        if not head.is_artificial:
            self._read = value_of(self._base, self._file, head.next)
        if kind != EventType.TRANSACTION_PAYLOAD:
            return self._handle(kind, event, head, cache)
        # A transaction is committed once, by the last of its events.
        found = [self._handle(each[4], each, events.header(each), cache) for each in payload_events(event, head)]
        return found[-1] if found else None

    def _handle(self, kind: int, event: bytes, head: EventHeader, cache: TransactionCache) -> Committed | None:
        """Handle an event whose position is noted."""
        if kind in _ROW_KINDS:
            self._row(event, cache)
            return None
        if kind == EventType.TABLE_MAP:
            self._map(event)
            return None
        found = self._control(kind, event, head, cache)
        if self._current is None and not head.is_artificial:
            self._safe = max(self._safe, self._read)
        return found

    def _control(self, kind: int, event: bytes, head: EventHeader, cache: TransactionCache) -> Committed | None:
        """Handle an event that is not a row: begins, ends and statements."""
        if kind in BEGINS:
            self._begin(BEGINS[kind](event), head, cache)
        elif kind == EventType.XID:
            return self._commit(head, cache)
        elif kind in (EventType.QUERY, EventType.QUERY_COMPRESSED):
            return self._query(events.query(event), event, head, cache)
        elif kind == EventType.XA_PREPARE:
            name, one_phase = events.xa_prepare(event)
            if one_phase:
                return self._commit(head, cache)
            self._prepare(name, cache)
        elif kind == EventType.INCIDENT:
            raise CaptureError(
                f"the server's log lacks changes: {events.incident(event) or 'an incident event'}",
                code="GGS-00475",
                hint="ALTER EXTRACT …, BEGIN NOW, and load the tables again",
            )
        elif kind in _LOADS:
            raise _statement_refused("LOAD DATA")
        elif kind not in _SILENT and not head.flags & _IGNORABLE:
            name = EventType(kind).name if kind in EventType._value2member_map_ else str(kind)
            raise CaptureError(
                f"the event {name} at position {head.start} of the binary log is not supported",
                code=events.UNSUPPORTED,
                hint="see whether a newer ggshell supports it",
            )
        return None

    def _described(self, found: events.FormatDescription, cache: TransactionCache) -> None:
        """Begin a file. After a restart of the server, the numbers of tables start again, and nothing is open."""
        self._format = found
        if found.created:
            self._tables, self._maps, self._ignored, self._applied = {}, {}, set(), set()
            if self._current is not None:
                self._drop(cache)

    def _rotate(self, event: bytes) -> None:
        found = events.rotate(event)
        self._file = file_number(found.file)
        self._read = max(self._read, value_of(self._base, self._file, found.position))
        if self._current is None:
            self._safe = max(self._safe, self._read)

    def _begin(self, begin: TransactionBegin, head: EventHeader, cache: TransactionCache) -> None:
        if self._current is not None:
            self._drop(cache)  # the server ended while it wrote it
        self._by_replicat = False
        csn = value_of(self._base, self._file, head.start)
        time = begin.commit_time or head.time * _SECOND
        self._current = _Open(begin, csn, cache.begin(csn, csn, time))

    def _map(self, event: bytes) -> None:
        """Learn a table. Its number means the same table until the server ends."""
        number = table_number(event)
        if self._maps.get(number) == event[events.HEADER_SIZE :]:
            return
        name = table_name(event)
        self._maps[number] = event[events.HEADER_SIZE :]
        if number in self._tables:  # rows that were read before keep the former table
            self._tables = {known: table for known, table in self._tables.items() if known != number}
        self._ignored.discard(number)
        self._applied.discard(number)
        if set(column_names(event)) >= _CHECKPOINTS:
            self._applied.add(number)
            self._ignored.add(number)
            return
        if not self._rules.wanted(name):
            self._ignored.add(number)
            return
        table = table_map(event)
        if tuple(column.name for column in table.columns[:4]) == _SEQUENCE:
            self._ignored.add(number)
            self._report("GGS-00476", f"{name} is a sequence: its values are not captured from MariaDB.")
            return
        definition = table.definition(self._rules.keys(name))
        self._tables[number] = CapturedTable(TablePlan(table), definition, self._rules.images(name))

    def _row(self, event: bytes, cache: TransactionCache) -> None:
        number = table_number(event)
        if number in self._ignored:
            self._by_replicat = self._by_replicat or number in self._applied
            for message in self._cascaded.ordered(event, captured=False):
                self._add(message, cache)
            return
        if number not in self._tables:
            raise CaptureError(f"rows of table {number} precede its description in the binary log", code=events.DAMAGED)
        table = self._tables[number]
        if event[4] == EventType.PARTIAL_UPDATE_ROWS and table.plan is not None:
            event = whole_updates(event, table.plan)
        self._unlogged.look(event, table.definition.name)
        for message in self._cascaded.ordered(event, captured=True):
            self._add(message, cache)

    def _add(self, message: bytes, cache: TransactionCache) -> None:
        if self._current is None:
            raise CaptureError("rows outside of a transaction in the binary log", code=events.DAMAGED)
        transaction = self._current.transaction
        if transaction.limited and not transaction.wants(self.cursor):
            return
        self._pending.append(message)
        self._pending_size += len(message)
        if self._pending_size > PART_BYTES:
            self._flush(cache)

    def _flush(self, cache: TransactionCache) -> None:
        """Hand the collected rows to the cache."""
        if self._pending and self._current is not None:
            transaction = self._current.transaction
            cache.add(transaction, transaction.chunk(self._tables, streamed=False), Messages.pack(self._pending))
        self._pending, self._pending_size = [], 0

    def _end_rows(self, cache: TransactionCache) -> None:
        """Hand everything to the cache at the end of a transaction."""
        for message in self._cascaded.rest():
            self._add(message, cache)
        self._flush(cache)

    def _query(self, query: events.Query, event: bytes, head: EventHeader, cache: TransactionCache) -> Committed | None:
        if self._current is None:
            return None
        mode = query.variables.sql_mode
        query = query._replace(text=executed_text(query.text, mode))
        if self._rules.folds:
            query = query._replace(text=folded(query.text, query.database, mode))
        text = without_start(query.text)
        found, rows_follow = read_statement(text, query.database, mode), len(text) < len(query.text)
        kind, current = found.kind, self._current
        if kind is StatementKind.ROWS:
            raise _statement_refused(query.text.split(None, 1)[0].upper())
        if kind is StatementKind.ROLLBACK_PART:
            raise CaptureError(
                "a transaction with tables of several engines was partly rolled back (ROLLBACK TO SAVEPOINT)",
                code=events.UNSUPPORTED,
                hint="use InnoDB tables only, or begin after this transaction and load the tables again",
            )
        ends = kind is StatementKind.COMMIT or current.begin.standalone or self._is_single(kind, current)
        if kind is StatementKind.TRUNCATE and found.table is not None:
            self._truncate(found.table, event, cache)
        if kind is StatementKind.OTHER and not current.begin.ineffective:
            self._executed(query._replace(text=text), event, cache)
        if kind in (StatementKind.XA_COMMIT, StatementKind.XA_ROLLBACK):
            return self._complete(current.begin.completes or found.xa, kind, head, cache)
        if kind is StatementKind.ROLLBACK:
            self._drop(cache)
            return None
        return self._commit(head, cache) if ends and not rows_follow else None

    @staticmethod
    def _is_single(kind: StatementKind, current: _Open) -> bool:
        """Whether a statement is a transaction of MySQL by itself: DDL has no BEGIN and no end."""
        other = kind in (StatementKind.OTHER, StatementKind.TRUNCATE)
        return other and not current.begin.of_mariadb and not current.transaction.count

    def _truncate(self, name: TableName, event: bytes, cache: TransactionCache) -> None:
        if self._rules.folds:
            name = TableName(name.owner.lower(), name.name.lower())
        if not self._rules.wanted(name):
            return
        number = self._truncated.setdefault(name, _DDL + 1 + len(self._truncated))
        # The log does not describe the table here, and its columns can have changed since its last row.
        self._tables.setdefault(number, CapturedTable(None, TableDefinition(name, (), ())))
        self._flush(cache)
        self._add(statement_message(event[: events.HEADER_SIZE], number), cache)

    def _executed(self, query: events.Query, event: bytes, cache: TransactionCache) -> None:
        """Add a DDL statement as a row of its own, if it is captured."""
        statement = self._rules.ddl.statement(query) if self._rules.ddl is not None else None
        self._unlogged.executed(query, self._rules.wanted, captured=statement is not None)
        if statement is None:
            return
        self._flush(cache)
        before, number = self._tables, _DDL
        self._tables = {
            **before,
            number: CapturedTable(None, object_definition(statement), ddl=encode_ddl(statement)),
        }
        self._add(statement_message(event[: events.HEADER_SIZE], number), cache)
        self._flush(cache)
        self._tables = before

    def _commit(self, head: EventHeader, cache: TransactionCache) -> Committed | None:
        """End the transaction that is being read. That of a Replicat is left out without GETREPLICATES."""
        if self._by_replicat and not self._rules.replicates:
            self._drop(cache)
            return None
        self._end_rows(cache)
        current, self._current = self._current, None
        if current is None:
            return None
        if current.begin.prepares:
            self._current = current
            self._prepare(current.begin.prepares, cache)
            return None
        return self._committed(current, current.transaction, head, cache)

    def _committed(
        self, current: _Open, content: OpenTransaction, head: EventHeader, cache: TransactionCache
    ) -> Committed:
        """``content``: the transaction with the rows, for an XA transaction the one that was prepared."""
        oldest = cache.oldest()
        restart = min(oldest.begin, current.csn) if oldest is not None else current.csn
        cache.end(current.transaction.xid)
        if content is not current.transaction:
            cache.end(content.xid)
        gtid = self._passed(current.begin)
        xid = gtid or str(Csn(current.csn, CsnForm.LOG))
        self._last = LastRead(current.csn, gtid)
        self._safe = max(self._safe, self._read)
        time = current.begin.commit_time or head.time * _SECOND
        return Committed(TransactionHeader(xid, Csn(current.csn, CsnForm.LOG), time, restart), content)

    def _passed(self, begin: TransactionBegin) -> str:
        """The GTID position after a transaction; for MySQL, its GTID."""
        if not begin.gtid or ":" in begin.gtid:
            return begin.gtid
        self._position[begin.domain] = begin.gtid
        return position_text(self._position, begin.domain)

    def _prepare(self, name: str, cache: TransactionCache) -> None:
        """Keep a prepared XA transaction open."""
        self._end_rows(cache)
        if self._current is not None:
            self._passed(self._current.begin)
            self._prepared[name] = self._current
            self._current = None

    def _complete(self, name: str, kind: StatementKind, head: EventHeader, cache: TransactionCache) -> Committed | None:
        """Commit or roll back a prepared XA transaction."""
        current, self._current = self._current, None
        prepared = self._prepared.pop(name, None)
        if current is None:
            return None
        if kind is StatementKind.XA_COMMIT and prepared is not None:
            return self._committed(current, prepared.transaction, head, cache)
        if kind is StatementKind.XA_COMMIT:
            self._report(
                "GGS-00477", f"XA transaction {name} was prepared before the start position: it is not captured."
            )
        for each in filter(None, (current, prepared)):
            ended = cache.end(each.transaction.xid)
            if ended is not None:
                ended.close()
        self._last = LastRead(current.csn, self._passed(current.begin))
        return None

    def _drop(self, cache: TransactionCache) -> None:
        """Forget the transaction that is being read: it was rolled back."""
        self._cascaded.rest()
        self._pending, self._pending_size = [], 0
        current, self._current = self._current, None
        if current is not None:
            self._last = LastRead(current.csn, self._passed(current.begin))
            ended = cache.end(current.transaction.xid)
            if ended is not None:
                ended.close()


def _statement_refused(word: str) -> CaptureError:
    return CaptureError(
        f"the binary log has a statement ({word}) instead of row events",
        code="GGS-00478",
        hint="SET GLOBAL binlog_format = ROW and end sessions with another format, then ALTER EXTRACT …, BEGIN NOW and load"
        " the tables again",
    )
