"""LOAD of every kind of table and object: the target has the same definitions and the same rows."""

from __future__ import annotations

import threading
from pathlib import Path

import load_kit
import psycopg
import pytest
from processes import until

from ggshell.connectors.postgres import load_snapshot
from ggshell.pipeline.load.work import Work

WAITING = "SELECT pid FROM pg_locks WHERE NOT granted AND relation = 'a'::regclass"


@pytest.mark.parametrize("part_bytes", [1 << 30, 16 << 10], ids=["whole tables", "parts"])
def test_definitions_and_rows_are_equal(north: str, south: str, part_bytes: int) -> None:
    load_kit.sql(north, load_kit.EVERY_KIND)
    found = load_kit.load(north, south, definitions=True, part_bytes=part_bytes)
    assert load_kit.definitions(south) == load_kit.definitions(north)
    assert load_kit.content(south) == load_kit.content(north)
    assert len(found.csns) == 1
    assert {str(each.table): each.rows for each in found.tables}["shop.plain"] == 2001
    assert load_kit.sql(south, "SELECT count(*) FROM pg_stats WHERE tablename = 'plain'")[0][0] > 5


def test_an_older_source_is_loaded_into_a_newer_target(older: str, south: str) -> None:
    load_kit.sql(older, load_kit.EVERY_KIND)
    load_kit.load(older, south, definitions=True)
    assert load_kit.content(south) == load_kit.content(older)
    assert "GENERATED ALWAYS AS IDENTITY" in load_kit.definitions(south)


def test_existing_tables_are_filled_by_name(north: str, south: str, tmp_path: Path) -> None:
    """Foreign keys and triggers of the target do not fire; column order and types may differ."""
    load_kit.sql(
        north,
        "CREATE TABLE a (id int PRIMARY KEY, b text); CREATE TABLE c (id int PRIMARY KEY, a int REFERENCES a)",
        "INSERT INTO a SELECT n, 'b' || n FROM generate_series(1, 1000) n; INSERT INTO c SELECT id, id FROM a",
    )
    load_kit.sql(
        south,
        "CREATE TABLE a (b varchar, extra int DEFAULT 5, id bigint PRIMARY KEY)",
        "CREATE TABLE c (id int PRIMARY KEY, a bigint REFERENCES a)",
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW EXECUTE FUNCTION f()",
    )
    ended = load_kit.statement(tmp_path, north, south, ", TABLE public.*, JOBS 2")
    assert ended.returncode == 0, ended.stderr
    assert "GGS-00748" in ended.stdout + ended.stderr
    assert load_kit.sql(south, "SELECT count(*), sum(id), min(b), sum(extra) FROM a") == [(1000, 500500, "b1", 5000)]
    assert load_kit.sql(south, "SELECT count(*) FROM c") == [(1000,)]


def test_values_of_a_hundred_megabytes(north: str, south: str) -> None:
    load_kit.sql(
        north,
        "CREATE TABLE wide (id int PRIMARY KEY, v text, raw bytea); ALTER TABLE wide ALTER v SET STORAGE EXTERNAL",
        "INSERT INTO wide SELECT 1, repeat('x', 100 << 20), NULL",
        "INSERT INTO wide SELECT 2, 'short', convert_to(repeat('y', 60 << 20), 'UTF8')",
    )
    load_kit.load(north, south, definitions=True)
    asked = "SELECT id, md5(v), md5(raw) FROM wide ORDER BY id"
    assert load_kit.sql(south, asked) == load_kit.sql(north, asked)


def test_an_interrupted_statement_leaves_no_session(north: str, south: str) -> None:
    load_kit.sql(north, "CREATE TABLE a (id int)")
    load_kit.load(north, south, definitions=True)
    with psycopg.connect(south) as connection:
        asked = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'ggshell%'"
        assert connection.execute(asked).fetchone() == (0,)


@pytest.mark.parametrize(
    ("owner", "name"),
    [(load_snapshot.PostgresLoadSnapshot, "definitions"), (Work, "begin")],
    ids=["definitions", "rows"],
)
def test_a_load_takes_another_snapshot_while_ddl_waits_for_its_locks(
    north: str, south: str, owner: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise, the statement would wait for the load, and the load for the statement: without end, unseen by the server."""
    load_kit.sql(north, "CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a VALUES (1)")
    statement = threading.Thread(target=load_kit.sql, args=(north, "ALTER TABLE a ADD b int"))
    real = getattr(owner, name)

    def begun(self: object, *given: object) -> object:
        """The first snapshot holds its locks; the jobs have not read yet."""
        if statement.ident is None:
            statement.start()
            until("the statement waits", lambda: bool(load_kit.sql(north, WAITING)))
        return real(self, *given)

    monkeypatch.setattr(owner, name, begun)
    load_kit.load(north, south, definitions=True)
    statement.join(30)
    assert load_kit.sql(south, "SELECT * FROM a") == [(1, None)]
