"""A log in a list, as a database would write it: interleaved transactions; each commit has its own CSN."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ggshell.pipeline.capture.cache import Committed, OpenTransaction, TransactionCache
from ggshell.pipeline.capture.messages import Messages
from ggshell.pipeline.capture.source import LogState, MessageRun
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.record.transaction import TransactionHeader, TransactionPiece
from ggshell.types import Csn, CsnForm, TableName

TABLE = TableDefinition(TableName("shop", "t"), (Column("c", "text"),), (0,))


class Entry(NamedTuple):
    """One record of the log; ``kind`` is B(egin), C(hange), K (commit), R(ollback), U (undo of the last change)."""

    position: int
    time: int
    kind: str
    xid: int
    csn: int = 0
    content: bytes = b""


def name_of(xid: int) -> str:
    return f"T{xid}"


class PlainDefinitions:
    """Definitions that are plain texts."""

    def dump_definitions(self, definitions: Any) -> bytes:
        return str(definitions).encode()

    def load_definitions(self, data: bytes) -> Any:
        return data.decode()


class LogGoneError(AssertionError):
    """Deleted log was requested."""


class ListSource:
    """Reads a list of entries from a position on."""

    def __init__(self, log: Sequence[Entry], position: int, purged: int = 0, *, step: int = 3) -> None:
        if position < purged:
            raise LogGoneError(f"{position} is asked for, the log begins at {purged}")
        self._log = log
        self._next = next((n for n, entry in enumerate(log) if entry.position >= position), len(log))
        self._start = position
        self._step = step
        self.quiet = False
        self.more = False
        self.time = self.scn = 0
        self.taken: list[Entry] = []

    @property
    def state(self) -> LogState:
        past = self._log[self._next - 1].position + 1 if self._next else 0
        read = max(past, self._start)
        return LogState(read, read, self._log[-1].position + 1 if self._log else 0)

    @property
    def cursor(self) -> tuple[int, int]:
        return (self._log[self._next - 1].position if self._next else -1), 0

    def feed(self, cache: TransactionCache, most: int) -> Sequence[Committed]:
        found: list[Committed] = []
        for _ in range(self._step):
            if self._next >= len(self._log):
                break
            entry = self._log[self._next]
            self._next += 1
            self.taken.append(entry)
            self.time, self.scn = max(self.time, entry.time), entry.csn
            self._take(entry, cache, found)
        self.quiet = self._next >= len(self._log)
        self.more = not self.quiet
        return found

    def _take(self, entry: Entry, cache: TransactionCache, found: list[Committed]) -> None:
        if entry.kind in "BCU":
            if entry.kind == "B":
                cache.begin(entry.xid, entry.position, entry.time)
            transaction = cache.open.get(entry.xid)
            if transaction is None:  # It began before the position where reading started.
                return
            new = not transaction.limited or transaction.wants((entry.position, 0))
            if new and entry.kind == "U":
                transaction.abort(self._marks(transaction)[-1])
            elif new and entry.kind == "C":
                last = transaction.chunks[-1].definitions if transaction.chunks else "one"
                chunk = transaction.chunk(last if entry.position % 5 else f"{last}+", streamed=True, id_offset=0)
                cache.add(transaction, chunk, Messages.pack([entry.content]))
            return
        transaction = cache.end(entry.xid) or OpenTransaction(entry.xid, entry.position, entry.time)
        if entry.kind == "R":
            transaction.close()
            return
        header = TransactionHeader(name_of(entry.xid), Csn(entry.csn, CsnForm.NUMBER), entry.time)
        found.append(Committed(header, transaction))

    def _marks(self, transaction: OpenTransaction) -> list[bytes]:
        return [message[:4] for _, parts in transaction.runs(9) for part in parts for message in part]

    def wait(self, timeout: float) -> bool:
        return False

    def encode(self, runs: Iterable[MessageRun]) -> ChangeBatch | None:
        return encode(runs)

    def confirm(self, position: int) -> None: ...

    def fileno(self) -> int:
        return -1

    def close(self) -> None: ...


def encode(runs: Iterable[MessageRun]) -> ChangeBatch | None:
    """Each message is a row, its bytes are the data."""
    rows: list[bytes] = []
    pieces: list[TransactionPiece] = []
    for run in runs:
        found = [message for part in run.parts for message in part]
        if not found:
            continue
        pieces.append(TransactionPiece(run.header, len(rows), len(found), run.begins, run.ends))
        rows += found
    if not rows:
        return None
    length = np.array([len(row) for row in rows], dtype=np.int64)
    count = len(rows)
    return ChangeBatch(
        tables=(TABLE,),
        table=np.zeros(count, dtype=np.uint16),
        io_type=np.full(count, IoType.INSERT, dtype=np.uint8),
        position=np.zeros(count, dtype=np.uint64),
        buffer=b"".join(rows),
        start=np.cumsum(length) - length,
        length=length,
        rba=np.zeros(count, dtype=np.int64),
        pieces=tuple(pieces),
    )
