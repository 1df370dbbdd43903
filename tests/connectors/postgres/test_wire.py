"""The log read from the socket equals what libpq returns; both report the server's errors in the same words."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from processes import until

from ggshell.connectors.postgres import pgoutput, protocol, session, wire
from ggshell.connectors.postgres.protocol import HEAD
from ggshell.connectors.postgres.wire import COPY_DATA, Inbox, LibpqWire, ReplicationWire, SocketWire
from ggshell.errors import ConnectionLostError, DatabaseError

COMMAND = "START_REPLICATION SLOT \"s{}\" LOGICAL 0/0 (proto_version '1', publication_names 'p')"
KINDS = {"socket": SocketWire, "libpq": LibpqWire}


@pytest.fixture
def dsn(north: str) -> Iterator[str]:
    with session.connect(north) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        connection.execute("CREATE PUBLICATION p FOR TABLE t")
        for name in "12":
            connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [f"s{name}"])
    yield north


class Stream:
    """One kind of replication connection, started on a slot."""

    def __init__(self, dsn: str, kind: str, slot: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(wire, "is_plain", lambda *_: kind == "socket")
        connection: Any = session.connect(dsn, replication=True)
        with session.connect(dsn) as control:
            self.wire, self.inbox = self._begin(connection, control, slot)
        assert type(self.wire) is KINDS[kind]

    def _begin(self, connection: Any, control: Any, slot: int) -> tuple[ReplicationWire, Inbox]:
        return wire.start(connection, control, COMMAND.format(slot))

    def take(self, commits: int) -> list[bytes]:
        """The payloads up to so many commits, without the frames, which contain the time of each reader."""
        found: list[bytes] = []

        def arrived() -> bool:
            self.wire.receive(self.inbox)
            frames = self.inbox.take()
            for number in range(len(frames.edges) - 1):
                error = wire.ended(frames, number) if frames.data[frames.edges[number]] != ord("d") else None
                if error is not None:
                    raise error
                body = frames.data[frames.edges[number] + HEAD : frames.edges[number + 1]]
                # The server describes a table again after each lookup, at a different place for each reader.
                if body[0] == pgoutput.XLOG_DATA and body[pgoutput.PAYLOAD] != pgoutput.RELATION:
                    found.append(body[pgoutput.PAYLOAD :])
            return sum(payload[0] == pgoutput.COMMIT for payload in found) >= commits

        until("the commits arrive", arrived)
        return found


def test_both_connections_read_the_same_messages(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with session.connect(dsn) as connection:
        connection.execute("INSERT INTO t SELECT n, 'row ' || n FROM generate_series(1, 3000) n")
        connection.execute("INSERT INTO t VALUES (0, repeat('long ', 400000))")
        connection.execute("DELETE FROM t WHERE id < 100")
    found = {}
    for number, kind in enumerate(KINDS, 1):
        stream = Stream(dsn, kind, number, monkeypatch)
        found[kind] = stream.take(3)
        stream.wire.close()
    assert found["socket"] == found["libpq"]
    assert len(found["socket"]) > 3100


def test_data_that_arrives_while_the_reader_is_busy_waits_in_the_inbox(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Stream(dsn, "socket", 1, monkeypatch)
    count, drained = 0, stream.wire.drained(stream.inbox)
    with drained, session.connect(dsn) as connection:
        # More than any socket buffer holds: the server could not send the last one if the first were not read.
        connection.execute("INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series(1, 20000) n")
        end = session.current_position(connection)[0]
        query = "SELECT coalesce(max(sent_lsn), '0/0') - '0/0' FROM pg_stat_replication"
        until("all was sent", lambda: connection.execute(query).fetchone()[0] >= end)  # type: ignore[index]
    assert stream.inbox.fresh
    while not count:
        frames = stream.inbox.take()
        count = sum(frames.body(n)[pgoutput.PAYLOAD :][:1] == b"I" for n in range(len(frames.edges) - 1))
    assert count == 20000
    assert not stream.inbox.fresh
    stream.wire.close()


@pytest.mark.parametrize("kind", KINDS)
def test_confirmed_positions_reach_the_server(dsn: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with session.connect(dsn) as connection:
        connection.execute("INSERT INTO t VALUES (1, 'a')")
        stream = Stream(dsn, kind, 1, monkeypatch)
        stream.take(1)
        end = session.current_position(connection)[0]
        stream.wire.send(pgoutput.standby_status(end, 0))
        query = "SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots WHERE slot_name = 's1'"
        until("the slot moves", lambda: connection.execute(query).fetchone()[0] == end)  # type: ignore[index]
        stream.wire.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_or_active_slot_is_refused_in_the_words_of_the_server(
    dsn: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Stream(dsn, kind, 1, monkeypatch)
    with pytest.raises(DatabaseError, match=r"slot .* is active for PID") as caught:
        Stream(dsn, kind, 1, monkeypatch)
    assert caught.value.code == "GGS-00411"
    first.wire.close()
    with pytest.raises(DatabaseError, match="does not exist"):
        Stream(dsn, kind, 3, monkeypatch)


@pytest.mark.parametrize("kind", KINDS)
def test_a_terminated_walsender_is_a_lost_connection(dsn: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(dsn, kind, 1, monkeypatch)
    with session.connect(dsn) as connection:
        connection.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = 's1'")
    with pytest.raises(ConnectionLostError):
        stream.take(1)
    stream.wire.close()


def test_messages_that_arrive_with_the_servers_response_stay_in_order() -> None:
    """The first block may contain the response, whole messages, and the beginning of one that continues in the next block."""
    ours, servers = socket.socketpair()
    whole, cut = (protocol.message(COPY_DATA, b"w" + bytes(24) + b"B" + size * b"x") for size in (20, 5000))
    plain = SocketWire(SimpleNamespace(pgconn=SimpleNamespace(socket=ours.fileno())))
    servers.sendall(protocol.message(ord("W"), b"\0\0\0") + whole + cut[:3000])
    inbox = Inbox()
    plain.begin("START_REPLICATION", inbox)
    servers.sendall(cut[3000:])
    plain.receive(inbox)
    frames = inbox.take()
    assert frames.data == whole + cut
    assert len(frames.edges) == 3
    for end in (ours, servers):
        end.close()
