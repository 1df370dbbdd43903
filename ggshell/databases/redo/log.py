"""Oracle redo as a LogSource: rows of interleaved transactions in, committed ones out in the order of their commit SCN.

What this rests on: rows come in the order of their SCN; a transaction whose START row was not read began before the place where
capture begins, and is not captured; a restart reads again from the SCN at which the oldest open transaction began, and what the
trail holds is recognised by its commit SCN.  Two transactions may commit at one SCN (they become visible together): they go
into the trail as one, so that a CSN says without doubt what the trail holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ggshell.capture.cache import Chunk, Committed, OpenTransaction, TransactionCache
from ggshell.capture.decisions import NOWHERE
from ggshell.capture.messages import Messages
from ggshell.capture.source import LogState, MessageRun
from ggshell.databases.redo.definitions import Definitions
from ggshell.databases.redo.encode import Encoder
from ggshell.databases.redo.folder import RowSource
from ggshell.databases.redo.messages import MARK, pack_row
from ggshell.databases.redo.names import folded, table_name
from ggshell.databases.redo.rows import Operation, RedoRow, format_xid
from ggshell.databases.redo.undo import UndoStack
from ggshell.errors import CaptureError
from ggshell.record.change import ChangeBatch
from ggshell.record.transaction import TransactionHeader
from ggshell.types import Csn, LogPosition, TableName

_CHANGES = frozenset({Operation.INSERT, Operation.UPDATE, Operation.DELETE, Operation.DDL})
_SILENT = frozenset({Operation.INTERNAL, Operation.SELECT_LOB_LOCATOR, Operation.SELECT_FOR_UPDATE})
UNKNOWN = "UNKNOWN"
"""The owner of what LogMiner's dictionary does not know, or not in the form that it had then."""
NEVER = 1 << 62
_SHAPES = object()
"""Rows are self-contained: one and the same set of definitions for all chunks."""


class RowDefinitions:
    """Rows explain themselves: there is nothing to keep beside those of a persisted transaction."""

    def dump_definitions(self, definitions: Any) -> bytes:
        return b""

    def load_definitions(self, data: bytes) -> Any:
        return _SHAPES


Report = Callable[[str, str], None]
"""Takes a code and a text for the report: what could not be captured."""


