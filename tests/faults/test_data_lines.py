"""Data that other replication products have handled wrongly, replicated by real processes: both sides are equal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pipelines import Pipeline
from processes import until

SOURCE = """
CREATE COLLATION {s}.words (provider = builtin, locale = 'C.UTF-8');
CREATE TABLE {s}.toast (id int PRIMARY KEY, n int, big text, big2 bytea);
CREATE TABLE {s}.clock (id int PRIMARY KEY, at timestamptz, local timestamp, span interval);
CREATE TABLE {s}.worded (word text COLLATE {s}.words PRIMARY KEY, n int);
CREATE TABLE {s}.parent (id int PRIMARY KEY);
CREATE TABLE {s}.child (id int PRIMARY KEY, parent int REFERENCES {s}.parent);
CREATE TABLE {s}.whole (a int, b text);
CREATE TABLE {s}.byindex (id int PRIMARY KEY, code text NOT NULL UNIQUE, n int);
CREATE TABLE {s}.grows (id int PRIMARY KEY, n int);
"""
TARGET_ONLY = """
CREATE TABLE b.turned (c int, extra text DEFAULT 'ours', a int PRIMARY KEY, b text);
"""
NAMES = ("toast", "clock", "worded", "parent", "child", "whole", "byindex", "grows", "items")


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    """A running pipeline with these tables."""
    pipeline = Pipeline(tmp_path / "home", north, south)
    pipeline.write("ext1", "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nGETTRUNCATES\nTABLE a.*;\n")
    pipeline.write("rep1", "REPLICAT rep1\nUSERIDALIAS south\nGETTRUNCATES\nMAP a.*, TARGET b.*;\n")
    pipeline.in_north(SOURCE.format(s="a"), "CREATE TABLE a.turned (a int PRIMARY KEY, b text, c int)")
    pipeline.in_south(SOURCE.format(s="b"), TARGET_ONLY)
    pipeline.in_north(
        "ALTER TABLE a.whole REPLICA IDENTITY FULL",
        "ALTER TABLE a.byindex REPLICA IDENTITY USING INDEX byindex_code_key",
        "INSERT INTO a.items SELECT n, 'before', 1 FROM generate_series(1, 20) n",
        "TRUNCATE a.items",
    )
    pipeline.add("a.*")
    pipeline.start()
    yield pipeline
    pipeline.close()


def wait_and_compare(pipeline: Pipeline) -> None:
    """Wait for the last row, then compare whole tables."""
    pipeline.in_north("INSERT INTO a.items VALUES (777, 'end', 0)")
    until(
        "the last row arrives", lambda: pipeline.in_south("SELECT count(*) FROM b.items WHERE id = 777")[0][0] == 1, 60
    )
    for name in NAMES:
        source = pipeline.in_north(f"SELECT * FROM a.{name} t ORDER BY t::text")
        assert pipeline.in_south(f"SELECT * FROM b.{name} t ORDER BY t::text") == source, name


def test_values_keys_and_replica_identities_are_replicated(pipeline: Pipeline) -> None:
    """Unchanged TOAST values, skipped and repeated hours, keys with another collation, and every replica identity."""
    pipeline.in_north(
        "INSERT INTO a.toast SELECT g, 0, string_agg(md5(i::text), ''), decode(repeat('00ff', 9000), 'hex')"
        " FROM generate_series(1, 3) g, generate_series(1, 4000) i GROUP BY g",
        "UPDATE a.toast SET n = 1",
        "UPDATE a.toast SET n = 2, big = 'short now' WHERE id = 2",
        "UPDATE a.toast SET id = 30 WHERE id = 3",
        "SET timezone = 'Europe/Berlin';"
        " INSERT INTO a.clock SELECT g, '2024-03-31 00:30+01'::timestamptz + g * '30 min'::interval, '2024-03-31 02:30', '-1 d'"
        " FROM generate_series(0, 5) g;"
        " INSERT INTO a.clock SELECT 10 + g, '2024-10-27 00:30+00'::timestamptz + g * '30 min'::interval, '2024-10-27 02:30'"
        " FROM generate_series(0, 5) g",
        "SET timezone = 'America/New_York'; UPDATE a.clock SET at = at + '1 day'::interval WHERE id > 12",
        "INSERT INTO a.worded VALUES ('Straße', 1), ('ABC', 2)",
        "UPDATE a.worded SET word = lower(word), n = 3",
        "INSERT INTO a.whole VALUES (1, NULL), (1, NULL), (2, ''), (NULL, 'x')",
        "UPDATE a.whole SET b = 'one of two' WHERE ctid = (SELECT min(ctid) FROM a.whole WHERE a = 1)",
        "DELETE FROM a.whole WHERE a IS NULL",
        "INSERT INTO a.byindex VALUES (1, 'one', 1), (2, 'two', 2)",
        "UPDATE a.byindex SET code = 'uno', n = 5 WHERE id = 1",
        "UPDATE a.byindex SET id = 20 WHERE code = 'two'",
        "INSERT INTO a.turned VALUES (1, 'one', 11), (2, NULL, 22)",
        "UPDATE a.turned SET c = 33, b = 'two' WHERE a = 2",
    )
    wait_and_compare(pipeline)
    assert pipeline.in_south("SELECT a, b, c, extra FROM b.turned ORDER BY a") == [
        (1, "one", 11, "ours"),
        (2, "two", 33, "ours"),
    ]


def test_tables_change_during_capture(pipeline: Pipeline) -> None:
    """A rewrite and a new column within a transaction and between two, and a TRUNCATE that cascades to children."""
    pipeline.in_south(
        "ALTER TABLE b.grows ALTER COLUMN n TYPE bigint", "ALTER TABLE b.grows ADD COLUMN late text DEFAULT 'd'"
    )
    pipeline.in_north(
        "INSERT INTO a.grows VALUES (1, 1)",
        "ALTER TABLE a.grows ALTER COLUMN n TYPE bigint",
        "INSERT INTO a.grows VALUES (2, 5000000000)",
        "VACUUM FULL a.grows",
        "UPDATE a.grows SET n = n + 1",
    )
    with psycopg.connect(pipeline.north) as connection:
        connection.execute("INSERT INTO a.grows VALUES (3, 3)")
        connection.execute("ALTER TABLE a.grows ADD COLUMN late text DEFAULT 'd'")
        connection.execute("INSERT INTO a.grows VALUES (4, 4, 'new')")
        connection.execute("UPDATE a.grows SET late = 'changed' WHERE id = 3")
    pipeline.in_north(
        "INSERT INTO a.parent SELECT generate_series(1, 5)",
        "INSERT INTO a.child SELECT g, 1 + g % 5 FROM generate_series(1, 50) g",
        "TRUNCATE a.parent CASCADE",
        "INSERT INTO a.parent VALUES (9)",
        "INSERT INTO a.child VALUES (9, 9)",
    )
    wait_and_compare(pipeline)


def test_replica_identity_nothing_is_reported_and_replaced_on_request(pipeline: Pipeline) -> None:
    """With REPLICA IDENTITY NOTHING, the row of an update could not be found."""
    pipeline.run("STOP EXTRACT ext1")
    pipeline.in_north("ALTER TABLE a.grows REPLICA IDENTITY NOTHING")
    pipeline.start("ext1")
    refusal = "a.grows: its replica identity is NOTHING"
    until("INFO reports it", lambda: refusal in pipeline.run("INFO EXTRACT ext1, DETAIL"))
    pipeline.run("STOP EXTRACT ext1")
    text = pipeline.home.parameters("ext1").read_text()
    pipeline.write("ext1", text.replace("TABLE a.*", "DDLOPTIONS ADDTRANDATA\nTABLE a.*"))
    pipeline.start("ext1")
    begins = "Table a.grows is now captured. Changes made before its ADD TRANDATA"
    until("the identity is replaced", lambda: begins in pipeline.home.report("EXT1").read_text())
    pipeline.in_north("INSERT INTO a.grows VALUES (1, 1)", "UPDATE a.grows SET n = 2")
    wait_and_compare(pipeline)
