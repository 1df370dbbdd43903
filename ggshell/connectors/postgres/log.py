"""PostgreSQL's log as a LogSource: logical replication with the pgoutput plugin.

The code relies on these facts of the protocol. The CSN of a commit is the LSN after its record, and the next
transaction may begin at exactly that LSN. A transaction that was being streamed when the connection broke may be sent
as a whole, or streamed again, after a reconnect. The server sends everything again that was not confirmed. Therefore
transactions that are already known are recognized by the LSN of their commit alone. The rows of a transaction are kept
as received; nothing is decoded before the commit.
"""

from __future__ import annotations

import contextlib
import select
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ggshell.clock import Clock, pause
from ggshell.connectors.postgres import (
    ddl_capture_sql,
    partition_truncates,
    pgoutput,
    protocol,
    sequence_values,
    session,
    wire,
)
from ggshell.connectors.postgres.ddl_watch import DdlWatch
from ggshell.connectors.postgres.encode import encode_runs, make_ready
from ggshell.connectors.postgres.history import UNKNOWN, History, require_same_history
from ggshell.connectors.postgres.protocol import HEAD
from ggshell.connectors.postgres.relations import Images, Keys, Relations, TableObserver, default_images, no_keys
from ggshell.connectors.postgres.replicated import EVERYTHING, NOTHING, Replicated
from ggshell.connectors.postgres.sequence_watch import SequenceWatch
from ggshell.connectors.postgres.slot import PUBLICATION, SlotStatus, check_slot
from ggshell.connectors.postgres.truncate_watch import TruncateWatch
from ggshell.connectors.postgres.wire import COPY_DATA, NO_FRAMES, Frames, Inbox
from ggshell.errors import ConnectionLostError, GgsError, LogRefusedError
from ggshell.pipeline.capture.cache import Chunk, Committed, OpenTransaction, TransactionCache
from ggshell.pipeline.capture.messages import Messages
from ggshell.pipeline.capture.source import LogState, MessageRun
from ggshell.record.change import ChangeBatch
from ggshell.record.ddl import encode_ddl, object_definition
from ggshell.record.sequences import encode_sequence, sequence_definition
from ggshell.record.transaction import TransactionHeader
from ggshell.types import Csn, TableName, format_lsn

ORIGINS_SINCE = 160_000
"""The server version from which the server leaves out transactions that carry a replication origin.

An older server names the origin of a transaction only when it sends the whole transaction at its commit, so nothing is
streamed from an older server.
"""
STATUS_SECONDS = 5.0
STREAM_MESSAGES, STREAM_SECONDS = 64, 0.005
"""This many messages within this many seconds count as a stream, of which more messages are expected."""
ENOUGH_MESSAGES = 100
"""This many messages of a stream are worth a batch. Waiting for more would cost more than a larger batch saves."""
READY_MESSAGES = 4000
"""When this many messages of an open transaction have been collected, they are encoded for the trail in advance."""
SMALL_BYTES = 4096
"""Outside a stream, a read of fewer bytes has emptied the socket. Reading again would only add latency."""
_WITHOUT_LIMITS = (
    "SET statement_timeout = 0",
    "SET lock_timeout = 0",
    "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'",
)
"""For the connection that reads the catalog: the role and the database can have other defaults."""
_OWN_MESSAGES = (ddl_capture_sql.PREFIX, sequence_values.PREFIX, partition_truncates.PREFIX)


class SlotStart(NamedTuple):
    """Where and how a slot is read.

    ``durable``: the LSN up to which the trail and the checkpoint hold everything. ``begin``: the position at which capture
    was asked to begin, None if transactions were captured before. ``known``: the server history that was captured so far.
    ``holds``: the server keeps all the log that it keeps now, until ``confirm`` moves the position. ``streams``: open
    transactions may arrive before their commit.
    """

    slot: str
    durable: int
    begin: int | None = None
    known: History = UNKNOWN
    holds: bool = False
    streams: bool = True


