"""Oracle redo as a LogSource: reads rows of interleaved transactions and returns committed ones in order of commit SCN.

It relies on these facts. Rows are in SCN order; a row that is not ends capture. A transaction whose START row was not
read began before the position where capture begins, and is not captured. A restart reads again from the SCN at which the
oldest open transaction began. What the trail already contains is recognized by commit SCN and transaction id, as several
transactions may commit at the same SCN. What committed before an unreadable row is handed out first.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ggshell.connectors.oracle_redo.definitions import Definitions, folded, table_name
from ggshell.connectors.oracle_redo.encode import Encoder
from ggshell.connectors.oracle_redo.folder import RowSource, Waiting
from ggshell.connectors.oracle_redo.messages import ID_OFFSET, message_id, pack_row, unpack_row
from ggshell.connectors.oracle_redo.rows import LOB_PIECES, Operation, RedoRow, format_xid
from ggshell.errors import CaptureError
from ggshell.pipeline.capture.cache import Committed, OpenTransaction, TransactionCache
from ggshell.pipeline.capture.decisions import NO_CURSOR
from ggshell.pipeline.capture.messages import Messages
from ggshell.pipeline.capture.source import LogState, MessageRun
from ggshell.record.change import ChangeBatch
from ggshell.record.transaction import TransactionHeader
from ggshell.types import Csn, CsnForm, LogPosition, TableName

_CHANGES = frozenset({Operation.INSERT, Operation.UPDATE, Operation.DELETE, Operation.DDL})
_SILENT = frozenset({Operation.INTERNAL, Operation.SELECT_FOR_UPDATE})
UNKNOWN = "UNKNOWN"
"""The owner of objects that LogMiner's dictionary does not have, or not in the version of that time."""
NEVER = 1 << 62
_SHAPES = object()
"""Rows are self-contained, so all chunks share one set of definitions."""


class NoDefinitions:
    """Saves no definitions with a persisted transaction, because rows are self-contained."""

    def dump_definitions(self, definitions: Any) -> bytes:
        return b""

    def load_definitions(self, data: bytes) -> Any:
        return _SHAPES


Report = Callable[[str, str], None]
"""Receives a code and a text for the report: what could not be captured."""


