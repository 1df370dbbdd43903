"""PostgreSQL's log as a LogSource: logical replication of pgoutput.

The facts of the protocol that this code rests on: a commit's CSN is the LSN behind its record, and the next transaction
may begin at that very LSN; a transaction that was being streamed when the connection broke may come whole, or be streamed
again, afterwards; the server sends again whatever was not confirmed.  So what is known is recognised by the commit's LSN
alone.  The rows of a transaction are kept as they come; nothing is decoded before the commit.
"""

from __future__ import annotations

import contextlib
import select
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ggshell.capture.cache import Chunk, Committed, OpenTransaction, TransactionCache
from ggshell.capture.messages import Messages
from ggshell.capture.source import LogState, MessageRun
from ggshell.clock import Clock
from ggshell.databases.postgres import pgoutput, session, wire
from ggshell.databases.postgres.encode import encode_runs, make_ready
from ggshell.databases.postgres.frames import COPY_DATA, HEAD, NO_FRAMES, Frames, Inbox
from ggshell.databases.postgres.history import UNKNOWN, History, require_same_history
from ggshell.databases.postgres.relations import Images, Keys, Relations, default_images, no_keys
from ggshell.databases.postgres.slot import PUBLICATION, check_slot
from ggshell.errors import ConnectionLostError, GgsError
from ggshell.record.change import ChangeBatch
from ggshell.record.transaction import TransactionHeader
from ggshell.types import Csn, TableName, format_lsn

STREAMING_SINCE = 140_000
PROTOCOL_4_SINCE = 160_000
STATUS_SECONDS = 5.0
STREAM_MESSAGES, STREAM_SECONDS = 64, 0.005
"""So many messages within so short a time are a stream, of which more may be expected."""
ENOUGH_MESSAGES = 100
"""So many messages of a stream are worth a batch: to wait for more would cost more than a larger batch saves."""
READY_MESSAGES = 4000
"""When so many messages of an open transaction have gathered they are made ready for the trail."""
SMALL_BYTES = 4096
"""Outside a stream, so few bytes were all that was there: to ask again would only keep a lone transaction waiting."""


