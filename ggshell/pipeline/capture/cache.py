"""Open transactions, kept as the source's own bytes until their commit. When memory is low, the largest are spilled.

Nothing is decoded here. A transaction is a list of chunks. A chunk holds messages that share one dictionary of
definitions, so a later change of a table's shape does not change the meaning of rows that were read before. Messages
arrive in parts, as many at once as the source had. The source may encode those of a large transaction while it waits
for more, so that little work is left at the commit.
"""

from __future__ import annotations

import heapq
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from ggshell.errors import DiskError
from ggshell.pipeline.capture.decisions import NO_CURSOR, Action, Cursor, Decision
from ggshell.pipeline.capture.messages import Messages
from ggshell.record.transaction import TransactionHeader

_SIZES = struct.Struct("<QQ")
_PLACE = 8
_OVERHEAD = 300
"""Memory that a part uses in addition to its content, in bytes: objects, and the edges of its messages (``_PLACE``)."""
_SPILL_SHARE = 4
"""Spilling continues until this fraction of the limit is free again."""
RUN_BYTES = 8 << 20
"""Approximate maximum size of a run in bytes, independent of its number of messages."""


class Chunk:
    """Messages under one set of definitions. ``streamed`` messages carry their (sub)transaction's id at offset ``id_offset``.

    ``ready`` messages are already in the source's encoded form. ``count`` messages are in memory. ``spilled`` is the
    number of parts that were written to disk before those in memory.
    """

    __slots__ = ("count", "definitions", "id_offset", "parts", "ready", "spilled", "streamed")

    def __init__(self, definitions: Any, *, streamed: bool, id_offset: int = 0, ready: bool = False) -> None:
        self.definitions = definitions
        self.streamed = streamed
        self.id_offset = id_offset
        self.ready = ready
        self.parts: list[Messages] = []
        self.count = 0
        self.spilled = 0


class OpenTransaction:
    """A transaction that has begun and not ended.

    ``changes`` counts its modifications, so that a caller that saved it can detect whether it is unchanged. Messages up
    to the cursor ``held`` were restored from a file. Messages after ``until`` are not wanted (None: all are). When
    ``limited`` is set, a source calls ``wants`` for each message.
    """

    def __init__(self, xid: int, begin: int, begin_time: int) -> None:
        self.xid = xid
        self.begin = begin
        self.begin_time = begin_time
        self.chunks: list[Chunk] = []
        self.aborted: set[bytes] = set()
        self.count = 0
        self.size = 0
        self.changes = 0
        self.held = NO_CURSOR
        self.until: Cursor | None = None
        self.limited = False
        self._file: IO[bytes] | None = None

    @property
    def ignored(self) -> bool:
        """Whether none of its changes are needed, so that a restart need not read them again."""
        return self.until == NO_CURSOR

    def limit(self, *, held: Cursor | None = None, until: Cursor | None = None) -> None:
        """Accept only messages after ``held``, or only those up to ``until``."""
        self.limited = True
        self.held = self.held if held is None else held
        self.until = self.until if until is None else until

    def wants(self, cursor: Cursor) -> bool:
        """Whether a message at this position is to be added."""
        return cursor > self.held and (self.until is None or cursor <= self.until)

    def chunk(self, definitions: Any, *, streamed: bool, id_offset: int = 0) -> Chunk:
        """The chunk to append to: the last one as long as the definitions and the form are the same."""
        if self.chunks:
            last = self.chunks[-1]
            if last.definitions is definitions and last.streamed == streamed and not last.ready:
                return last
        self.chunks.append(Chunk(definitions, streamed=streamed, id_offset=id_offset))
        return self.chunks[-1]

    def spill(self, folder: Path) -> int:
        """Write the messages in memory to a temporary file. Return the bytes of memory freed. Raises DiskError."""
        try:
            if self._file is None:
                folder.mkdir(parents=True, exist_ok=True)
                self._file = tempfile.TemporaryFile(dir=folder, prefix="spill-")  # noqa: SIM115 - lives as long as self
            self._file.seek(0, 2)  # it may have been read meanwhile
            for chunk in self.chunks:
                for part in chunk.parts:
                    self._file.write(_SIZES.pack(len(part.data), len(part.edges)))
                    self._file.write(part.data)
                    self._file.write(part.edges.tobytes())
                chunk.spilled += len(chunk.parts)
                chunk.parts.clear()
                chunk.count = 0
            self._file.flush()
        except OSError as error:
            raise DiskError(
                f"cannot spill transaction {self.xid} to {folder}: {error.strerror}",
                hint="free space, or raise CACHESIZE",
            ) from error
        # The next message begins a new chunk: chunks in the file precede those in memory.
        self.chunks = [chunk for chunk in self.chunks if chunk.spilled]
        last = self.chunks[-1]
        self.chunks.append(Chunk(last.definitions, streamed=last.streamed, id_offset=last.id_offset))
        freed, self.size = self.size, 0
        return freed

    def make_ready(self, make: Callable[[Chunk], Messages]) -> int:
        """Encode the newest messages in advance. Return the number of bytes by which the transaction grows."""
        raw = self.chunks[-1]
        ready = Chunk(raw.definitions, streamed=raw.streamed, ready=True)
        ready.parts.append(make(raw))
        grown = _memory(ready.parts) - _memory(raw.parts)
        raw.parts, raw.count = [], 0
        if not raw.spilled:
            self.chunks.pop()
        self.chunks.append(ready)
        self.size += grown
        return grown

    def runs(self, most: int, *, whole: bool = False) -> Iterator[tuple[Chunk, list[Messages]]]:
        """The messages in order, in runs of about ``most``. Aborted ones are left out unless ``whole`` is set."""
        if self._file is not None:
            self._file.seek(0)
        for chunk in self.chunks:
            run: list[Messages] = []
            count = size = 0
            for part in self._parts(chunk, whole=whole):
                if not len(part):  # the last run must contain the row that ends the transaction
                    continue
                if run and (count + len(part) > most or size + len(part.data) > RUN_BYTES):
                    yield chunk, run
                    run, count, size = [], 0, 0
                run.append(part)
                count += len(part)
                size += len(part.data)
            if run:
                yield chunk, run

    def _parts(self, chunk: Chunk, *, whole: bool) -> Iterator[Messages]:
        filtered = self.aborted and chunk.streamed and not whole
        for number in range(chunk.spilled + len(chunk.parts)):
            part = self._read() if number < chunk.spilled else chunk.parts[number - chunk.spilled]
            yield part.without(self.aborted, chunk.id_offset) if filtered else part

    def abort(self, message_id: bytes) -> None:
        """Discard messages with this id: their subtransaction was rolled back, or they were undone."""
        self.aborted.add(message_id)
        self.changes += 1

    def _read(self) -> Messages:
        """Read the next part at the file's current position."""
        if self._file is None:
            raise ValueError(f"transaction {self.xid} has no file")
        size, edges = _SIZES.unpack(self._file.read(_SIZES.size))
        return Messages(self._file.read(size), np.frombuffer(self._file.read(8 * edges), dtype=np.int64))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def move(self) -> OpenTransaction:
        """Move everything to a new transaction. This one is empty afterwards and accepts nothing more."""
        taken = OpenTransaction(self.xid, self.begin, self.begin_time)
        taken.chunks, self.chunks = self.chunks, []
        taken.count, taken.size, taken.aborted = self.count, self.size, self.aborted
        taken._file, self._file = self._file, None
        self.count = self.size = 0
        self.limit(until=NO_CURSOR)
        self.changes += 1
        return taken


