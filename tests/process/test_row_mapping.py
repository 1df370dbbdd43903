"""FILTER, WHERE, COLMAP and what changes operations, with real processes and databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import until
from ways import REP1, Way


@pytest.fixture
def way(tmp_path: Path, north: str, south: str) -> Iterator[Way]:
    way = Way(tmp_path / "home", north, south)
    yield way
    way.close()


def replicat(way: Way, *lines: str) -> None:
    way.write("rep1", "\n".join(["REPLICAT rep1", "USERIDALIAS south", *lines, ""]))


def until_same(way: Way, query: str, expected: list[tuple[object, ...]]) -> None:
    until(f"{query} gives {expected}", lambda: way.in_south(query) == expected)


def test_colmap_computes_columns_and_filter_chooses_rows(way: Way) -> None:
    way.in_south("CREATE TABLE b.wares (ware int PRIMARY KEY, label text, price numeric, origin text, made text)")
    replicat(
        way,
        "MAP a.items, TARGET b.wares, FILTER (ON INSERT, price > 0), WHERE (name = @ABSENT OR name <> 'never'),",
        "  COLMAP (USEDEFAULTS, ware = id, label = @STRCAT (@STRUP (name), '-', id), origin = 'north',",
        "  made = @GETENV ('GGHEADER', 'OPTYPE'));",
    )
    way.add()
    way.start()
    way.in_north(
        "INSERT INTO a.items VALUES (1, 'one', 1.50), (2, 'two', -1), (3, 'never', 3), (4, 'four', 4)",
        "UPDATE a.items SET name = 'eins', price = 2 WHERE id = 1",
        "UPDATE a.items SET id = 5 WHERE id = 4",
        "INSERT INTO a.items VALUES (6, 'six', 6)",
        "DELETE FROM a.items WHERE id = 6",
        "INSERT INTO a.items VALUES (9, 'last', 9)",
    )
    expected = [
        (1, "EINS-1", "2", "north", "SQL COMPUPDATE"),
        (5, "FOUR-5", "4", "north", "PK UPDATE"),
        (9, "LAST-9", "9", "north", "INSERT"),
    ]
    until_same(way, "SELECT ware, label, price::text, origin, made FROM b.wares ORDER BY ware", expected)
    way.run("STOP REPLICAT rep1")
    assert way.in_south("SELECT count(*) FROM b.items") == [(0,)]


def test_a_table_goes_to_its_twin_and_its_history(way: Way) -> None:
    way.in_south("CREATE TABLE b.history (id int, name text, operation text, changed text)")
    replicat(
        way,
        "MAP a.items, TARGET b.items;",
        "INSERTALLRECORDS",
        "MAP a.items, TARGET b.history, COLMAP (USEDEFAULTS, operation = @GETENV ('GGHEADER', 'OPTYPE'),",
        "  changed = @GETENV ('TRANSACTION', 'CSN'));",
    )
    way.add()
    way.start()
    way.in_north(
        "INSERT INTO a.items SELECT number, 'x', 1 FROM generate_series(1, 40) number",
        "UPDATE a.items SET name = 'y' WHERE id = 7",
        "DELETE FROM a.items WHERE id = 7",
    )
    until_same(way, "SELECT count(*) FROM b.history", [(42,)])
    found = way.in_south("SELECT name, operation FROM b.history WHERE id = 7 ORDER BY changed")
    assert found == [("x", "INSERT"), ("y", "SQL COMPUPDATE"), (None, "DELETE")]
    way.same()
    shown = way.run("STATS REPLICAT rep1, TOTAL")
    assert "a.items to b.history" in shown
    assert "a.items to b.items" in shown


def test_deletes_become_updates(way: Way) -> None:
    way.in_south("ALTER TABLE b.items ADD gone text")
    replicat(
        way,
        "UPDATEDELETES",
        "MAP a.items, TARGET b.items, COLMAP (USEDEFAULTS, gone = @CASE (GGS_OP_TYPE, 'DELETE', 'yes', 'no'));",
    )
    way.add()
    way.start()
    way.in_north("INSERT INTO a.items VALUES (1, 'one', 1), (2, 'two', 2)", "DELETE FROM a.items WHERE id = 2")
    until_same(way, "SELECT id, name, gone FROM b.items ORDER BY id", [(1, "one", "no"), (2, "two", "yes")])


def test_a_column_that_nobody_knows_ends_replicat_at_its_place(way: Way) -> None:
    replicat(way, "MAP a.items, TARGET b.items, COLMAP (USEDEFAULTS, name = @STRUP (nmae));")
    way.add()
    way.start("ext1")
    way.run("START REPLICAT rep1", fails=False)
    way.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    report = way.ends(REP1)
    assert "a.items has no column nmae" in report
    assert "did you mean name" in report
