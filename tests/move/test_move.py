"""A whole move with real databases, clients that go on writing, and the way back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from moving import MoveHome
from processes import until

from ggshell.move.state import MoveFile

pytestmark = pytest.mark.slow

SCHEMA = """
CREATE SCHEMA shop;
CREATE TYPE shop.state AS ENUM ('new', 'paid');
CREATE TABLE shop.orders (id bigserial PRIMARY KEY, what text NOT NULL, amount int NOT NULL, state shop.state DEFAULT 'new',
    at timestamptz DEFAULT now());
CREATE INDEX ON shop.orders (what);
CREATE TABLE shop.lines (order_id bigint REFERENCES shop.orders, line int GENERATED ALWAYS AS IDENTITY, note text);
CREATE TABLE shop.events (id int, at date, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE shop.events_2026 PARTITION OF shop.events FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE VIEW shop.totals AS SELECT count(*) AS orders, sum(amount) AS amount FROM shop.orders;
CREATE EXTENSION hstore;
CREATE SCHEMA code;
CREATE FUNCTION code.twice(n int) RETURNS int LANGUAGE sql AS 'SELECT 2 * n';
CREATE SEQUENCE code.tickets START 7;
INSERT INTO shop.orders (what, amount) SELECT 'before ' || n, n FROM generate_series(1, 2000) n;
INSERT INTO shop.lines (order_id, note) SELECT n, repeat('x', n % 50) FROM generate_series(1, 500) n;
INSERT INTO shop.events SELECT n, date '2026-01-01' + n % 300 FROM generate_series(1, 500) n;
"""
SCRIPTS = Path(__file__).parents[2] / "scripts"
INSERT = "INSERT INTO shop.orders (what, amount) VALUES (%s, 1)"
ROWS = "SELECT what FROM shop.orders"
MOST_DOWNTIME = 2.0
"""The goal of a move, in seconds."""


@pytest.fixture
def move(tmp_path: Path, older: str, south: str) -> Iterator[MoveHome]:
    """A move from PostgreSQL 15 to 18."""
    with psycopg.connect(older, autocommit=True) as connection:
        connection.execute(SCHEMA)
    found = MoveHome(tmp_path / "home", older, south)
    yield found
    found.close()


def _in(dsn: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def _is_read_only(dsn: str) -> bool:
    """Whether the database is closed; the session is not one of those that a switch ends."""
    with psycopg.connect(dsn, application_name="ggshell test") as connection:
        return connection.execute("SHOW default_transaction_read_only").fetchone() == ("on",)


def test_a_database_is_moved_and_back_under_load_without_losing_a_row(
    move: MoveHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    from benches.ledger import Clients

    clients = Clients((move.north, move.south), INSERT, count=5, pause=0.01)
    try:
        move.run_all_until_switch()
        assert _is_read_only(move.south)
        _in(move.north, "ALTER TABLE shop.orders ADD note text DEFAULT 'none'")  # DDL is replicated
        assert "rows of 3 tables were equal" in move.step("switch")
        assert _is_read_only(move.north)
        assert not _is_read_only(move.south)
        before = len(clients.acknowledged)
        until("clients write in the target", lambda: len(clients.acknowledged) > before + 50)
        _in(move.south, "ALTER TABLE shop.orders DROP note")
        assert "rows of 3 tables were equal" in move.step("back")
        before = len(clients.acknowledged)
        until("clients write in the source again", lambda: len(clients.acknowledged) > before + 50)
    finally:
        clients.stop()
    assert clients.downtime <= MOST_DOWNTIME
    move.step("verify")
    for dsn in (move.north, move.south):
        assert clients.faults(dsn, ROWS) == {"lost": 0, "doubled": 0, "unexpected": 0}
    move.step("finish")
    for dsn in (move.north, move.south):
        assert _in(dsn, "SELECT FROM pg_replication_slots WHERE database = current_database()") == []
        assert _in(dsn, "SELECT evtname FROM pg_event_trigger") == []
    assert not [*(move.home.root / "dirdat").glob("m*")], "a later move would apply the old changes"


def test_sequences_continue_in_the_target_without_a_gap(move: MoveHome) -> None:
    move.run_all_until_switch()
    _in(move.north, "INSERT INTO shop.orders (what, amount) VALUES ('last', 1)")
    move.step("switch")
    last = _in(move.south, "SELECT max(id) FROM shop.orders")[0][0]
    assert _in(move.south, "INSERT INTO shop.orders (what, amount) VALUES ('next', 1) RETURNING id") == [(last + 1,)]  # type: ignore[operator]


@contextmanager
def _last_marker_waits(move: MoveHome) -> Iterator[None]:
    """Hold up the marker that a switch sends after it has closed the source."""
    last = MoveFile(move.home.root).get().marker + 3  # two markers come before the source is closed
    with psycopg.connect(move.south, autocommit=True) as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute("SET ggshell.own_ddl = on")
        connection.execute(
            "CREATE FUNCTION ggshell.wait() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN IF new.number = {last} THEN PERFORM pg_advisory_xact_lock(1); END IF; RETURN new; END $$"
        )
        connection.execute(
            "CREATE TRIGGER wait BEFORE UPDATE ON ggshell.move_markers FOR EACH ROW EXECUTE FUNCTION ggshell.wait()"
        )
        connection.execute("ALTER TABLE ggshell.move_markers ENABLE ALWAYS TRIGGER wait")
        connection.execute("SELECT pg_advisory_lock(1)")
        yield


def test_a_switch_that_cannot_drain_lets_clients_write_again(move: MoveHome) -> None:
    move.run_all_until_switch()
    with _last_marker_waits(move):
        assert "The switch was undone" in move.step("switch", "--limit", "1", fails=True)
    assert not _is_read_only(move.north)
    assert _is_read_only(move.south)


def test_a_prepared_transaction_prevents_the_switch(move: MoveHome) -> None:
    move.run_all_until_switch()
    with psycopg.connect(move.north, autocommit=True) as connection:
        connection.execute("BEGIN")
        connection.execute("INSERT INTO shop.orders (what, amount) VALUES ('prepared', 1)")
        connection.execute("PREPARE TRANSACTION 'held'")
        assert "GGS-01250" in move.step("switch", fails=True)
        connection.execute("COMMIT PREPARED 'held'")
    move.step("switch")
    assert _in(move.south, "SELECT count(*) FROM shop.orders WHERE what = 'prepared'") == [(1,)]


def test_a_move_does_not_begin_with_an_error_of_the_check_that_is_not_accepted(move: MoveHome) -> None:
    """Large objects would be lost. Nothing is changed before the error is accepted."""
    _in(move.north, "SELECT lo_create(0)")
    assert "GGS-01264" in move.step("prepare", "--from", "north", "--to", "south", fails=True)
    assert not _is_read_only(move.south)
    assert MoveFile(move.home.root).find() is None
    move.step("prepare", "--from", "north", "--to", "south", "--accept", "ggs-01044")
    assert _is_read_only(move.south)


def test_trails_of_something_else_prevent_a_move(move: MoveHome) -> None:
    (move.home.root / "dirdat" / "m2000000000").touch()
    assert "GGS-01265" in move.step("prepare", "--from", "north", "--to", "south", fails=True)


def test_steps_say_which_one_comes_first(move: MoveHome) -> None:
    assert "GGS-01251" in move.step("load", fails=True)
    move.step("prepare", "--from", "north", "--to", "south")
    assert "GGS-01257" in move.step("follow", fails=True)
    assert "GGS-01260" in move.step("switch", fails=True)
    assert "GGS-01253" in move.step("prepare", "--from", "south", "--to", "north", fails=True)


def test_an_interrupted_step_is_run_again(move: MoveHome) -> None:
    move.step("prepare", "--from", "north", "--to", "south")
    move.step("prepare")
    for name in ("load", "load", "follow", "follow", "verify", "switch"):
        move.step(name)
    assert "GGS-01261" in move.step("switch", fails=True)
    file = MoveFile(move.home.root)
    state = file.get()
    file.put(replace(state, switches=(replace(state.switches[0], compared=False),)))
    assert "the comparison was interrupted" in move.step("switch")
    assert file.get().switches == state.switches


def test_objects_that_only_one_side_has_are_named(move: MoveHome) -> None:
    move.run_all_until_switch()
    with psycopg.connect(move.south, autocommit=True) as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute("SET ggshell.own_ddl = on")
        connection.execute("CREATE INDEX extra ON shop.orders (amount)")
    assert re.search(r"index: (\d+) in north, (?!\1 )\d+ in south", move.step("verify", fails=True))


@pytest.mark.parametrize(("step", "read_only"), [("switch", True), ("back", False)])
def test_a_killed_switch_is_completed_or_undone(move: MoveHome, step: str, read_only: bool) -> None:
    move.run_all_until_switch()
    with _last_marker_waits(move):
        switching = move.begin("switch", "--limit", "60")
        until("the source is closed", lambda: _is_read_only(move.north))
        switching.kill()
        switching.wait()
    assert "GGS-01256" in move.step("finish", fails=True)
    move.step(step, "--limit", "60")
    assert (_is_read_only(move.north), _is_read_only(move.south)) == (read_only, not read_only)
