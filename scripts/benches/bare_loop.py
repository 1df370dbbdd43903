"""The latency bench's peer: the shortest honest loop with a durable queue in between.

One process reads the slot, appends each committed transaction to a file and calls fdatasync; a byte through a pipe wakes
the second, which reads the file and applies rows and its own position in one transaction. It knows one table, inserts
only, and recovers from nothing.

    python bare_loop.py SOURCE_DSN TARGET_DSN QUEUE_FILE
"""

from __future__ import annotations

import os
import select
import signal
import struct
import sys
import time
from pathlib import Path

import psycopg
from psycopg import pq

_LENGTH = struct.Struct(">I")
_HEAD = struct.Struct(">BqqQ")  # 'w', start, end, clock


def read_slot(dsn: str, queue: Path, wake: int) -> None:
    """Slot -> file -> wake. Runs until it is killed."""
    connection = psycopg.connect(dsn + " replication=database", autocommit=True).pgconn
    # The second publication option keeps the stream as plain as the peer needs it.
    connection.send_query(b"START_REPLICATION SLOT bare LOGICAL 0/0 (proto_version '4', publication_names 'ggshell')")
    while (result := _next_result(connection)) is not None:
        if result.status == pq.ExecStatus.COPY_BOTH:
            break
        raise SystemExit(f"the bare loop's slot cannot be read: {connection.get_error_message()}")
    file = os.open(queue, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    waiting = [connection.socket]
    pending: list[bytes] = []
    while True:
        length, message = connection.get_copy_data(1)
        if length == 0:
            select.select(waiting, [], [])
            connection.consume_input()
            continue
        data = bytes(message)
        if data[:1] == b"w":
            body = data[_HEAD.size :]
            pending.append(_LENGTH.pack(len(body)) + body)
            if body[:1] == b"C":
                os.write(file, b"".join(pending))
                os.fdatasync(file)
                os.write(wake, b"!")
                pending.clear()
                _confirm(connection, int.from_bytes(body[10:18]))
        elif data[:1] == b"k" and data[-1]:
            _confirm(connection, 0)


def _next_result(connection: pq.abc.PGconn) -> pq.abc.PGresult | None:
    connection.flush()
    return connection.get_result()


def _confirm(connection: pq.abc.PGconn, position: int) -> None:
    now = int((time.time() - 946_684_800) * 1e6)
    connection.put_copy_data(struct.pack(">cQQQQB", b"r", position, position, position, now, 0))
    connection.flush()


def apply_queue(dsn: str, queue: Path, wake: int) -> None:
    """Wake -> file -> target. Runs until it is killed."""
    insert = "INSERT INTO bench.rows VALUES (%s::bigint, %s::integer, %s::numeric, %s::timestamptz, %s)"
    place = 0
    with psycopg.connect(dsn, autocommit=True, options="-c synchronous_commit=off") as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS bench.bare_position (id int PRIMARY KEY, place bigint)")
        connection.execute("INSERT INTO bench.bare_position VALUES (1, 0) ON CONFLICT DO NOTHING")
        while os.read(wake, 4096):
            with queue.open("rb") as file:
                file.seek(place)
                data = file.read()
            rows = list(inserts(data))
            place += len(data)
            with connection.pipeline(), connection.transaction():
                for row in rows:
                    connection.execute(insert, row, prepare=True)
                connection.execute("UPDATE bench.bare_position SET place = %s WHERE id = 1", (place,), prepare=True)


def inserts(data: bytes) -> list[list[str | None]]:
    """The rows of the insert messages in a part of the queue."""
    found: list[list[str | None]] = []
    at = 0
    while at < len(data):
        (length,) = _LENGTH.unpack_from(data, at)
        message = data[at + 4 : at + 4 + length]
        at += 4 + length
        if message[:1] == b"I":
            found.append(_tuple(message, 6))
    return found


def _tuple(message: bytes, at: int) -> list[str | None]:
    """The columns of a pgoutput tuple in text form."""
    count = int.from_bytes(message[at : at + 2])
    at += 2
    columns: list[str | None] = []
    for _ in range(count):
        kind = message[at : at + 1]
        at += 1
        if kind != b"t":
            columns.append(None)
            continue
        length = int.from_bytes(message[at : at + 4])
        columns.append(message[at + 4 : at + 4 + length].decode())
        at += 4 + length
    return columns


def main(source: str, target: str, queue: str) -> None:
    """Run both processes until SIGTERM."""
    Path(queue).touch()
    reading, writing = os.pipe()
    applier = os.fork()
    if applier == 0:
        os.close(writing)
        apply_queue(target, Path(queue), reading)
        os._exit(0)
    os.close(reading)

    def end(*_: object) -> None:
        os.kill(applier, signal.SIGKILL)
        os.waitpid(applier, 0)
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    read_slot(source, Path(queue), writing)


if __name__ == "__main__":
    main(*sys.argv[1:])
