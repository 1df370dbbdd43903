"""Two databases of one server are moved at the same time, each from a home of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from moving import MoveHome

pytestmark = pytest.mark.slow


@pytest.fixture
def moves(tmp_path: Path, older: str, south: str, older_other: str, hub: str) -> Iterator[tuple[MoveHome, MoveHome]]:
    """Moves of two databases of one server to two databases of another."""
    for dsn in (older, older_other):
        _run(
            dsn, "CREATE SCHEMA shop; CREATE TABLE shop.orders (id int PRIMARY KEY); INSERT INTO shop.orders VALUES (1)"
        )
    found = MoveHome(tmp_path / "first", older, south), MoveHome(tmp_path / "second", older_other, hub)
    yield found
    for each in found:
        each.close()


def _run(dsn: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement)  # type: ignore[call-overload]
        return cursor.fetchall() if cursor.description else []


def test_the_groups_of_the_second_move_need_another_name(moves: tuple[MoveHome, MoveHome]) -> None:
    first, second = moves
    first.run_all_until_switch()
    assert "GGS-01266" in second.step("prepare", "--from", "north", "--to", "south", fails=True)
    second.run_all_until_switch("--groups", "m2")
    assert "GGS-01253" in second.step("prepare", "--from", "north", "--to", "south", "--groups", "M3", fails=True)
    for number, move in enumerate(moves, 10):
        _run(move.north, f"INSERT INTO shop.orders VALUES ({number})")
        move.step("switch")
        assert _run(move.south, "SELECT id FROM shop.orders ORDER BY id") == [(1,), (number,)]
        move.step("finish")
    for move in moves:
        assert _run(move.north, "SELECT FROM pg_replication_slots WHERE database = current_database()") == []
