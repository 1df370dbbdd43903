"""COMPARE of real databases: every kind of table and difference, rows in flight, the repair script, the statement."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ggshell.cli.commands.compare import compare
from ggshell.cli.main import main
from ggshell.cli.options import Options
from ggshell.cli.session import Session
from ggshell.connectors.heartbeat_tables import HeartbeatTableSettings
from ggshell.connectors.postgres import heartbeat
from ggshell.connectors.postgres.checkpoint_sql import PostgresCheckpointTables
from ggshell.connectors.postgres.compare_side import PostgresComparison
from ggshell.connectors.postgres.describe import resolve
from ggshell.connectors.postgres.repair import script
from ggshell.connectors.postgres.session import connect
from ggshell.demo.postgres_server import find_binaries
from ggshell.errors import NotFoundError
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home
from ggshell.pipeline.compare import tables
from ggshell.pipeline.compare.drill import DifferenceKind
from ggshell.pipeline.compare.tables import MOST_DIFFERENCES, ComparedTable, compare_tables, table_pairs
from ggshell.pipeline.heartbeat.names import HeartbeatNames
from ggshell.types import TableName

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


def compared(
    dsns: tuple[str, str], wait: Any = lambda _: False, pattern: str = "shop.*", most: int = MOST_DIFFERENCES
) -> dict[str, ComparedTable]:
    databases = PostgresComparison(connect(dsns[0])), PostgresComparison(connect(dsns[1]))
    pairs = table_pairs(databases, [pattern], "")
    found = {each.source.name: each for each in compare_tables(databases, pairs, 1.0, wait, most)}
    for database in databases:
        database.connection.close()
    return found


def with_home(folder: Path, dsns: tuple[str, str]) -> None:
    """Make a home with the aliases north and south."""
    home = Home(folder)
    home.ensure()
    for alias, dsn in zip(("north", "south"), dsns, strict=True):
        CredentialStore(home).add(alias, dsn, "")


@pytest.mark.parametrize("hidden", [0, 1])
def test_a_table_with_rows_that_row_security_hides_is_not_compared(filled: tuple[str, str], hidden: int) -> None:
    run(
        filled[hidden],
        "CREATE ROLE clerk LOGIN; GRANT USAGE ON SCHEMA shop TO clerk; GRANT SELECT ON ALL TABLES IN SCHEMA shop TO clerk",
        "ALTER TABLE shop.orders ENABLE ROW LEVEL SECURITY; CREATE POLICY none ON shop.orders USING (false)",
    )
    try:
        dsns = tuple(f"{dsn} user=clerk" if number == hidden else dsn for number, dsn in enumerate(filled))
        found = compared((dsns[0], dsns[1]))
        assert "row security applies to the user for shop.orders" in found["orders"].problem
        assert {each.problem for name, each in found.items() if name != "orders"} == {""}
    finally:
        run(filled[hidden], "DROP OWNED BY clerk; DROP ROLE clerk")


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


def test_equal_databases_compare_equal(filled: tuple[str, str]) -> None:
    found = compared(filled)
    assert {name: (each.source_rows, each.target_rows) for name, each in found.items()} == {
        "orders": (3000, 3000),
        "Order %lines": (2000, 2000),
        "plain": (300, 300),
    }
    assert all(not each.differences and not each.problem for each in found.values())


def test_the_physical_order_of_rows_does_not_matter_and_null_differs_from_an_empty_text(north: str, south: str) -> None:
    for dsn in (north, south):
        run(
            dsn,
            "CREATE TABLE t (id int PRIMARY KEY, v text)",
            "INSERT INTO t SELECT n, 'v' FROM generate_series(1, 99) n",
        )
    run(north, "UPDATE t SET v = v WHERE id % 7 = 0")
    assert not compared((north, south), pattern="public.t")["t"].differences
    run(north, "UPDATE t SET v = NULL WHERE id = 2")
    run(south, "UPDATE t SET v = '' WHERE id = 2")
    (found,) = compared((north, south), pattern="public.t")["t"].differences
    assert (found.source, found.target) == (("2", None), ("2", ""))


def test_rows_that_have_swapped_their_values_differ(north: str, south: str) -> None:
    """A sum of hashes that add up the hashes of the columns would be equal."""
    for dsn in (north, south):
        run(
            dsn,
            'CREATE TABLE t (id int PRIMARY KEY, bucket text COLLATE "C", note text COLLATE "ucs_basic")',
            "INSERT INTO t SELECT n, 'b' || n, 'n' || n FROM generate_series(1, 99) n",
        )
    assert not compared((north, south), pattern="public.t")["t"].differences
    run(south, "UPDATE t SET note = CASE id WHEN 5 THEN 'n6' ELSE 'n5' END WHERE id IN (5, 6)")
    run(south, "UPDATE t SET bucket = note, note = bucket WHERE id = 9")
    found = compared((north, south), pattern="public.t")["t"].differences
    assert sorted(each.key for each in found) == [("5",), ("6",), ("9",)]


def test_rows_of_inheritance_children_are_compared_with_their_own_table_only(north: str, south: str) -> None:
    for dsn in (north, south):
        run(
            dsn,
            "CREATE TABLE parent (id int PRIMARY KEY, v text)",
            "CREATE TABLE child (PRIMARY KEY (id)) INHERITS (parent)",
            "CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY LIST (id)",
            "CREATE TABLE part PARTITION OF parts DEFAULT; INSERT INTO parts VALUES (1), (2), (3)",
            "INSERT INTO parent VALUES (1, 'same key'); INSERT INTO child VALUES (1, 'same key'), (2, 'x')",
        )
    found = compared((north, south), pattern="public.*")
    assert {name: (each.source_rows, each.target_rows) for name, each in found.items()} == {
        "parent": (1, 1),
        "child": (2, 2),
        "parts": (3, 3),
    }
    run(south, "UPDATE child SET v = 'y' WHERE id = 2")
    found = compared((north, south), pattern="public.*")
    assert not found["parent"].differences
    (changed,) = found["child"].differences
    assert (changed.key, changed.kind) == (("2",), DifferenceKind.CHANGED)


def test_the_own_schema_is_left_out_of_patterns(north: str, south: str) -> None:
    """No statement names the secret of the DDL capture, and COMPARE and ADD TRANDATA leave the bookkeeping out silently."""
    for dsn in (north, south):
        run(
            dsn,
            "CREATE TABLE t (id int PRIMARY KEY); CREATE SCHEMA ggshell; CREATE TABLE ggshell.ddl_secret (secret text)",
            "CREATE TABLE ggshell.load (source text); CREATE TABLE ggshell.move_markers (direction text PRIMARY KEY)",
        )
    assert [str(each.source) for each in compared((north, south), pattern="*.*").values()] == ["public.t"]
    with connect(north) as connection:
        assert [str(each) for each in resolve(connection, "ggshell.move_markers")] == ["ggshell.move_markers"]
        for name in ("ggshell.ddl_secret", "ggshell.*", "gg*.ddl_*"):
            with pytest.raises(NotFoundError):
                resolve(connection, name)


def test_every_difference_is_found_and_the_script_repairs_it(filled: tuple[str, str]) -> None:
    spoil(filled[1])
    found = compared(filled)
    orders = {each.key: each.kind for each in found["orders"].differences}
    assert orders == {
        ("1",): DifferenceKind.MISSING,
        ("1500",): DifferenceKind.MISSING,
        ("2000",): DifferenceKind.CHANGED,
        ("9999",): DifferenceKind.EXTRA,
    }
    assert [(each.key, each.kind) for each in found["Order %lines"].differences] == [
        (("1", "Ä7"), DifferenceKind.CHANGED)
    ]
    kinds = [each.kind for each in found["plain"].differences]
    assert (kinds.count(DifferenceKind.MISSING), kinds.count(DifferenceKind.EXTRA)) == (2, 2)
    text = script(found.values())
    assert text.count("\nUPDATE ") == 2
    run(filled[1], text)
    assert all(not each.differences for each in compared(filled).values())


def test_a_repair_script_does_not_change_a_row_that_has_changed_since(filled: tuple[str, str]) -> None:
    spoil(filled[1])
    found = compared(filled)["orders"]
    run(filled[1], "UPDATE shop.orders SET price = 7 WHERE id IN (2000, 9999)")
    run(filled[1], script([found]))
    again = compared(filled)["orders"].differences
    assert [(each.key, each.kind) for each in again] == [
        (("2000",), DifferenceKind.CHANGED),
        (("9999",), DifferenceKind.EXTRA),
    ]


def test_a_repair_script_handles_numbers_with_more_digits_than_the_source_has(north: str, south: str) -> None:
    for dsn, kind in ((north, "numeric(10,2)"), (south, "numeric")):
        run(dsn, f"CREATE TABLE t (id int PRIMARY KEY, n {kind})", "INSERT INTO t VALUES (1, 1.5), (2, 2)")
    run(south, "UPDATE t SET n = 1.505 WHERE id = 1")
    found = compared((north, south), pattern="public.t")["t"]
    run(south, script([found]))
    assert not compared((north, south), pattern="public.t")["t"].differences


def test_a_repair_script_writes_backslashes_whatever_the_setting_of_the_target(north: str, south: str) -> None:
    for dsn in (north, south):
        run(dsn, r"CREATE TABLE t (id int PRIMARY KEY, v text)", r"INSERT INTO t VALUES (1, 'a\b'), (3, 'c:\'';')")
    run(
        north,
        r"INSERT INTO t VALUES (2, 'it''s \'), (4, '\''; DROP TABLE t; --')",
        r"UPDATE t SET v = '\n' WHERE id = 1",
    )
    run(north, "DELETE FROM t WHERE id = 3")
    found = compared((north, south), pattern="public.t")["t"]
    run(south, "SET standard_conforming_strings = off", script([found]))
    assert not compared((north, south), pattern="public.t")["t"].differences


def test_a_role_that_may_not_mark_its_session_changes_nothing(filled: tuple[str, str], tmp_path: Path) -> None:
    spoil(filled[1])
    found = compared(filled)["orders"]
    file = tmp_path / "repair.sql"
    file.write_text(script([found]))
    run(
        filled[1], "CREATE ROLE plain LOGIN", "GRANT USAGE ON SCHEMA shop TO plain", "GRANT ALL ON shop.orders TO plain"
    )
    login = filled[1].replace("user=postgres", "user=plain")
    try:
        said = subprocess.run(
            [find_binaries() / "psql", "-f", file, login], capture_output=True, text=True, check=False
        )
    finally:
        run(filled[1], "DROP OWNED BY plain", "DROP ROLE plain")
    assert "permission denied for function pg_replication_origin" in said.stderr
    assert "ROLLBACK" in said.stdout
    assert compared(filled)["orders"].differences == found.differences


def test_a_role_that_may_not_suppress_triggers_is_warned_and_repairs(filled: tuple[str, str], tmp_path: Path) -> None:
    spoil(filled[1])
    found = compared(filled)["orders"]
    file = tmp_path / "repair.sql"
    file.write_text(script([found]))
    functions = ("create(text)", "oid(text)", "session_setup(text)", "session_reset()", "drop(text)")
    grants = [f"GRANT EXECUTE ON FUNCTION pg_replication_origin_{each} TO plain" for each in functions]
    rights = ("GRANT USAGE ON SCHEMA shop TO plain", "GRANT ALL ON shop.orders TO plain", *grants)
    run(filled[1], "CREATE ROLE plain LOGIN", *rights)
    command = [find_binaries() / "psql", "-v", "ON_ERROR_STOP=1", "-f", file]
    login = filled[1].replace("user=postgres", "user=plain")
    try:
        said = subprocess.run([*command, login], capture_output=True, text=True, check=False)
    finally:
        run(filled[1], "DROP OWNED BY plain", "DROP ROLE plain")
    assert said.returncode == 0, said.stderr
    assert "plain may not set session_replication_role" in said.stderr
    assert not compared(filled)["orders"].differences


def test_a_change_in_flight_is_not_a_difference(filled: tuple[str, str]) -> None:
    """The change arrives while the comparison waits for the lag."""
    run(filled[0], "UPDATE shop.orders SET name = 'new' WHERE id < 5", "DELETE FROM shop.orders WHERE id = 77")
    run(filled[1], "DELETE FROM shop.orders WHERE id = 3000")
    waited: list[float] = []

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        run(filled[1], "UPDATE shop.orders SET name = 'new' WHERE id < 5", "DELETE FROM shop.orders WHERE id = 77")
        return False

    found = compared(filled, wait, "shop.orders")["orders"]
    assert [(each.key, each.kind, each.in_flight) for each in found.differences] == [
        (("3000",), DifferenceKind.MISSING, False)
    ]
    assert waited == [1.0]


@pytest.fixture
def missing(north: str, south: str) -> tuple[str, str]:
    """A table of 60,000 rows, three ranges, that is empty in the target."""
    for dsn in (north, south):
        run(dsn, "CREATE TABLE t (id int PRIMARY KEY)")
    run(north, "INSERT INTO t SELECT n FROM generate_series(1, 60000) n", "ANALYZE t")
    return north, south


def test_rows_in_flight_do_not_end_the_comparison_of_a_table(missing: tuple[str, str]) -> None:
    """The first rows arrive during the lag, as many as end the comparison if they differ; the others never do."""

    def wait(_: float) -> bool:
        run(missing[1], "INSERT INTO t SELECT n FROM generate_series(1, 45000) n ON CONFLICT DO NOTHING")
        return False

    found = compared(missing, wait, "public.t", 30_000)["t"]
    assert (found.source_rows, found.real, found.whole) == (60000, 15000, True)


@pytest.mark.parametrize(("rows", "whole"), [(59_999, True), (40_001, True), (20_000, False)])
def test_a_table_is_compared_until_too_many_rows_still_differ(missing: tuple[str, str], rows: int, whole: bool) -> None:
    run(missing[1], f"INSERT INTO t SELECT n FROM generate_series(60001 - {rows}, 60000) n")
    found = compared(missing, pattern="public.t", most=20_000)["t"]
    assert found.whole == whole
    if whole:
        assert found.real == 60_000 - rows
    else:
        assert 20_000 <= found.real < 60_000 - rows


def test_the_progress_shows_rows_per_cent_and_what_is_checked_again(missing: tuple[str, str], tmp_path: Path) -> None:
    run(missing[1], "INSERT INTO t SELECT n FROM generate_series(1, 59990) n")
    session = Session(Options(home=str(tmp_path)))
    shown: list[str] = []
    session.progress, session.wait = shown.append, lambda _: False
    with_home(tmp_path, missing)
    compare(session, source="north", target="south", table=("public.t",), lag=12.0)
    first = "public.t, table 1 of 1"
    assert shown[:3] == [first, f"{first}: 0 of about 70,000 rows, 0 %", f"{first}: 19,999 of about 70,000 rows, 28 %"]
    assert shown[-1].endswith("; 10 rows checked again after 12 s")


@pytest.mark.parametrize("flying", [False, True])
def test_the_statement_fails_and_counts_are_lower_bounds_if_a_table_is_not_compared_to_its_end(
    missing: tuple[str, str], flying: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_home(tmp_path, missing)
    session = Session(Options(home=str(tmp_path)))
    session.wait = lambda _: flying
    kept = tables.compare_tables
    monkeypatch.setattr(tables, "compare_tables", lambda *values, **more: kept(*values, **more, most=20_000))
    found = compare(session, source="north", target="south", table=("public.t",))
    said = found.errors[0].message
    if flying:
        assert said == "not compared further: public.t"
        assert "39,999 in flight, not compared further" in found.layout
    else:
        assert said == "at least 39,999 rows differ; not compared further: public.t"
        assert "at least 39,999 differ, not compared further" in found.layout


def test_text_ranges_are_the_same_on_both_sides(north: str, south: str) -> None:
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


def test_a_table_or_column_that_is_missing_in_the_target_is_reported(filled: tuple[str, str]) -> None:
    run(filled[1], "DROP TABLE shop.plain", "ALTER TABLE shop.orders DROP COLUMN name")
    found = compared(filled)
    assert found["plain"].problem == "there is no table shop.plain in the target"
    assert found["orders"].problem == "the target has no column name"


def test_a_target_without_the_key_may_have_duplicate_or_missing_rows(north: str, south: str) -> None:
    run(
        north, "CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t SELECT n, 'v' FROM generate_series(1, 9) n"
    )
    run(south, "CREATE TABLE t (id int, v text)", "INSERT INTO t SELECT n, 'v' FROM generate_series(1, 9) n")
    run(south, "INSERT INTO t VALUES (4, 'v'), (4, 'v')")
    found = compared((north, south), pattern="public.t")["t"]
    assert [(each.kind, each.key, each.target) for each in found.differences] == [
        (DifferenceKind.EXTRA, ("4", "1"), ("4", "v")),
        (DifferenceKind.EXTRA, ("4", "2"), ("4", "v")),
    ]
    run(south, script([found]))
    assert not compared((north, south), pattern="public.t")["t"].differences
    run(south, "INSERT INTO t VALUES (NULL, 'v')")
    found = compared((north, south), pattern="public.t")["t"]
    assert found.problem == "1 row of the target without a value in the source's key (id)"


def test_a_keyless_table_whose_types_have_no_order_is_compared_and_repaired(north: str, south: str) -> None:
    for dsn in (north, south):
        run(
            dsn,
            "CREATE TABLE t (b box[], p point, j json, x box, f float8)",
            "INSERT INTO t SELECT ARRAY[box(point(n, 1), point(0, 0))], point(n, n), '{\"n\": 1}',"
            " box(point(n, 2), point(0, 0)), n / 7.0 FROM generate_series(1, 200) n",
        )
    # Two boxes with the same area are equal in SQL, but different rows.
    run(south, "DELETE FROM t WHERE p[0] < 4", "INSERT INTO t (x) VALUES ('(1,8),(0,0)'), ('(8,1),(0,0)')")
    run(north, "INSERT INTO t (x) VALUES ('(8,1),(0,0)')")
    found = compared((north, south), pattern="public.t")["t"]
    assert (len(found.differences), found.problem) == (4, "")
    run(south, script([found]))
    assert not compared((north, south), pattern="public.t")["t"].differences


def test_a_table_that_cannot_be_read_does_not_end_the_comparison_of_the_others(filled: tuple[str, str]) -> None:
    run(filled[1], "CREATE ROLE reader LOGIN", "GRANT USAGE ON SCHEMA shop TO reader")
    run(filled[1], 'GRANT SELECT ON shop.orders, shop."Order %lines" TO reader')
    try:
        found = compared((filled[0], filled[1].replace("user=postgres", "user=reader")))
    finally:
        run(filled[1], "DROP OWNED BY reader", "DROP ROLE reader")
    assert "permission denied for table plain" in found["plain"].problem
    assert not any(found[name].problem for name in ("orders", "Order %lines"))


def test_heartbeat_and_checkpoint_tables_are_excluded_in_any_schema(filled: tuple[str, str]) -> None:
    databases = PostgresComparison(connect(filled[0])), PostgresComparison(connect(filled[1]))
    PostgresCheckpointTables(databases[0].connection).create(TableName("shop", "progress"))
    heartbeat.add(databases[0].connection, HeartbeatNames("shop"), HeartbeatTableSettings())
    pairs = table_pairs(databases, ["*.*"], "")
    assert [str(source) for source, _ in pairs] == ['shop."Order %lines"', "shop.orders", "shop.plain"]
    assert len(table_pairs(databases, ["shop.progress"], "")) == 1
    for database in databases:
        database.connection.close()


def test_tables_are_selected_by_a_pattern(filled: tuple[str, str]) -> None:
    databases = PostgresComparison(connect(filled[0])), PostgresComparison(connect(filled[1]))
    for pattern, wanted in (("mirror.*", "mirror.orders"), ("mirror", "mirror.orders"), ("m.o", "m.o")):
        assert [str(target) for _, target in table_pairs(databases, ["shop.orders"], pattern)] == [wanted]
    for database in databases:
        database.connection.close()


def test_the_statement_prints_the_counts_writes_the_script_and_fails(
    filled: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_home(tmp_path, filled)
    command = ["--home", str(tmp_path), "--format", "json", "-c"]
    assert main([*command, "COMPARE north TO south"]) == 0
    assert json.loads(capsys.readouterr().out)["code"] == ""
    assert main([*command, "COMPARE north TO north"]) == 0
    assert json.loads(capsys.readouterr().out)["code"] == "GGS-00722"
    assert main([*command, "COMPARE north TO south, TABLE shop.*, INTO nope.*"]) == 1
    assert json.loads(capsys.readouterr().out)["hint"].startswith("check the names in TABLE and INTO")
    spoil(filled[1])
    assert main([*command, "COMPARE north TO south, TABLE shop.orders, LAG 0 SEC, REPAIR ./repair.sql"]) == 1
    answer = json.loads(capsys.readouterr().out)
    changed = next(row for row in answer["rows"] if row[1] == "changed")
    assert changed[:3] == ["shop.orders", "changed", {"id": "2000"}]
    assert (set(changed[3]), changed[4]["data"], changed[5]) == ({"price", "data"}, None, False)
    assert "4 rows differ" in answer["message"]
    run(filled[1], (tmp_path / "repair.sql").read_text())
    assert main(["--home", str(tmp_path), "-c", "COMPARE north TO south, TABLE shop.orders"]) == 0
    assert "shop.orders" in capsys.readouterr().out
