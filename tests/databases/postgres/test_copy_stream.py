"""The protocol read off the socket gives what libpq gives, however the bytes are cut."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import until
from psycopg.conninfo import make_conninfo

from ggshell.databases.postgres import pgoutput, session
from ggshell.databases.postgres.copy_stream import CopyStream, Framer, LibpqStream, SocketStream, open_stream
from ggshell.errors import ConnectionLostError, DatabaseError

COMMAND = "START_REPLICATION SLOT \"s{}\" LOGICAL 0/0 (proto_version '1', publication_names 'p')"
KINDS = {"socket": SocketStream, "libpq": LibpqStream}


def message(kind: int, body: bytes) -> bytes:
    return struct.pack(">BI", kind, 4 + len(body)) + body


messages = st.lists(st.tuples(st.sampled_from(b"ddddNSc"), st.binary(max_size=30)), max_size=12)


@given(messages, st.data())
def test_any_cut_of_the_stream_gives_the_same_messages(
    given_messages: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    stream = b"".join(message(*each) for each in given_messages)
    framer, bodies, others, place = Framer(), [], [], 0
    while place < len(stream):
        size = data.draw(st.integers(1, len(stream) - place))
        found = framer.feed(stream[place : place + size])
        bodies += found[0]
        others += found[1]
        place += size
    assert bodies == [body for kind, body in given_messages if kind == ord("d")]
    assert others == [(kind, body) for kind, body in given_messages if kind != ord("d")]


@pytest.fixture
def dsn(north: str) -> Iterator[str]:
    with session.connect(north) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        connection.execute("CREATE PUBLICATION p FOR TABLE t")
        for name in "12":
            connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [f"s{name}"])
    yield north


def take(stream: CopyStream, commits: int) -> list[bytes]:
    """The payloads up to so many commits (the frame around them tells each reader's own time)."""
    found: list[bytes] = []

    def arrived() -> bool:
        for body in stream.take():
            if body[0] == pgoutput.XLOG_DATA:
                found.append(body[pgoutput.PAYLOAD :])
        return sum(payload[0] == pgoutput.COMMIT for payload in found) >= commits

    until("the commits arrive", arrived)
    return found


def test_both_ways_read_the_same_messages(dsn: str) -> None:
    with session.connect(dsn) as connection:
        connection.execute("INSERT INTO t SELECT n, 'row ' || n FROM generate_series(1, 3000) n")
        connection.execute("INSERT INTO t VALUES (0, repeat('long ', 400000))")
        connection.execute("DELETE FROM t WHERE id < 100")
    found = {}
    for number, kind in enumerate(KINDS, 1):
        stream = KINDS[kind](session.connect(dsn, replication=True), COMMAND.format(number))
        found[kind] = take(stream, 3)
        stream.close()
    assert found["socket"] == found["libpq"]
    assert len(found["socket"]) > 3100


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_confirmed_is_seen_by_the_server(dsn: str, kind: str) -> None:
    with session.connect(dsn) as connection:
        connection.execute("INSERT INTO t VALUES (1, 'a')")
        stream = KINDS[kind](session.connect(dsn, replication=True), COMMAND.format(1))
        take(stream, 1)
        end = session.current_position(connection)[0]
        stream.send(pgoutput.standby_status(end, 0))
        query = "SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots WHERE slot_name = 's1'"
        until("the slot moves", lambda: connection.execute(query).fetchone()[0] == end)  # type: ignore[index]
        stream.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_slot_that_is_taken_or_missing_is_refused_in_the_servers_words(dsn: str, kind: str) -> None:
    first = KINDS[kind](session.connect(dsn, replication=True), COMMAND.format(1))
    with pytest.raises(DatabaseError, match=r"slot .* is active for PID") as caught:
        KINDS[kind](session.connect(dsn, replication=True), COMMAND.format(1))
    assert caught.value.code == "GGS-00411"
    first.close()
    with pytest.raises(DatabaseError, match="does not exist"):
        KINDS[kind](session.connect(dsn, replication=True), COMMAND.format(3))


@pytest.mark.parametrize("kind", KINDS)
def test_a_walsender_that_is_ended_is_a_lost_connection(dsn: str, kind: str) -> None:
    stream = KINDS[kind](session.connect(dsn, replication=True), COMMAND.format(1))
    with session.connect(dsn) as connection:
        connection.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = 's1'")
    with pytest.raises(ConnectionLostError):
        take(stream, 1)
    stream.close()


def test_the_socket_is_read_where_the_connection_is_plain_and_libpq_asked_where_gss_may_hide_it(dsn: str) -> None:
    plain = open_stream(session.connect(dsn, replication=True), COMMAND.format(1))
    hidden = open_stream(session.connect(make_conninfo(dsn, gssencmode="prefer"), replication=True), COMMAND.format(2))
    assert (type(plain), type(hidden)) == (SocketStream, LibpqStream)
    plain.close()
    hidden.close()