class RedoLog:
    """One pass through the redo."""

    def __init__(
        self,
        rows: RowSource,
        start: LogPosition,
        wanted: Callable[[TableName], bool],
        definitions: Definitions,
        report: Report,
        *,
        abends: bool = False,
    ) -> None:
        """``abends``: a row whose SQL cannot be read ends capture (TRANLOGOPTIONS UNREADABLEREDO ABEND)."""
        self._rows = rows
        self._names: dict[tuple[str, str], bool] = {}
        self._wanted = wanted
        self._report = report
        self._encoder = Encoder(definitions, self._problem, abends=abends)
        self._read = self._safe = start.csn
        self._ordinal = -1
        self._known_to = NO_CURSOR
        self._at: RedoRow | None = None
        self._start = start
        self._safe_at = start
        self._buffer: list[RedoRow] = []
        self._next = 0
        self._failure: CaptureError | None = None
        self._lob_tables: dict[int, tuple[str, str]] = {}
        self._pending: dict[int, list[bytes]] = {}
        self._stacks: dict[int, UndoStack] = {}
        self._begins: dict[int, LogPosition] = {}
        self._orphaned: set[int] = set()
        self.problems: Counter[tuple[str, str]] = Counter()
        self.time = self.first_time = 0
        self.pause_time = NEVER
        self.quiet = False

    @property
    def state(self) -> LogState:
        """``safe`` is where a restart must read from: what precedes it is in the trail once what was handed out is."""
        return LogState(self._read, self._safe, self._read)

    @property
    def more(self) -> bool:
        return self._next < len(self._buffer)

    @property
    def cursor(self) -> tuple[int, int]:
        """The last row taken: its SCN, and its number among the rows of that SCN. Both are the same at each reading."""
        return self._read, self._ordinal

    def resume(self, xid: int, begin: LogPosition) -> None:
        """Record where a transaction that was restored into the cache began, which is before reading begins."""
        self._begins[xid] = begin
        if begin.csn < self._safe:  # a restart must find it as well, even if nothing has been read yet
            self._safe, self._safe_at = begin.csn, begin

    def expect_orphaned_rows(self, cursor: tuple[int, int]) -> None:
        """Expect rows, up to a cursor, of transactions that are not wanted again because they ended before it."""
        self._known_to = cursor

    @property
    def waiting(self) -> Waiting | None:
        """Rows that wait for another thread; None if no rows wait."""
        return self._rows.waiting

    @property
    def bytes_read(self) -> int:
        """Bytes of log that were read since it was opened."""
        return self._rows.bytes_read

    def position(self, scn: int) -> LogPosition:
        """The position of ``state.read``, of ``state.safe``, or of the begin of an open transaction."""
        for place in (self._safe_at, self._place(), *self._begins.values()):
            if place.csn == scn:
                return place
        return LogPosition(0, 0, scn)

    def _place(self) -> LogPosition:
        """How far reading has come: the first row of the current SCN."""
        row = self._at
        if row is None:
            return self._start
        return LogPosition(row.segment, row.place & 0xFFFFFFFF, self._read, row.thread)

    def begin_of(self, transaction: OpenTransaction) -> LogPosition:
        """Where an open transaction began."""
        return self._begins.get(transaction.xid, LogPosition(0, 0, transaction.begin))

    def fileno(self) -> int:
        return self._rows.fileno()

    def wait(self, timeout: float) -> bool:
        return self.more or self._rows.wait(timeout)

    def confirm(self, position: int) -> None:
        """Do nothing: no one keeps the log for the Extract."""

    def close(self) -> None:
        self._rows.close()

    def encode(self, runs: Iterable[MessageRun]) -> ChangeBatch | None:
        return self._encoder.encode(runs)

    def feed(self, cache: TransactionCache, most: int) -> Sequence[Committed]:
        """Take rows, up to about ``most``.

        Raises CaptureError where continuing would lose changes, after handing out everything that committed before.
        """
        if self._failure is not None:
            raise self._failure
        committed: list[Committed] = []
        taken = 0
        self.quiet = False
        try:
            while taken < most:
                if self._next >= len(self._buffer):
                    self._buffer, self._next = self._rows.take(), 0
                    if not self._buffer:
                        self.quiet = True
                        break
                row = self._buffer[self._next]
                self._next += 1
                taken += 1
                self._take(row, cache, committed)
                if row.time >= self.pause_time or (committed and committed[-1].transaction.count > most):
                    break
        except CaptureError as error:
            if not committed:
                raise
            self._failure = error
        finally:
            for xid in list(self._pending):
                self._flush(xid, cache)
        self._note_safe(cache)
        return committed

    def _take(self, row: RedoRow, cache: TransactionCache, committed: list[Committed]) -> None:
        if row.scn < self._read:
            raise CaptureError(
                f"thread {row.thread} has rows from SCN {row.scn} on, but reading has reached SCN {self._read}: a START skips"
                " what committed at lower SCNs",
                code="GGS-00542",
                hint="export the rows of all threads in the order of their SCNs. To capture these, ALTER EXTRACT …,"
                f" SCN {row.scn}, with a new trail",
            )
        self._ordinal += 1
        if row.scn > self._read or self._at is None:
            if row.scn > self._read:
                self._ordinal, self._read = 0, row.scn
            self._at = row
        self.time = row.time or self.time
        self.first_time = self.first_time or self.time
        operation = row.operation
        if operation in _CHANGES:
            self._change(row, cache)
        elif operation in LOB_PIECES:
            self._change(self._with_table(row, cache), cache)
        elif operation == Operation.START:
            self._begin(row, cache)
        elif operation == Operation.COMMIT:
            self._commit(row, cache, committed)
        elif operation == Operation.ROLLBACK:
            self._end(row.xid, cache, drop=True)
        elif operation == Operation.MISSING_SCN:
            raise CaptureError(
                f"the exported log has a gap at SCN {row.scn} (MISSING_SCN)",
                code="GGS-00527",
                hint="export the segment again with all log files",
            )
        elif operation not in _SILENT and row.table and self._is_wanted(row):
            name = Operation(operation).name if operation in Operation._value2member_map_ else str(operation)
            self._problem(row.owner, row.table, f"operation {name} is not supported")

    def _begin(self, row: RedoRow, cache: TransactionCache) -> None:
        cache.begin(row.xid, row.scn, row.time)
        if row.xid not in self._begins:
            self._begins[row.xid] = LogPosition(row.segment, row.place & 0xFFFFFFFF, row.scn, row.thread)

    def _change(self, row: RedoRow, cache: TransactionCache) -> None:
        transaction = cache.open.get(row.xid)
        if not self._is_wanted(row):
            if row.owner == UNKNOWN:
                self._problem(row.owner, row.table, "the table is not in LogMiner's dictionary")
            return
        if transaction is None:
            if row.xid not in cache.decided and self.cursor > self._known_to:
                self._orphaned_row(row)
            return
        if transaction.limited and not transaction.wants(self.cursor):
            return
        pending = self._pending.setdefault(row.xid, [])
        if row.rollback:
            self._take_back(row, transaction, cache)
            return
        number = transaction.count + len(pending)
        pending.append(pack_row(row, number))
        stack = self._stacks.get(row.xid)
        if stack is not None:
            stack.push(row, number)

    def _with_table(self, row: RedoRow, cache: TransactionCache) -> RedoRow:
        """Complete a LOB piece. Without a table name, it belongs to the table of the transaction's previous piece."""
        if row.table:
            self._lob_tables[row.xid] = row.owner, row.table
            return row
        transaction = cache.open.get(row.xid)
        if row.xid not in self._lob_tables and transaction is not None:  # a recovery has restored the previous piece
            self._lob_tables[row.xid] = _table_of_last_piece(transaction)
        owner, table = self._lob_tables.get(row.xid, ("", ""))
        if not table and transaction is not None:
            name = Operation(row.operation).name
            self._problem("", "", f"operation {name} does not name its table, and follows no piece of a captured one")
        return row._replace(owner=owner, table=table)

    def _take_back(self, row: RedoRow, transaction: OpenTransaction, cache: TransactionCache) -> None:
        stack = self._stacks.get(row.xid)
        if stack is None:
            self._flush(row.xid, cache)
            stack = self._stacks[row.xid] = UndoStack(transaction)
        ids = stack.take_back(row)
        if not ids and row.operation not in LOB_PIECES:
            raise CaptureError(
                f"transaction {format_xid(row.xid)} rolls back a change to {table_name(row.owner, row.table)} at SCN {row.scn}"
                " that was not read",
                code="GGS-00528",
                hint="export the complete log in the order of the view",
            )
        for each in ids:
            transaction.abort(each)

    def _flush(self, xid: int, cache: TransactionCache) -> None:
        """Add a transaction's pending rows to the cache."""
        messages = self._pending.pop(xid, None)
        if messages:
            transaction = cache.open[xid]
            cache.add(
                transaction, transaction.chunk(_SHAPES, streamed=True, id_offset=ID_OFFSET), Messages.pack(messages)
            )

    def _commit(self, row: RedoRow, cache: TransactionCache, committed: list[Committed]) -> None:
        # Open transactions are in the order in which they began.
        oldest = next(iter(cache.open.values()), None)
        restart = min(oldest.begin, row.scn) if oldest is not None else row.scn
        transaction = self._end(row.xid, cache, drop=False)
        if transaction is None:
            self._committed_orphan(row, cache)
            return
        header = TransactionHeader(format_xid(row.xid), Csn(row.scn, CsnForm.NUMBER), row.time, restart)
        committed.append(Committed(header, transaction))

    def _end(self, xid: int, cache: TransactionCache, *, drop: bool) -> OpenTransaction | None:
        """Remove a transaction from the cache, and ``drop`` or return it."""
        if drop:
            self._pending.pop(xid, None)
        else:
            self._flush(xid, cache)
        self._stacks.pop(xid, None)
        self._begins.pop(xid, None)
        self._lob_tables.pop(xid, None)
        transaction = cache.end(xid)
        if transaction is not None and drop:
            transaction.close()
            return None
        return transaction

    def _note_safe(self, cache: TransactionCache) -> None:
        """A restart reads from the begin of the oldest open transaction or, without one, from the current position."""
        oldest = cache.oldest()
        place = self._place()
        if oldest is not None and oldest.begin <= self._read:
            self._safe, place = oldest.begin, self.begin_of(oldest)
        else:
            self._safe = self._read
        self._safe_at = place if place.csn == self._safe else LogPosition(0, 0, self._safe)

    def _is_wanted(self, row: RedoRow) -> bool:
        key = row.owner, row.table
        known = self._names.get(key)
        if known is None:
            known = self._names[key] = bool(row.table) and self._wanted(table_name(*key))
        return known

    def _orphaned_row(self, row: RedoRow) -> None:
        """Report a change of a transaction that began before capture, once per transaction."""
        if row.xid not in self._orphaned:
            self._orphaned.add(row.xid)
            self.problems[("", "began before capture")] += 1
            self._report(
                "GGS-00530",
                f"Transaction {format_xid(row.xid)} began before the start position of capture: it is not captured.",
            )

    def _committed_orphan(self, row: RedoRow, cache: TransactionCache) -> None:
        """Report the commit of a transaction of which nothing else was read, unless it was reported before."""
        if row.xid in self._orphaned:
            self._orphaned.discard(row.xid)
        elif row.xid not in cache.decided and self.cursor > self._known_to:
            self.problems[("", "began before capture")] += 1
            self._report(
                "GGS-00530",
                f"Transaction {format_xid(row.xid)} committed at SCN {row.scn} but began before the start position of capture:"
                " its changes are not captured.",
            )

    def _problem(self, owner: str, table: str, reason: str, detail: str = "") -> None:
        """Count what is not captured, and report it once per table and reason."""
        key = (f"{folded(owner)}.{folded(table)}", reason)
        self.problems[key] += 1
        if self.problems[key] == 1:
            text = f"{key[0]}: {reason}{detail}. Such rows are counted, but not captured."
            self._report("GGS-00531", text)