class CapturedRows(NamedTuple):
    """Which rows are captured, and what of them.

    ``keys``: the KEYCOLS. ``images``: which images are written for a table's rows. ``replicated``: what is captured of
    transactions with a replication origin.
    """

    wanted: Callable[[TableName], bool]
    keys: Keys = no_keys
    images: Images = default_images
    replicated: Replicated = NOTHING


class LogWatches(NamedTuple):
    """What reads the log apart from rows; messages for a missing one are ignored.

    ``tables`` is notified of what is not captured. ``ddl``, ``sequences`` and ``truncates`` read the messages of DDL
    statements, of sequences, and of truncated partitions.
    """

    tables: TableObserver | None = None
    ddl: DdlWatch | None = None
    sequences: SequenceWatch | None = None
    truncates: TruncateWatch | None = None


NO_WATCHES = LogWatches()


class PostgresLog:
    """A replication connection that reads one slot."""

    def __init__(
        self,
        stream: wire.ReplicationWire,
        inbox: Inbox,
        relations: Relations,
        start: int,
        clock: Clock,
        watches: LogWatches,
        replicated: Replicated,
        *,
        confirmed: int,
        history: History,
    ) -> None:
        """``start``: the LSN to read from; ``confirmed``: the one that the server may release its log up to."""
        self._wire = stream
        self._inbox = inbox
        self._frames = NO_FRAMES
        self._next = 0
        self._relations = relations
        self._observer = watches.tables or TableObserver()
        self._ddl = watches.ddl
        self._sequences = watches.sequences
        self._truncates = watches.truncates or TruncateWatch(lambda *_: None)
        self._left_out: dict[int, list[partition_truncates.Noted]] = {}
        self._with_messages: set[int] = set()  # the streamed transactions that contain messages of ggshell
        self._replicated = replicated
        self._taken = EVERYTHING  # of the transaction that is being received
        self._clock = clock
        self.history = history
        self._confirmed = confirmed
        self._read = self._safe = self._end = start
        self._reported = self._since = clock.steady()
        self._lately = 0
        self.quiet = False
        self._current: OpenTransaction | None = None
        self._streaming: OpenTransaction | None = None
        self._begin: pgoutput.Begin | None = None
        self._lost: ConnectionLostError | None = None

    @classmethod
    def open(
        cls, conninfo: str, start: SlotStart, rows: CapturedRows, clock: Clock, watches: LogWatches = NO_WATCHES
    ) -> PostgresLog:
        """Open a slot for reading.

        Raises CaptureError when the slot is lost, when it is ahead of ``start.durable`` (the rows between would be skipped
        silently), or when the server's history is not the known one; DatabaseError when the slot does not exist or is
        in use; ConnectionLostError when the server does not answer.
        """
        truncates = watches.truncates or TruncateWatch(lambda *_: None)
        control, status = _checked(conninfo, start, truncates)
        for watch in (watches.ddl, watches.sequences):
            if watch is not None:
                watch.connection = control
        with contextlib.ExitStack() as undo:
            undo.callback(control.close)
            connection = session.connect(conninfo, replication=True, program="ggshell extract")
            undo.callback(connection.close)
            command = _command(start, connection.info.server_version, rows.replicated)
            history = require_same_history(connection, start.known, start.durable, start.begin)
            stream, inbox = wire.start(connection, control, command)
            undo.pop_all()
        return cls(
            stream,
            inbox,
            Relations(control, rows.wanted, rows.keys, rows.images),
            start.durable,
            clock,
            watches._replace(truncates=truncates),
            rows.replicated,
            confirmed=status.confirmed if start.holds else start.durable,
            history=history,
        )

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
        """Report to the server what is durable here. This is also the keepalive that the server expects."""
        self._confirmed = max(self._confirmed, position)
        self._send_status()

    def encode(self, runs: Iterable[MessageRun]) -> ChangeBatch | None:
        batch = encode_runs(runs)
        if self._is_stream() and not self._inbox.full:
            # The socket holds only a few hundred rows. When it is full, the server waits instead of decoding.
            with contextlib.suppress(ConnectionLostError):  # earlier commits are complete; ``feed`` detects the loss
                self._wire.receive(self._inbox)
        return batch

    def feed(self, cache: TransactionCache, most: int) -> Sequence[Committed]:
        """Read until enough messages have arrived, the socket is empty, or a large transaction has committed."""
        if self._lost is not None:
            raise self._lost
        committed: list[Committed] = []
        taken, now = 0, self._clock.steady()
        self.quiet = False
        if now - self._since > STREAM_SECONDS:  # a stream that was active a moment ago still counts as one
            self._lately = self._lately // 2 if now - self._since < 10 * STREAM_SECONDS else 0
            self._since = now
        while taken < most:
            if not self.more:
                if self.quiet:
                    break
                if not self._receive():
                    if taken >= ENOUGH_MESSAGES and self._is_stream():
                        break  # the server produces more while these are written
                    if not (self._is_stream() and self._linger()):
                        self.quiet = True
                        break
                self._frames, self._next = self._inbox.take(), 0
                self.quiet = len(self._frames.data) < SMALL_BYTES and not self._is_stream()
            try:
                count = self._take(cache, committed, most)
            except ConnectionLostError as error:
                if not committed:
                    raise
                self._lost = error  # first return what was committed before it
                break
            taken += count
            self._lately += count
            if committed and committed[-1].transaction.count > most:
                break
        if now - self._reported > STATUS_SECONDS:
            self._send_status()
        return committed

    def _is_stream(self) -> bool:
        return self._lately >= STREAM_MESSAGES and self._clock.steady() - self._since < STREAM_SECONDS

    def _linger(self) -> bool:
        """Wait briefly for more messages of a stream, and return whether any arrived.

        If the process waited for the socket instead, the server would wake it for every row, which costs the server
        more than the row itself.
        """
        pause(wire.DRAIN_SECONDS)
        return self._receive()

    def _receive(self) -> bool:
        """Read the socket. Return whether messages have arrived that were not taken yet, now or during earlier work."""
        return self._wire.receive(self._inbox) or self._inbox.fresh

    def _take(self, cache: TransactionCache, committed: list[Committed], most: int) -> int:
        """Take messages of the current frames until they end or enough has committed. Return how many were taken."""
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
        """Add rows, which all belong to the transaction that is currently open."""
        transaction = self._streaming or self._current
        if transaction is None or not self._taken.rows:
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
        """Handle a message that is not a row."""
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
            self._relations.shapes, streamed=self._streaming is not None, id_offset=HEAD + pgoutput.PAYLOAD + 1
        )

    def _control(self, kind: int, message: bytes, cache: TransactionCache) -> Committed | None:
        """Handle log data that is not a row: begins, ends and definitions."""
        self._read = max(self._read, int.from_bytes(message[1:9], "big"))
        handler = self._HANDLERS.get(kind)
        return handler(self, message, cache) if handler is not None else None

    def _begin_transaction(self, message: bytes, cache: TransactionCache) -> None:
        self._begin, self._taken = pgoutput.begin(message), EVERYTHING
        start = int.from_bytes(message[1:9], "big")
        self._current = cache.begin(self._begin.xid, start, self._begin.time)

    def _commit_transaction(self, message: bytes, cache: TransactionCache) -> Committed | None:
        if self._begin is None:
            return None
        self._current = None
        return self._commit(pgoutput.commit(message)._replace(xid=self._begin.xid), cache)

    def _origin(self, message: bytes, cache: TransactionCache) -> None:
        """Note that the transaction has a replication origin, and drop it unless such transactions are captured."""
        if self._begin is not None and self._streaming is None:
            self._taken = self._replicated
            if not any(self._taken):
                self._leave_out(self._begin.xid, cache)

    def _relation(self, message: bytes, cache: TransactionCache) -> None:
        """Learn the columns of a table."""
        streaming = self._streaming
        relation = pgoutput.relation(message, streamed=streaming is not None)
        known = relation.relation in self._relations.shapes
        self._relations.learn(relation, streaming.xid if streaming is not None else None)
        if not known:
            shape = self._relations.shapes[relation.relation]
            self._observer.described(shape.definition.name, wanted=shape.wanted)

    def _stream_start(self, message: bytes, cache: TransactionCache) -> None:
        xid, self._taken = int.from_bytes(message[pgoutput.PAYLOAD + 1 : pgoutput.PAYLOAD + 5], "big"), EVERYTHING
        self._streaming = cache.begin(xid, int.from_bytes(message[1:9], "big"), self._clock.now())

    def _stream_stop(self, message: bytes, cache: TransactionCache) -> None:
        self._streaming = None

    def _stream_commit(self, message: bytes, cache: TransactionCache) -> Committed | None:
        return self._commit(pgoutput.stream_commit(message), cache)

    def _leave_out(self, xid: int, cache: TransactionCache) -> None:
        """Drop the rows of a transaction with a replication origin, such as a Replicat's, and treat it as empty."""
        self._current = None
        transaction = cache.end(xid)
        if transaction is not None:
            transaction.close()

    def _note(self, message: bytes, cache: TransactionCache) -> None:
        """Handle a logical decoding message: a partition's TRUNCATE becomes a row; messages of others are ignored."""
        transaction, streamed = self._streaming or self._current, self._streaming is not None
        if transaction is None:
            return
        prefix, content = pgoutput.note(message, streamed=streamed)
        if streamed and prefix in _OWN_MESSAGES:
            self._with_messages.add(transaction.xid)
        if prefix == ddl_capture_sql.PREFIX and self._taken.ddl:
            self._ddl_record(message, content, transaction, cache)
        if prefix == sequence_values.PREFIX and self._sequences is not None:
            for value in self._sequences.values(transaction.xid, content):
                number = self._relations.learn_object(sequence_definition(value.name))
                self._add_record(message, pgoutput.SEQUENCE, number, encode_sequence(value), transaction, cache)
        if prefix != partition_truncates.PREFIX or not self._taken.rows:
            return
        noted = self._truncates.read(transaction.xid, pgoutput.note_lsn(message, streamed=streamed), content)
        if noted is None:
            return
        self._relations.learn_partition(noted.relation, noted.partition)
        if not self._relations.shapes[noted.relation].wanted:
            self._left_out.setdefault(transaction.xid, []).append(noted)
        row = protocol.message(COPY_DATA, pgoutput.truncate_of(message, noted.relation, streamed=streamed))
        cache.add(transaction, self._chunk(transaction), Messages.pack([row]))

    def _ddl_record(
        self, message: bytes, content: bytes, transaction: OpenTransaction, cache: TransactionCache
    ) -> None:
        """Make a row of a DDL statement that the Extract captures."""
        if self._ddl is None:
            return
        statement = self._ddl.statement(transaction.xid, content)
        if statement is None:
            return
        number = self._relations.learn_object(object_definition(statement))
        self._add_record(message, pgoutput.DDL, number, encode_ddl(statement), transaction, cache)

    def _add_record(
        self, message: bytes, kind: int, number: int, data: bytes, transaction: OpenTransaction, cache: TransactionCache
    ) -> None:
        row = pgoutput.record_of(message, kind, number, data, streamed=self._streaming is not None)
        cache.add(transaction, self._chunk(transaction), Messages.pack([protocol.message(COPY_DATA, row)]))

    def _commit(self, commit: pgoutput.Commit, cache: TransactionCache) -> Committed | None:
        oldest = cache.oldest()
        restart = oldest.begin if oldest is not None else commit.commit_lsn
        transaction = cache.end(commit.xid)
        self._relations.committed(commit.xid)
        self._forget_messages(commit.xid)
        for noted in self._left_out.pop(commit.xid, ()):
            self._observer.truncated(noted.table, self._relations.root_of(noted))
        self._read = max(self._read, commit.end_lsn)
        self._safe = max(self._safe, commit.end_lsn)
        self._end = max(self._end, commit.end_lsn)
        if transaction is None:
            transaction = OpenTransaction(commit.xid, commit.commit_lsn, commit.time)
        header = TransactionHeader(str(commit.xid), Csn(commit.end_lsn), commit.time, min(restart, commit.commit_lsn))
        return Committed(header, transaction)

    def _forget_messages(self, xid: int) -> None:
        self._with_messages.discard(xid)
        if self._ddl is not None:
            self._ddl.ended(xid)

    def _stream_abort(self, message: bytes, cache: TransactionCache) -> None:
        """Drop a streamed transaction, or the rows of a part of it, which was rolled back.

        The server names the part of each row, but of a message only the transaction. Raises LogRefusedError if the
        transaction has messages: read at its commit, it contains only those that were not rolled back.
        """
        first = pgoutput.PAYLOAD + 1
        xid, subxid = message[first : first + 4], message[first + 4 : first + 8]
        number = int.from_bytes(xid, "big")
        if xid == subxid:
            self._relations.rolled_back(number)
            self._forget_messages(number)
            self._left_out.pop(number, None)
            gone = cache.end(number)
            if gone is not None:
                gone.close()
        elif number in self._with_messages:
            raise LogRefusedError(
                f"transaction {number} is still open and has rolled back a part of itself, and the server does not tell"
                " whether its DDL statements or its TRUNCATE of partitions are in this part"
            )
        elif number in cache.open:
            cache.open[number].abort(subxid)

    _HANDLERS: ClassVar[Mapping[int, Callable[[PostgresLog, bytes, TransactionCache], Committed | None]]] = {
        pgoutput.BEGIN: _begin_transaction,
        pgoutput.COMMIT: _commit_transaction,
        pgoutput.ORIGIN: _origin,
        pgoutput.RELATION: _relation,
        pgoutput.STREAM_START: _stream_start,
        pgoutput.STREAM_STOP: _stream_stop,
        pgoutput.STREAM_COMMIT: _stream_commit,
        pgoutput.STREAM_ABORT: _stream_abort,
        pgoutput.MESSAGE: _note,
    }

    def _keepalive(self, message: Any) -> None:
        end, wanted = pgoutput.keepalive(message)
        self._end = max(self._end, end)
        if self._current is None:
            # Everything that committed before this position was sent; transactions still open commit after it.
            self._read = max(self._read, end)
            self._safe = max(self._safe, end)
        if wanted:
            self._send_status()

    def _send_status(self) -> None:
        self._reported = self._clock.steady()
        self._wire.send(pgoutput.standby_status(self._confirmed, self._clock.now()))


def _command(start: SlotStart, version: int, replicated: Replicated) -> str:
    """The command that starts to read a slot; from version 16 on the server leaves out the transactions of other origins."""
    names_origin = version >= ORIGINS_SINCE
    streams = start.streams and replicated.streams and names_origin
    options = {
        "proto_version": "4" if names_origin else "2",
        "publication_names": PUBLICATION,
        "streaming": "on" if streams else "off",
        "messages": "true",
        **({"origin": replicated.origin} if names_origin else {}),
    }
    arguments = ", ".join(f"{name} '{value}'" for name, value in options.items())
    return f'START_REPLICATION SLOT "{start.slot}" LOGICAL {format_lsn(start.durable)} ({arguments})'


def _checked(conninfo: str, start: SlotStart, truncates: TruncateWatch) -> tuple[Any, SlotStatus]:
    """Connect, check the slot and prepare to read the messages of truncated partitions. Raises as ``PostgresLog.open``."""
    control = session.connect(conninfo, program="ggshell extract")
    try:
        for setting in _WITHOUT_LIMITS:
            session.execute(control, setting)
        status = check_slot(control, start.slot, start.durable)
        truncates.begin(control)
    except GgsError:
        control.close()
        raise
    return control, status
