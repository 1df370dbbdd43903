"""PostgreSQL's log as a LogSource: logical replication of pgoutput through libpq's COPY BOTH.

The facts of the protocol that this code rests on: a commit's CSN is the LSN behind its record, and the next transaction
may begin at that very LSN; a transaction that was being streamed when the connection broke may come whole, or be streamed
again, afterwards; the server sends again whatever was not confirmed.  So what is known is recognised by the commit's LSN
alone.  The rows of a transaction are kept as they come; nothing is decoded before the commit.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ggshell.capture.cache import Chunk, Committed, OpenTransaction, TransactionCache
from ggshell.capture.source import LogState, MessageRun
from ggshell.clock import Clock
from ggshell.databases.postgres import pgoutput, session
from ggshell.databases.postgres.encode import encode_runs
from ggshell.databases.postgres.relations import Keys, Relations, no_keys
from ggshell.databases.postgres.slot import PUBLICATION, check_slot
from ggshell.errors import ConnectionLostError
from ggshell.record import ChangeBatch, TransactionHeader
from ggshell.types import Csn, TableName, format_lsn

STREAMING_SINCE = 140_000
PROTOCOL_4_SINCE = 160_000
STATUS_SECONDS = 5.0


class PostgresLog:
    """One replication connection."""

    def __init__(self, connection: Any, relations: Relations, start: int, clock: Clock) -> None:
        self._connection = connection
        self._pgconn = connection.pgconn
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
        result = connection.pgconn.exec_(command.encode())
        if result.status != 8:  # COPY_BOTH
            message = result.error_message.decode(errors="replace")
            connection.close()
            control.close()
            raise session.translate(Exception(message))
        return cls(connection, Relations(control, wanted, keys), durable, clock)

    @property
    def state(self) -> LogState:
        return LogState(self._read, self._safe, self._end)

    def fileno(self) -> int:
        return int(self._pgconn.socket)

    def wait(self, timeout: float) -> bool:
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN)
        return bool(poll.poll(timeout * 1000))

    def close(self) -> None:
        self._connection.close()
        self._relations.close()

    def confirm(self, position: int) -> None:
        """Tell the server what is durable here; also the sign of life that it expects."""
        self._confirmed = max(self._confirmed, position)
        self._tell()

    def encode(self, runs: Iterable[MessageRun]) -> ChangeBatch | None:
        return encode_runs(runs)

    def feed(self, cache: TransactionCache, most: int) -> Sequence[Committed]:
        """Read until a good number of messages is there, the socket is empty, or a large transaction has committed."""
        import psycopg

        committed: list[Committed] = []
        try:
            self._feed(cache, committed, most)
        except psycopg.Error as error:
            raise ConnectionLostError(f"the log's connection broke: {' '.join(str(error).split())}") from error
        if self._clock.steady() - self._told > STATUS_SECONDS:
            self._tell()
        return committed

    def _feed(self, cache: TransactionCache, committed: list[Committed], most: int) -> None:
        get, rows_kinds = self._pgconn.get_copy_data, pgoutput.ROWS
        transaction = self._streaming or self._current
        chunk = self._chunk(transaction)
        count = size = taken = 0
        looked = False
        while taken < most:
            status, message = get(1)
            if status <= 0:
                if status < 0:
                    raise ConnectionLostError(
                        f"the server ended the log: {self._pgconn.error_message.decode(errors='replace')}"
                    )
                if looked:
                    break
                self._pgconn.consume_input()
                looked = True
                continue
            looked = False
            if message[0] == pgoutput.XLOG_DATA:
                kind = message[pgoutput.PAYLOAD]
                if kind in rows_kinds and chunk is not None:
                    chunk.messages.append(bytes(message))
                    count += 1
                    taken += 1
                    size += status
                    if count >= 1024 and transaction is not None:
                        cache.grew(transaction, count, size)
                        count = size = 0
                        chunk = self._chunk(transaction)
                    continue
                if count and transaction is not None:
                    cache.grew(transaction, count, size)
                    count = size = 0
                finished = self._control(kind, bytes(message), cache)
                if finished is not None:
                    committed.append(finished)
                    taken += 1
                    if finished.transaction.count > most:
                        break
                transaction = self._streaming or self._current
                chunk = self._chunk(transaction)
            elif message[0] == pgoutput.KEEPALIVE:
                self._keepalive(message)
        if count and transaction is not None:
            cache.grew(transaction, count, size)

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
        self._pgconn.put_copy_data(pgoutput.standby_status(self._confirmed, self._clock.now()))
        self._pgconn.flush()
