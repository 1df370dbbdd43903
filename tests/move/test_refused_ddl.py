"""DDL that the target refuses during a move, and DDL that is not captured: what is reported, and how the move continues."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from command_line import run_ggshell
from moving import MoveHome
from processes import until

from ggshell.clock import SystemClock
from ggshell.connectors.move_side import Direction
from ggshell.errors import StateError
from ggshell.move import steps
from ggshell.move.draining import Drain
from ggshell.move.switching import switch

pytestmark = pytest.mark.slow


@pytest.fixture
def move(tmp_path: Path, older: str, south: str) -> Iterator[MoveHome]:
    """A move that follows."""
    _run(older, "CREATE SCHEMA shop; CREATE TABLE shop.orders (id int PRIMARY KEY)")
    found = MoveHome(tmp_path / "home", older, south)
    found.run_all_until_switch()
    yield found
    found.close()


def _run(dsn: str, *statements: str) -> list[tuple[object, ...]]:
    """Run statements as an operator who corrects a database during a move."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in ("SET default_transaction_read_only = off", "SET ggshell.own_ddl = on", *statements):
            cursor = connection.execute(statement)  # type: ignore[call-overload]
        return cursor.fetchall() if cursor.description else []


def _reported(move: MoveHome, group: str, text: str) -> None:
    report = move.home.root / "dirrpt" / f"{group}.rpt"
    until(f"{group} reports {text}", lambda: text in report.read_text(encoding="utf-8"))


def _abended(move: MoveHome, text: str) -> None:
    """Wait for the Replicat's end; the steps name it."""
    _reported(move, "MVREP1", text)
    until("abended", lambda: "ABENDED" in run_ggshell("--home", move.home.root, "-c", "STATUS REPLICAT MVREP1").stdout)
    assert "GGS-01259  REPLICAT MVREP1 is ABENDED" in move.step("switch", fails=True)


def test_refused_statements_stop_the_replicat_and_nothing_is_lost(move: MoveHome) -> None:
    _run(move.south, "CREATE TABLE shop.taken (other int)", "DROP ROLE IF EXISTS ggs_only_source")
    with psycopg.connect(move.north) as application:
        application.execute("INSERT INTO shop.orders VALUES (1)")
        application.execute("ALTER TABLE shop.orders ADD note text")
        application.execute("CREATE TABLE shop.taken (id int PRIMARY KEY)")
        application.execute("INSERT INTO shop.taken VALUES (2)")
        application.execute("DROP ROLE IF EXISTS ggs_only_source")
        application.execute("CREATE ROLE ggs_only_source")
        application.execute("GRANT SELECT ON shop.taken TO ggs_only_source")
    _abended(move, 'relation "taken" already exists (SQLSTATE 42P07)')
    assert _run(move.south, "SELECT count(*) FROM shop.orders") == [(0,)], "half of a transaction"
    _run(move.south, "DROP TABLE shop.taken")
    run_ggshell("--home", move.home.root, "-c", "START REPLICAT MVREP1")
    _abended(move, 'role "ggs_only_source" does not exist (SQLSTATE 42704)')
    _run(move.south, "CREATE ROLE ggs_only_source")
    move.step("follow")
    move.step("switch")
    assert _run(move.south, "SELECT o.id, o.note, t.id FROM shop.orders o, shop.taken t") == [(1, None, 2)]
    for dsn in (move.north, move.south):
        _run(dsn, "DROP OWNED BY ggs_only_source", "DROP ROLE ggs_only_source")


def test_disabled_event_triggers_prevent_the_switch(move: MoveHome) -> None:
    with psycopg.connect(move.north, autocommit=True) as application:
        application.execute("ALTER EVENT TRIGGER ggshell_ddl DISABLE")
        _reported(move, "MVEXT1", "WARNING GGS-00581")
        application.execute("ALTER TABLE shop.orders ALTER id SET DEFAULT 7")  # no difference of rows or of numbers
    for step in ("verify", "switch"):
        assert "GGS-01267  event triggers of ggshell are disabled or missing in north" in move.step(step, fails=True)
    run_ggshell("--home", move.home.root, "-c", "DBLOGIN USERIDALIAS north; ADD SCHEMATRANDATA shop")
    _run(move.south, "ALTER TABLE shop.orders ALTER id SET DEFAULT 7")
    _reported(move, "MVEXT1", "INFO    GGS-00581")
    move.step("switch")


def test_a_schema_that_is_newer_than_the_move_prevents_the_switch(move: MoveHome) -> None:
    """Its rows are not captured, so they would be missing in the target."""
    _run(move.north, "CREATE SCHEMA fresh", "CREATE TABLE fresh.found (id int PRIMARY KEY)")
    for step in ("verify", "switch"):
        assert "GGS-01268  schemas of north did not exist when" in move.step(step, fails=True)
    move.step("prepare", "--from", "north", "--to", "south", "--schemas", "shop")
    move.step("verify")


def test_a_schema_of_the_last_moment_undoes_the_switch(move: MoveHome) -> None:
    """It is created after the checks, just before the source closes."""

    def say(text: str) -> None:
        if text.startswith("Both databases have"):
            _run(move.north, "CREATE SCHEMA last", "CREATE TABLE last.found (id int PRIMARY KEY)")

    clock = SystemClock()
    drain = Drain(move.home, clock, threading.Event().wait, lambda _: None)
    with pytest.raises(StateError, match="did not exist when the move was prepared, and are not moved: last"):
        switch(steps.Means(move.home, lambda *_: True, say, drain), clock, Direction.FORWARD)
    _run(move.north, "INSERT INTO shop.orders VALUES (1)", "DROP SCHEMA last CASCADE")
    assert "north is read-only" in move.step("switch")
