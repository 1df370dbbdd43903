"""DDL of a PostgreSQL source changes the tables of a DuckDB file between the rows; other statements are refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from duckdb_pipeline import DuckdbPipeline
from pipelines import REP1


@pytest.fixture
def pipeline(tmp_path: Path, north: str) -> Iterator[DuckdbPipeline]:
    pipeline = DuckdbPipeline(tmp_path / "home", north)
    pipeline.in_north("CREATE TABLE a.sentinels (moment timestamptz DEFAULT clock_timestamp())")
    pipeline.in_south("CREATE TABLE b.sentinels (moment timestamptz)")
    pipeline.write("ext1", "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nDDL INCLUDE MAPPED\nTABLE a.*;\n")
    pipeline.add()
    pipeline.run("DBLOGIN USERIDALIAS north", "ADD SCHEMATRANDATA a")
    pipeline.start()
    yield pipeline
    pipeline.close()


def test_tables_are_created_changed_renamed_emptied_and_dropped(pipeline: DuckdbPipeline) -> None:
    pipeline.in_north(
        "SET search_path = a",
        "CREATE TABLE orders (id int PRIMARY KEY, amount numeric(12, 2), note varchar(20)); INSERT INTO orders VALUES (1, 1.5)",
        "BEGIN; INSERT INTO orders VALUES (2, 2.5, 'two'); ALTER TABLE orders ADD COLUMN state int NOT NULL DEFAULT -7;"
        " INSERT INTO orders VALUES (3, 3, 'three', 3); COMMIT",
        "ALTER TABLE orders RENAME COLUMN note TO remark",
        "ALTER TABLE orders ALTER COLUMN state TYPE bigint, DROP COLUMN amount, ADD COLUMN word text DEFAULT 'a, b'",
        "ALTER TABLE orders ADD COLUMN made uuid DEFAULT gen_random_uuid()",
        "ALTER TABLE orders ADD CONSTRAINT positive CHECK (id > 0)",
        "UPDATE orders SET state = 30000000000 WHERE id = 1",
        "ALTER TABLE orders RENAME TO sales",
        "INSERT INTO sales (id, remark, state) VALUES (4, 'four', 4)",
        "CREATE TABLE gone (a int); INSERT INTO gone VALUES (1); DROP TABLE gone",
        "CREATE TABLE copied AS SELECT id, remark FROM sales",
        "CREATE TABLE p (id int PRIMARY KEY, v text[]) PARTITION BY RANGE (id)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10); INSERT INTO p VALUES (1, '{x,y}')",
    )
    pipeline.wait_until_applied()
    wanted = pipeline.in_north("SELECT id, remark, state, word, made::text FROM a.sales ORDER BY id")
    pipeline.stop()
    found = pipeline.in_south("SELECT id, remark, state, word, made::VARCHAR FROM b.sales ORDER BY id")
    assert found == wanted
    assert [row[2] for row in found] == [30_000_000_000, -7, 3, 4]
    tables = pipeline.in_south("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'b' ORDER BY 1")
    assert [name for (name,) in tables if not name.startswith("checks")] == [
        "copied",
        "items",
        "p",
        "sales",
        "sentinels",
    ]
    assert pipeline.in_south("SELECT * FROM b.p") == [(1, ["x", "y"])]
    assert len(pipeline.in_south("SELECT * FROM b.copied")) == 4


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("CREATE INDEX i ON a.items (name)", "CREATE INDEX"),
        ("ALTER TABLE a.items ALTER COLUMN price TYPE text USING price || 'x'", "USING"),
        ("ALTER TABLE a.items ADD COLUMN c text DEFAULT upper('x')", "DEFAULT with an expression"),
    ],
)
def test_a_statement_that_duckdb_cannot_execute_is_refused_by_name(
    pipeline: DuckdbPipeline, statement: str, what: str
) -> None:
    pipeline.insert(1)
    pipeline.in_north(statement)
    report = pipeline.abended_report(REP1)
    assert "OGG-00519" in report
    assert "DuckDB does not execute" in report
    assert what in report


def test_a_refused_statement_is_ignored_alone(pipeline: DuckdbPipeline) -> None:
    pipeline.run("STOP REPLICAT rep1")
    pipeline.write("rep1", "REPLICAT rep1\nUSERIDALIAS south\nDDLERROR 0A000 IGNORE\nMAP a.*, TARGET b.*;\n")
    pipeline.in_north(
        "BEGIN; INSERT INTO a.items VALUES (1); ALTER TABLE a.items ADD COLUMN c int; CREATE INDEX i ON a.items (c);"
        " UPDATE a.items SET c = 5; CREATE VIEW a.v AS SELECT 1; INSERT INTO a.items (id, c) VALUES (2, 6); COMMIT"
    )
    pipeline.start("rep1")
    pipeline.wait_until_applied()
    pipeline.stop()
    assert pipeline.in_south("SELECT id, c FROM b.items ORDER BY id") == [(1, 5), (2, 6)]