class RedoLog:
    """One reading of redo."""

    def __init__(
        self,
        rows: RowSource,
        start: LogPosition,
        wanted: Callable[[TableName], bool],
        definitions: Definitions,
        report: Report,
    ) -> None:
        self._rows = rows
        self._names: dict[tuple[str, str], bool] = {}
        self._wanted = wanted
        self._report = report
        self._encoder = Encoder(definitions, self._problem)
        self._read = self._safe = start.csn
        self._ordinal = -1
        self._known_to = NOWHERE
        self._at: RedoRow | None = None
        self._start = start
        self._safe_at = start
        self._buffer: list[RedoRow] = []
        self._next = 0
        self._held: Committed | None = None
        self._given = 0
        self._pending: dict[int, list[bytes]] = {}
        self._stacks: dict[int, UndoStack] = {}
        self._begins: dict[int, LogPosition] = {}
        self._strangers: set[int] = set()
        self.problems: Counter[tuple[str, str]] = Counter()
        self.time = self.first_time = 0
        self.pause_time = NEVER
        self.quiet = False

    @property
    def state(self) -> LogState:
        """``safe``: where a restart must read from; everything before it is in the trail once what was handed out is."""
        return LogState(self._read, self._safe, self._read)

    @property
    def more(self) -> bool:
        return self._next < len(self._buffer) or self._held is not None

    @property
    def cursor(self) -> tuple[int, int]:
        """The last row taken: its SCN, and its number among the rows of that SCN; the same at each reading."""
        return self._read, self._ordinal

    def resume(self, xid: int, begin: LogPosition) -> None:
        """A transaction was put into the cache that began before where reading begins."""
        self._begins[xid] = begin
        if begin.csn < self._safe:  # a restart must go on to find it: before anything is read, too
            self._safe, self._safe_at = begin.csn, begin

    def expect_strangers(self, cursor: tuple[int, int]) -> None:
        """Up to a cursor there are rows of transactions that are not wanted again: they ended before it."""
        self._known_to = cursor

    @property
    def waiting(self) -> tuple[OpenTransaction, ...]:
        """What has committed and was not given, since others of its SCN may follow."""
        return (self._held.transaction,) if self._held is not None else ()

    @property
    def bytes_read(self) -> int:
        """Bytes of log that were read since it was opened."""
        return self._rows.bytes_read

    def position(self, scn: int) -> LogPosition:
        """The place of ``state.read``, ``state.safe``, or the begin of an open transaction."""
        for place in (self._safe_at, self._place(), *self._begins.values()):
            if place.csn == scn:
                return place
        return LogPosition(0, 0, scn)

    def _place(self) -> LogPosition:
        """Where reading stands: the first row of the present SCN."""
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
        """Nobody keeps the log for us."""

    def close(self) -> None:
        self._rows.close()

    def encode(self, runs: Iterable[MessageRun]) -> ChangeBatch | None:
        return self._encoder.encode(runs)

    def feed(self, cache: TransactionCache, most: int) -> Sequence[Committed]:
        """Take rows, up to about ``most``.  Raises CaptureError where going on would lose changes."""
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
        finally:
            for xid in list(self._pending):
                self._flush(xid, cache)
        if self.quiet:
            self._release(committed)
        self._note_safe(cache)
        return committed

    def _take(self, row: RedoRow, cache: TransactionCache, committed: list[Committed]) -> None:
        self._ordinal += 1
        if row.scn > self._read or self._at is None:
            if row.scn > self._read:
                self._ordinal, self._read = 0, row.scn
            self._at = row
            if self._held is not None and self._held.header.csn.value < self._read:
                self._release(committed)
        self.time = row.time or self.time
        self.first_time = self.first_time or self.time
        operation = row.operation
        if operation in _CHANGES:
            self._change(row, cache)
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
                self._problem(row.owner, row.table, "LogMiner's dictionary did not know the table")
            return
        if transaction is None:
            if row.xid not in cache.decided and self.cursor > self._known_to:
                self._stranger(row)
            return
        if transaction.limited and not transaction.wants(self.cursor):
            return
        pending = self._pending.setdefault(row.xid, [])
        if row.rollback:
            self._take_back(row, transaction, cache)
            return
        mark = transaction.count + len(pending)
        pending.append(pack_row(row, mark))
        stack = self._stacks.get(row.xid)
        if stack is not None:
            stack.push(row, mark)

    def _take_back(self, row: RedoRow, transaction: OpenTransaction, cache: TransactionCache) -> None:
        stack = self._stacks.get(row.xid)
        if stack is None:
            self._flush(row.xid, cache)
            stack = self._stacks[row.xid] = UndoStack(transaction)
        mark = stack.take_back(row)
        if mark is None:
            raise CaptureError(
                f"transaction {format_xid(row.xid)} takes back a change of {table_name(row.owner, row.table)} at SCN {row.scn}"
                " that was not read",
                code="GGS-00528",
                hint="export the log whole and in the order of the view",
            )
        transaction.abort(mark)

    def _flush(self, xid: int, cache: TransactionCache) -> None:
        """Hand a transaction's rows on to the cache."""
        messages = self._pending.pop(xid, None)
        if messages:
            transaction = cache.open[xid]
            cache.add(transaction, transaction.chunk(_SHAPES, streamed=True, mark=MARK), Messages.pack(messages))

    def _commit(self, row: RedoRow, cache: TransactionCache, committed: list[Committed]) -> None:
        # They stand there in the order in which they began.
        oldest = next(iter(cache.open.values()), None)
        restart = min(oldest.begin, row.scn) if oldest is not None else row.scn
        transaction = self._end(row.xid, cache, drop=False)
        if transaction is None:
            return
        header = TransactionHeader(format_xid(row.xid), Csn(row.scn, False), row.time, restart)
        item = Committed(header, transaction)
        if self._held is not None:  # the same SCN: an earlier one was released before
            header = header._replace(restart=min(restart, self._held.header.restart))
            item = Committed(header, Together(self._held.transaction, transaction))
        elif row.scn <= self._given:
            self._report(
                "GGS-00529",
                f"Transaction {header.xid} came after others of its commit SCN {row.scn} had been written: append all rows"
                " of an SCN at once.",
            )
        self._held = item

    def _release(self, committed: list[Committed]) -> None:
        """The held transaction is the last of its SCN."""
        if self._held is not None:
            committed.append(self._held)
            self._given, self._held = self._held.header.csn.value, None

    def _end(self, xid: int, cache: TransactionCache, *, drop: bool) -> OpenTransaction | None:
        """Take a transaction out of the cache; ``drop`` it, or give it."""
        if drop:
            self._pending.pop(xid, None)
        else:
            self._flush(xid, cache)
        self._stacks.pop(xid, None)
        self._begins.pop(xid, None)
        self._strangers.discard(xid)
        transaction = cache.end(xid)
        if transaction is not None and drop:
            transaction.close()
            return None
        return transaction

    def _note_safe(self, cache: TransactionCache) -> None:
        """A restart reads from the begin of the oldest transaction that is open, or held, or from where reading stands."""
        waiting = [self._held.transaction] if self._held is not None else []
        oldest = cache.oldest()
        begins = [item.begin for item in (*waiting, oldest) if item is not None]
        place = self._place()
        if begins and min(begins) <= self._read:
            self._safe = min(begins)
            place = self.begin_of(oldest) if oldest is not None else LogPosition(0, 0, self._safe)
        else:
            self._safe = self._read
        self._safe_at = place if place.csn == self._safe else LogPosition(0, 0, self._safe)

    def _is_wanted(self, row: RedoRow) -> bool:
        key = row.owner, row.table
        known = self._names.get(key)
        if known is None:
            known = self._names[key] = bool(row.table) and self._wanted(table_name(*key))
        return known

    def _stranger(self, row: RedoRow) -> None:
        """A change of a transaction that began before capture: told once for each."""
        if row.xid not in self._strangers:
            self._strangers.add(row.xid)
            self.problems[("", "began before capture")] += 1
            self._report(
                "GGS-00530",
                f"Transaction {format_xid(row.xid)} began before the place where capture began: it is not captured.",
            )

    def _problem(self, owner: str, table: str, reason: str) -> None:
        """What is not captured is told once for each table and reason, and counted."""
        key = (f"{folded(owner)}.{folded(table)}", reason)
        self.problems[key] += 1
        if self.problems[key] == 1:
            self._report("GGS-00531", f"{key[0]}: {reason}. Rows of this kind are counted, and not captured.")


class Together(OpenTransaction):
    """Transactions of one commit SCN as one: their rows one behind the other."""

    def __init__(self, first: OpenTransaction, second: OpenTransaction) -> None:
        super().__init__(second.xid, min(first.begin, second.begin), min(first.begin_time, second.begin_time))
        self._both = (first, second)
        self.count = first.count + second.count

    def runs(self, most: int, *, whole: bool = False) -> Iterator[tuple[Chunk, list[Messages]]]:
        for part in self._both:
            yield from part.runs(most, whole=whole)

    def close(self) -> None:
        for part in self._both:
            part.close()
