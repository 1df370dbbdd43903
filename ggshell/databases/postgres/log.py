"""PostgreSQL's log as a LogSource: logical replication of pgoutput through libpq's COPY BOTH.

The facts of the protocol that this code rests on: a commit's CSN is the LSN behind its record, and the next transaction
may begin at that very LSN; a transaction that was being streamed when the connection broke may come whole, or be streamed
again, afterwards; the server sends again whatever was not confirmed.  So what is known is recognised by the commit's LSN
alone.  The rows of a transaction are kept as they come; nothing is decoded before the commit.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Iterable, Iterator, Sequence

from ggshell.capture.cache import Chunk, Committed, OpenTransaction, TransactionCache
from ggshell.capture.source import LogState, MessageRun
from ggshell.clock import Clock
from ggshell.databases.postgres import pgoutput, session
from ggshell.databases.postgres.copy_stream import CopyStream, open_stream
from ggshell.databases.postgres.encode import encode_runs
from ggshell.databases.postgres.relations import Keys, Relations, no_keys
from ggshell.databases.postgres.slot import PUBLICATION, check_slot
from ggshell.errors import GgsError
from ggshell.record import ChangeBatch, TransactionHeader
from ggshell.types import Csn, TableName, format_lsn

STREAMING_SINCE = 140_000
PROTOCOL_4_SINCE = 160_000
STATUS_SECONDS = 5.0
GROWN = 1024
"""The cache is told of so many rows at once, and may then spill them."""


class PostgresLog:
    """One replication connection."""

    def __init__(self, stream: CopyStream, relations: Relations, start: int, clock: Clock) -> None:
        self._stream = stream
        self._messages: Iterator[bytes] = iter(())
        self.drained = True
        self._relations = relations
        self._clock = clock
        self._confirmed = start
        self._read = self._safe = self._end = start
        self._told = clock.steady()
        self._current: OpenTransaction | None = None
        self._streaming: OpenTransaction | None = None
        self._begin: pgoutput.Begin | None = None

    @classmethod
    def open(
        cls,
        conninfo: str,
        slot: str,
        durable: int,
        wanted: Callable[[TableName], bool],
        clock: Clock,
        keys: Keys = no_keys,
    ) -> PostgresLog:
        """Begin to read a slot.  ``durable``: the LSN up to which the trail and checkpoint hold everything; ``keys``: KEYCOLS.

        Raises CaptureError when the slot is lost, or ahead of ``durable`` (rows between would be skipped in silence);
        DatabaseError when it is missing or taken, ConnectionLostError when nobody answers.
        """
        control = session.connect(conninfo, program="ggshell extract")
        check_slot(control, slot, durable)
        connection = session.connect(conninfo, replication=True, program="ggshell extract")
        version = connection.info.server_version
        options = {
            "proto_version": "4" if version >= PROTOCOL_4_SINCE else "2",
            "publication_names": PUBLICATION,
            "streaming": "on" if version >= STREAMING_SINCE else "off",
            "messages": "true",
        }
        if version >= PROTOCOL_4_SINCE:
            options["origin"] = "none"
        arguments = ", ".join(f"{name} '{value}'" for name, value in options.items())
        command = f'START_REPLICATION SLOT "{slot}" LOGICAL {format_lsn(durable)} ({arguments})'
        try:
            stream = open_stream(connection, command)
        except GgsError:
            connection.close()
            control.close()
            raise
        return cls(stream, Relations(control, wanted, keys), durable, clock)

    @property
    def state(self) -> LogState:
        return LogState(self._read, self._safe, self._end)

    def fileno(self) -> int:
        return self._stream.fileno()

    def wait(self, timeout: float) -> bool:
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN)
        return bool(poll.poll(timeout * 1000))

    def close(self) -> None:
        self._stream.close()
        self._relations.close()

    def confirm(self, position: int) -> None:
        """Tell the server what is durable here; also the sign of life that it expects."""
        self._confirmed = max(self._confirmed, position)
        self._tell()

    def encode(self, runs: Iterable[MessageRun]) -> ChangeBatch | None:
        return encode_runs(runs)

    def feed(self, cache: TransactionCache, most: int) -> Sequence[Committed]:
        """Read until a good number of messages is there, the socket is empty, or a large transaction has committed."""
        committed: list[Committed] = []
        self.drained = False
        taken = 0
        while taken < most:
            taken = self._feed(cache, committed, taken, most)
            if taken >= most:
                break
            block = self._stream.take()
            if not block:
                self.drained = True
                break
            self._messages = iter(block)
        if self._clock.steady() - self._told > STATUS_SECONDS:
            self._tell()
        return committed

    def _feed(self, cache: TransactionCache, committed: list[Committed], taken: int, most: int) -> int:
        """Sort the messages at hand to their transactions; how many rows and commits were taken until now."""
        transaction = self._streaming or self._current
        chunk = self._chunk(transaction)
        add = chunk.messages.append if chunk is not None else None
        count = size = 0
        place, rows_kinds = pgoutput.PAYLOAD, pgoutput.ROWS
        for message in self._messages:
            if message[0] != pgoutput.XLOG_DATA:
                if message[0] == pgoutput.KEEPALIVE:
                    self._keepalive(message)
                continue
            kind = message[place]
            if kind in rows_kinds and add is not None:
                add(message)
                count += 1
                size += len(message)
                if count < GROWN:
                    continue
            if count and transaction is not None:
                cache.grew(transaction, count, size)
                taken += count
                count = size = 0
            if kind not in rows_kinds:
                finished = self._control(kind, message, cache)
                if finished is not None:
                    committed.append(finished)
                    taken += 1
                    if finished.transaction.count > most:
                        return most
            if taken >= most:
                return taken
            transaction = self._streaming or self._current
            chunk = self._chunk(transaction)
            add = chunk.messages.append if chunk is not None else None
        if count and transaction is not None:
            cache.grew(transaction, count, size)
        return taken + count

    def _chunk(self, transaction: OpenTransaction | None) -> Chunk | None:
        if transaction is None:
            return None
        return transaction.chunk(self._relations.shapes, streamed=self._streaming is not None)

    def _control(self, kind: int, message: bytes, cache: TransactionCache) -> Committed | None:
        """A message that is no row: begins, ends and definitions."""
        self._read = max(self._read, int.from_bytes(message[1:9], "big"))
        if kind == pgoutput.BEGIN:
            self._begin = pgoutput.begin(message)
            start = int.from_bytes(message[1:9], "big")
            self._current = cache.begin(self._begin.xid, start, self._begin.time)
        elif kind == pgoutput.COMMIT and self._begin is not None:
            self._current = None
            return self._commit(pgoutput.commit(message)._replace(xid=self._begin.xid), cache)
        elif kind == pgoutput.RELATION:
            self._relations.learn(pgoutput.relation(message, streamed=self._streaming is not None))
        elif kind == pgoutput.STREAM_START:
            xid = int.from_bytes(message[pgoutput.PAYLOAD + 1 : pgoutput.PAYLOAD + 5], "big")
            self._streaming = cache.begin(xid, int.from_bytes(message[1:9], "big"), self._clock.now())
        elif kind == pgoutput.STREAM_STOP:
            self._streaming = None
        elif kind == pgoutput.STREAM_COMMIT:
            return self._commit(pgoutput.stream_commit(message), cache)
        elif kind == pgoutput.STREAM_ABORT:
            self._abort(message, cache)
        return None

    def _commit(self, commit: pgoutput.Commit, cache: TransactionCache) -> Committed | None:
        oldest = cache.oldest()
        restart = oldest.begin if oldest is not None else commit.commit_lsn
        transaction = cache.end(commit.xid)
        self._read = max(self._read, commit.end_lsn)
        self._safe = max(self._safe, commit.end_lsn)
        self._end = max(self._end, commit.end_lsn)
        if transaction is None:
            transaction = OpenTransaction(commit.xid, commit.commit_lsn, commit.time)
        header = TransactionHeader(str(commit.xid), Csn(commit.end_lsn), commit.time, min(restart, commit.commit_lsn))
        return Committed(header, transaction)

    def _abort(self, message: bytes, cache: TransactionCache) -> None:
        first = pgoutput.PAYLOAD + 1
        xid, subxid = message[first : first + 4], message[first + 4 : first + 8]
        number = int.from_bytes(xid, "big")
        if xid == subxid:
            gone = cache.end(number)
            if gone is not None:
                gone.close()
        elif number in cache.open:
            cache.open[number].aborted.add(subxid)

    def _keepalive(self, message: bytes) -> None:
        end, wanted = pgoutput.keepalive(message)
        self._end = max(self._end, end)
        if self._current is None:
            # Everything that committed before this place was sent; what is still open commits behind it.
            self._read = max(self._read, end)
            self._safe = max(self._safe, end)
        if wanted:
            self._tell()

    def _tell(self) -> None:
        self._told = self._clock.steady()
        self._stream.send(pgoutput.standby_status(self._confirmed, self._clock.now()))