# Which row of its transaction a ROLLBACK row undoes.
#
# The server undoes a statement, or the changes after a savepoint, from the last change to the first. It logs each one
# as the opposite change of the same row with ROLLBACK = 1. Therefore the undone row is the last remaining one with
# the same table and address and the opposite operation.


_OPPOSITE = {
    Operation.INSERT: Operation.DELETE,
    Operation.DELETE: Operation.INSERT,
    Operation.UPDATE: Operation.UPDATE,
}
_RUN = 10_000


def _table_of_last_piece(transaction: OpenTransaction) -> tuple[str, str]:
    """Owner and name of the table of a transaction's last LOB piece; empty without one."""
    found = "", ""
    for _, parts in transaction.runs(_RUN):
        for message in itertools.chain.from_iterable(parts):
            row = unpack_row(message)
            if row.operation in LOB_PIECES:
                found = row.owner, row.table
    return found


class _Alive(NamedTuple):
    number: int
    operation: int
    owner: str
    table: str
    row_id: str


class UndoStack:
    """The remaining rows of one transaction, in order. Created when its first ROLLBACK row arrives."""

    def __init__(self, transaction: OpenTransaction) -> None:
        self._alive: list[_Alive] = []
        for _, parts in transaction.runs(_RUN):
            for part in parts:
                for message in part:
                    row = unpack_row(message)
                    self._alive.append(_Alive(row.number, row.operation, row.owner, row.table, row.row_id))

    def push(self, row: RedoRow, number: int) -> None:
        """Add a row that arrived after the stack was created."""
        self._alive.append(_Alive(number, row.operation, row.owner, row.table, row.row_id))

    def take_back(self, row: RedoRow) -> list[bytes]:
        """The ids of what a ROLLBACK row undoes: the row and the LOB pieces after it. Empty if there is none.

        Pieces that came after a row are undone before it, and the log has no rows for that.
        """
        wanted = _OPPOSITE.get(Operation(row.operation), row.operation)
        for at in range(len(self._alive) - 1, -1, -1):
            found = self._alive[at]
            if (
                found.operation == wanted
                and (found.owner, found.table) == (row.owner, row.table)
                and (wanted in LOB_PIECES or not row.row_id or not found.row_id or found.row_id == row.row_id)
            ):
                gone = [found, *(item for item in self._alive[at + 1 :] if item.operation in LOB_PIECES)]
                self._alive[at:] = [item for item in self._alive[at + 1 :] if item.operation not in LOB_PIECES]
                return [message_id(item.number) for item in gone]
        return []