def _memory(parts: list[Messages]) -> int:
    """The bytes of memory that parts use."""
    return sum(len(part.data) + len(part) * _PLACE + _OVERHEAD for part in parts)


class Committed:
    """A transaction at its commit: its header and its messages."""

    __slots__ = ("header", "transaction")

    def __init__(self, header: TransactionHeader, transaction: OpenTransaction) -> None:
        self.header = header
        self.transaction = transaction


class TransactionCache:
    """All open transactions of a source. Beyond ``limit`` bytes of memory (CACHESIZE), the largest are spilled."""

    def __init__(self, limit: int, folder: Path) -> None:
        self._limit = limit
        self._folder = folder
        self._used = 0
        self.open: dict[int, OpenTransaction] = {}
        self.decided: dict[int, Decision] = {}
        self._ended: set[int] = set()
        self._taken: set[int] = set()
        self._kept: dict[int, OpenTransaction] = {}
        self._begins: list[tuple[int, int]] = []
        self.spills = 0
        self._begun = self._most_open = self._spilled = self._most_used = 0

    def begin(self, xid: int, position: int, time: int) -> OpenTransaction:
        """The open transaction with an id, created if it is new."""
        transaction = self.open.get(xid)
        if transaction is None:
            transaction = self.open[xid] = OpenTransaction(xid, position, time)
            heapq.heappush(self._begins, (position, xid))
            self._begun += 1
            self._most_open = max(self._most_open, len(self.open))
            if xid in self.decided:
                transaction.limit(until=self.decided[xid].wanted)
        return transaction

    def add(self, transaction: OpenTransaction, chunk: Chunk, part: Messages) -> None:
        """Append messages to a transaction's chunk, and spill the largest transactions when the limit is exceeded."""
        transaction.changes += 1
        chunk.parts.append(part)
        chunk.count += len(part)
        transaction.count += len(part)
        grown = _memory([part])
        transaction.size += grown
        self._used += grown
        self._keep_within()

    def make_ready(self, transaction: OpenTransaction, make: Callable[[Chunk], Messages]) -> None:
        """Have the source encode a transaction's newest messages in advance."""
        self._used += transaction.make_ready(make)
        self._keep_within()

    def _keep_within(self) -> None:
        """When the limit is exceeded, spill the largest transactions, and a share more than necessary.

        With the extra share, transactions are searched rarely, however many are open.
        """
        self._most_used = max(self._most_used, self._used)
        if self._used <= self._limit:
            return
        enough = self._limit - self._limit // _SPILL_SHARE
        for largest in sorted(self.open.values(), key=lambda item: item.size, reverse=True):
            if self._used <= enough or largest.size == 0:
                return
            freed = largest.spill(self._folder)
            self._used -= freed
            self._spilled += freed
            self.spills += 1

    def end(self, xid: int) -> OpenTransaction | None:
        """Remove a transaction that committed or rolled back. Call this for every end, even of an unknown id."""
        if xid in self.decided:
            self._ended.add(xid)
        transaction = self.open.pop(xid, None)
        if transaction is None:
            return None
        self._used -= transaction.size
        if (
            transaction.until is not None and not transaction.ignored
        ):  # forced, and not written yet: its content is wanted, its end is not
            self._kept[xid] = transaction.move()
        return transaction

    def decide(self, decision: Decision) -> None:
        """Apply a decision to a transaction that is open now or appears later."""
        self.decided[decision.xid] = decision
        transaction = self.open.get(decision.xid)
        if transaction is None:
            return
        if decision.action is Action.SKIP or decision.done:
            self._used -= transaction.size
            transaction.move().close()
        else:
            transaction.limit(until=decision.until)
            heapq.heappush(self._begins, (transaction.begin, transaction.xid))

    def undone(self) -> list[Decision]:
        """Transactions still to be forced, oldest decision first."""
        return [item for item in self.decided.values() if item.action is Action.FORCE and not item.done]

    def take_forced(self, decision: Decision) -> OpenTransaction | None:
        """Take the content of a transaction to be forced. None when it holds nothing because it was written before."""
        self.decided[decision.xid] = decision._replace(done=True)
        self._taken.add(decision.xid)
        kept = self._kept.pop(decision.xid, None)
        transaction = self.open.get(decision.xid)
        if kept is None and transaction is not None and not transaction.ignored:
            self._used -= transaction.size
            return transaction.move()
        return kept

    def decisions(self, read: int, restart: int, *, handed_out: bool) -> list[Decision]:
        """The decisions that still count, in the form to save. Transactions that ended get an end position of ``read``.

        ``handed_out`` means that everything taken out is durable in the trail; until then a forced transaction is not
        done. A decision is forgotten when its transaction ended before every position at which a restart may begin
        (``restart``).
        """
        for xid in self._ended:
            self.decided[xid] = self.decided[xid]._replace(ended=read)
        self._ended.clear()
        if handed_out:
            self._taken.clear()
        found = [item._replace(done=False) if item.xid in self._taken else item for item in self.decided.values()]
        gone = [item.xid for item in found if 0 < item.ended < restart and item.wanted == NO_CURSOR]
        for xid in gone:
            del self.decided[xid]
        return [item for item in found if item.xid in self.decided]

    def unfinished(self) -> list[OpenTransaction]:
        """Everything that a restart would have to read again."""
        return [item for item in self.open.values() if not item.ignored] + list(self._kept.values())

    def oldest(self) -> OpenTransaction | None:
        """The unfinished transaction that began first. Called at every commit, so it must be fast."""
        while self._begins:
            begin, xid = self._begins[0]
            for item in (self.open.get(xid), self._kept.get(xid)):
                if item is not None and item.begin == begin and not item.ignored:
                    return item
            heapq.heappop(self._begins)  # it has ended, or is no longer wanted
        return None

    def facts(self) -> dict[str, int]:
        """The facts that CACHEMGR CACHESTATS reports; sizes in bytes."""
        return {
            "limit": self._limit,
            "used": self._used,
            "most_used": self._most_used,
            "open": len(self.open),
            "with_data": sum(1 for item in self.open.values() if item.count),
            "most_open": self._most_open,
            "begun": self._begun,
            "spills": self.spills,
            "spilled": self._spilled,
            "in_files": sum(1 for item in self.open.values() if any(chunk.spilled for chunk in item.chunks)),
        }

    def clear(self) -> None:
        """Forget everything: the connection was lost, and the source will send it again."""
        for transaction in (*self.open.values(), *self._kept.values()):
            transaction.close()
        self.open.clear()
        self._kept.clear()
        self._begins.clear()
        self._used = 0
