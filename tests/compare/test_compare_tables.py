"""COMPARE over real databases: every kind of table and difference, what is in flight, the repair script, the statement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ggshell.compare.drill import Kind
from ggshell.databases.postgres.compare_tables import ComparedTable, compare_tables, table_pairs
from ggshell.databases.postgres.repair import script
from ggshell.databases.postgres.session import connect
from ggshell.errors import NotFoundError
from ggshell.shell.cli import main
from ggshell.store.credential import CredentialStore
from ggshell.store.home import Home

SCHEMA = """
CREATE SCHEMA shop;
CREATE TABLE shop.orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text, price numeric(10,2),
  at timestamptz, data bytea, twice numeric GENERATED ALWAYS AS (price * 2) STORED);
CREATE TABLE shop."Order %lines" ("the order" text, line int, note text, PRIMARY KEY (line, "the order"));
CREATE TABLE shop.plain (a int, b text);
INSERT INTO shop.orders (name, price, at, data)
  SELECT 'name ' || n, n / 7.0, timestamptz '2026-11-20 08:00:00+00' + n * interval '1 s', decode(md5(n::text), 'hex')
    FROM generate_series(1, 3000) n;
INSERT INTO shop."Order %lines" SELECT 'Ä' || n / 3, n % 3, nullif(n % 5, 0)::text FROM generate_series(1, 2000) n;
INSERT INTO shop.plain SELECT n % 50, 'it''s \\ ' || n % 10 FROM generate_series(1, 300) n;
"""


def run(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)  # type: ignore[arg-type]


@pytest.fixture
def filled(north: str, south: str) -> tuple[str, str]:
    run(north, SCHEMA)
    run(south, SCHEMA)
    return north, south


def compared(dsns: tuple[str, str], wait: Any = lambda _: False, pattern: str = "shop.*") -> dict[str, ComparedTable]:
    connections = connect(dsns[0]), connect(dsns[1])
    pairs = table_pairs(connections, [pattern], "")
    found = {each.source.name: each for each in compare_tables(connections, pairs, 1.0, wait)}
    for connection in connections:
        connection.close()
    return found


def spoil(dsn: str) -> None:
    run(
        dsn,
        "DELETE FROM shop.orders WHERE id IN (1, 1500)",
        "UPDATE shop.orders SET price = price + 1, data = NULL WHERE id = 2000",
        "INSERT INTO shop.orders (id, name) OVERRIDING SYSTEM VALUE VALUES (9999, 'too many')",
        """UPDATE shop."Order %lines" SET note = 'it''s %s' WHERE "the order" = 'Ä7' AND line = 1""",
        "DELETE FROM shop.plain WHERE ctid IN (SELECT ctid FROM shop.plain WHERE a = 3 LIMIT 2)",
        "INSERT INTO shop.plain VALUES (7, NULL), (7, NULL)",
    )


def test_equal_databases_are_equal(filled: tuple[str, str]) -> None:
    found = compared(filled)
    assert {name: (each.source_rows, each.target_rows) for name, each in found.items()} == {
        "orders": (3000, 3000),
        "Order %lines": (2000, 2000),
        "plain": (300, 300),
    }
    assert all(not each.differences and not each.problem for each in found.values())


def test_every_difference_is_found_and_the_script_mends_it(filled: tuple[str, str]) -> None:
    spoil(filled[1])
    found = compared(filled)
    orders = {each.key: each.kind for each in found["orders"].differences}
    assert orders == {
        ("1",): Kind.MISSING,
        ("1500",): Kind.MISSING,
        ("2000",): Kind.CHANGED,
        ("9999",): Kind.EXTRA,
    }
    assert [(each.key, each.kind) for each in found["Order %lines"].differences] == [(("1", "Ä7"), Kind.CHANGED)]
    kinds = [each.kind for each in found["plain"].differences]
    assert (kinds.count(Kind.MISSING), kinds.count(Kind.EXTRA)) == (2, 2)
    text = script([(each.target, each.shape, each.differences) for each in found.values()])
    assert text.count("\nUPDATE ") == 2
    run(filled[1], text)
    assert all(not each.differences for each in compared(filled).values())


def test_what_is_in_flight_is_no_difference(filled: tuple[str, str]) -> None:
    """The change arrives while the comparison waits for the lag."""
    run(filled[0], "UPDATE shop.orders SET name = 'new' WHERE id < 5", "DELETE FROM shop.orders WHERE id = 77")
    run(filled[1], "DELETE FROM shop.orders WHERE id = 3000")
    waited: list[float] = []

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        run(filled[1], "UPDATE shop.orders SET name = 'new' WHERE id < 5", "DELETE FROM shop.orders WHERE id = 77")
        return False

    found = compared(filled, wait, "shop.orders")["orders"]
    assert [(each.key, each.kind, each.in_flight) for each in found.differences] == [(("3000",), Kind.MISSING, False)]
    assert waited == [1.0]


def test_ranges_of_texts_are_the_same_on_both_sides(north: str, south: str) -> None:
    for dsn, collation in ((north, "C"), (south, "pg_c_utf8")):
        run(
            dsn,
            f'CREATE TABLE t (k text COLLATE "{collation}" PRIMARY KEY, v int)',
            "INSERT INTO t SELECT chr(33 + n % 90) || chr(228 + n % 40) || n, n FROM generate_series(1, 45000) n",
        )
    run(south, "UPDATE t SET v = 0 WHERE v = 44000")
    found = compared((north, south), pattern="public.t")["t"]
    assert [each.target and each.target[1] for each in found.differences] == ["0"]
    assert (found.source_rows, found.target_rows) == (45000, 45000)


def test_a_table_or_a_column_that_the_target_lacks_is_said(filled: tuple[str, str]) -> None:
    run(filled[1], "DROP TABLE shop.plain", "ALTER TABLE shop.orders DROP COLUMN name")
    found = compared(filled)
    assert found["plain"].problem == "there is no table shop.plain in the target"
    assert found["orders"].problem == "the target has no column name"


def test_a_target_without_the_key_may_hold_a_row_twice_or_without_it(north: str, south: str) -> None:
    run(
        north, "CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t SELECT n, 'v' FROM generate_series(1, 9) n"
    )
    run(south, "CREATE TABLE t (id int, v text)", "INSERT INTO t SELECT n, 'v' FROM generate_series(1, 9) n")
    run(south, "INSERT INTO t VALUES (4, 'v'), (4, 'v')")
    found = compared((north, south), pattern="public.t")["t"]
    assert [(each.kind, each.key, each.target) for each in found.differences] == [
        (Kind.EXTRA, ("4", "1"), ("4", "v")),
        (Kind.EXTRA, ("4", "2"), ("4", "v")),
    ]
    run(south, script([(found.target, found.shape, found.differences)]))
    assert not compared((north, south), pattern="public.t")["t"].differences
    run(south, "INSERT INTO t VALUES (NULL, 'v')")
    found = compared((north, south), pattern="public.t")["t"]
    assert found.problem == "1 rows of the target have no value in the source's key (id)"


def test_targets_are_named_by_a_pattern(filled: tuple[str, str]) -> None:
    connections = connect(filled[0]), connect(filled[1])
    for pattern, wanted in (("mirror.*", "mirror.orders"), ("mirror", "mirror.orders"), ("m.o", "m.o")):
        assert [str(target) for _, target in table_pairs(connections, ["shop.orders"], pattern)] == [wanted]
    with pytest.raises(NotFoundError):
        table_pairs(connections, ["shop.*"], "", ["shop"])
    for connection in connections:
        connection.close()


def test_the_statement_tells_rows_writes_the_script_and_fails(
    filled: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Home(tmp_path)
    home.ensure()
    for alias, dsn in zip(("north", "south"), filled, strict=True):
        CredentialStore(home).add(alias, dsn, "")
    command = ["--home", str(tmp_path), "--format", "json", "-c"]
    assert main([*command, "COMPARE north TO south"]) == 0
    spoil(filled[1])
    capsys.readouterr()
    assert main([*command, "COMPARE north TO south, TABLE shop.orders, LAG 0 SEC, REPAIR ./repair.sql"]) == 1
    answer = json.loads(capsys.readouterr().out)
    changed = next(row for row in answer["rows"] if row[1] == "changed")
    assert changed[:3] == ["shop.orders", "changed", {"id": "2000"}]
    assert (set(changed[3]), changed[4]["data"], changed[5]) == ({"price", "data"}, None, False)
    assert "4 rows differ" in answer["message"]
    run(filled[1], (tmp_path / "repair.sql").read_text())
    assert main(["--home", str(tmp_path), "-c", "COMPARE north TO south, TABLE shop.orders"]) == 0
    assert "shop.orders" in capsys.readouterr().out