class PostgresLog:
    """One replication connection."""

    def __init__(self, stream: wire.Wire, inbox: Inbox, relations: Relations, start: int, clock: Clock) -> None:
        self._wire = stream
        self._inbox = inbox
        self._frames = NO_FRAMES
        self._next = 0
        self._relations = relations
        self._clock = clock
        self.history = UNKNOWN
        self._confirmed = start
        self._read = self._safe = self._end = start
        self._told = self._since = clock.steady()
        self._lately = 0
        self.quiet = False
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
        images: Images = default_images,
        *,
        holds: bool = False,
        known: History = UNKNOWN,
    ) -> PostgresLog:
        """Begin to read a slot.  ``durable``: the LSN up to which the trail and checkpoint hold everything; ``keys``: KEYCOLS;
        ``images``: which images are made of a table's rows; ``holds``: the server is to keep what it keeps now, until
        ``confirm`` says otherwise; ``known``: the history that was captured from.

        Raises CaptureError when the slot is lost, or ahead of ``durable`` (rows between would be skipped in silence), or the
        server's history is another one (the same);
        DatabaseError when it is missing or taken, ConnectionLostError when nobody answers.
        """
        control = session.connect(conninfo, program="ggshell extract")
        status = check_slot(control, slot, durable)
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
            history = require_same_history(connection, known, durable)
            stream, inbox = wire.start(connection, control, command)
        except GgsError:
            connection.close()
            control.close()
            raise
        log = cls(stream, inbox, Relations(control, wanted, keys, images), durable, clock)
        log.history = history
        if holds:
            log._confirmed = status.confirmed
        return log

    @property
    def state(self) -> LogState:
        return LogState(self._read, self._safe, self._end)

    @property
    def cursor(self) -> tuple[int, int]:
        return self._read, 0

    @property
    def more(self) -> bool:
        return self._next < len(self._frames.edges) - 1

    def fileno(self) -> int:
        return self._wire.fileno()

    def wait(self, timeout: float) -> bool:
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN)
        return self.more or self._inbox.fresh or bool(poll.poll(timeout * 1000))

    def close(self) -> None:
        self._wire.close()
        self._relations.close()

    def confirm(self, position: int) -> None:
        """Tell the server what is durable here; also the sign of life that it expects."""
        self._confirmed = max(self._confirmed, position)
        self._tell()

    def encode(self, runs: Iterable[MessageRun]) -> ChangeBatch | None:
        batch = encode_runs(runs)
        if self._is_stream() and not self._inbox.full:
            # The socket holds a few hundred rows only: while it is full the server waits instead of decoding.
            with contextlib.suppress(ConnectionLostError):  # what was committed before is whole; ``feed`` finds it lost
                self._wire.receive(self._inbox)
        return batch

    def feed(self, cache: TransactionCache, most: int) -> Sequence[Committed]:
        """Read until a good number of messages is there, the socket is empty, or a large transaction has committed."""
        committed: list[Committed] = []
        taken, now = 0, self._clock.steady()
        self.quiet = False
        if now - self._since > STREAM_SECONDS:  # a stream that has just been one is one still
            self._lately = self._lately // 2 if now - self._since < 10 * STREAM_SECONDS else 0
            self._since = now
        while taken < most:
            if not self.more:
                if self.quiet:
                    break
                if not self._receive():
                    if taken >= ENOUGH_MESSAGES and self._is_stream():
                        break  # the server makes more while these are written
                    if not (self._is_stream() and self._linger()):
                        self.quiet = True
                        break
                self._frames, self._next = self._inbox.take(), 0
                self.quiet = len(self._frames.data) < SMALL_BYTES and not self._is_stream()
            count = self._take(cache, committed, most)
            taken += count
            self._lately += count
            if committed and committed[-1].transaction.count > most:
                break
        if now - self._told > STATUS_SECONDS:
            self._tell()
        return committed

    def _is_stream(self) -> bool:
        return self._lately >= STREAM_MESSAGES and self._clock.steady() - self._since < STREAM_SECONDS

    def _linger(self) -> bool:
        """Let a stream of messages gather; whether more came.

        Waiting for the socket would have the server wake us for every row, which costs it more than the row.
        """
        select.select((), (), (), wire.DRAIN_SECONDS)
        return self._receive()

    def _receive(self) -> bool:
        """Whether anything came that was not taken, now or while something else was done."""
        return self._wire.receive(self._inbox) or self._inbox.fresh

    def _take(self, cache: TransactionCache, committed: list[Committed], most: int) -> int:
        """Take messages of the present frames, until they end or enough has committed; how many were taken."""
        frames, begin, number, before = self._frames, self._next, self._next, len(committed)
        count = len(frames.edges) - 1
        others = frames.others
        for other in (*others[bisect_left(others, number) :], count):
            if other > number:
                self._rows(frames, number, other, cache)
            number = self._next = min(other + 1, count)
            if other == count:
                break
            finished = self._other(frames, other, cache)
            if finished is not None:
                committed.append(finished)
                if number - begin >= most or finished.transaction.count > most:
                    break
        return number - begin + len(committed) - before

    def _rows(self, frames: Frames, first: int, stop: int, cache: TransactionCache) -> None:
        """Rows, all of them in the transaction that stands open here."""
        transaction = self._streaming or self._current
        if transaction is None:
            return
        low = frames.edges[first]
        edges = np.array(frames.edges[first : stop + 1], dtype=np.int64)
        edges -= low
        chunk = self._chunk(transaction)
        cache.add(transaction, chunk, Messages(frames.data[low : frames.edges[stop]], edges))
        if chunk.count >= READY_MESSAGES:
            with self._wire.drained(self._inbox):
                cache.make_ready(transaction, make_ready)

    def _other(self, frames: Frames, number: int, cache: TransactionCache) -> Committed | None:
        """A message that is no row."""
        if frames.data[frames.edges[number]] != COPY_DATA:
            reason = wire.ended(frames, number)
            if reason is not None:
                raise reason
            return None
        message = frames.body(number)
        if message[0] == pgoutput.XLOG_DATA:
            return self._control(message[pgoutput.PAYLOAD], message, cache)
        if message[0] == pgoutput.KEEPALIVE:
            self._keepalive(message)
        return None

    def _chunk(self, transaction: OpenTransaction) -> Chunk:
        return transaction.chunk(
            self._relations.shapes, streamed=self._streaming is not None, mark=HEAD + pgoutput.PAYLOAD + 1
        )

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
            cache.open[number].abort(subxid)

    def _keepalive(self, message: Any) -> None:
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
        self._wire.send(pgoutput.standby_status(self._confirmed, self._clock.now()))
