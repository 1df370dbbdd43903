"""TRUNCATE empties the same tables in the target as in the source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pipelines import Pipeline
from processes import until

TABLES = (
    "CREATE TABLE {s}.parent (id int PRIMARY KEY)",
    "CREATE TABLE {s}.child (PRIMARY KEY (id)) INHERITS ({s}.parent)",
    "CREATE TABLE {s}.grandchild (PRIMARY KEY (id)) INHERITS ({s}.child)",
    "CREATE TABLE {s}.root (id int PRIMARY KEY) PARTITION BY RANGE (id)",
    "CREATE TABLE {s}.low PARTITION OF {s}.root FOR VALUES FROM (0) TO (10)",
    "CREATE TABLE {s}.high PARTITION OF {s}.root FOR VALUES FROM (10) TO (20) PARTITION BY RANGE (id)",
    "CREATE TABLE {s}.higher PARTITION OF {s}.high FOR VALUES FROM (15) TO (20)",
    "CREATE TABLE {s}.first (id int PRIMARY KEY)",
    "CREATE TABLE {s}.second (id int PRIMARY KEY REFERENCES {s}.first)",
)
NAMES = ("parent", "child", "grandchild", "root", "first", "second")
FILL = (
    "INSERT INTO a.parent VALUES (1)",
    "INSERT INTO a.child VALUES (2)",
    "INSERT INTO a.grandchild VALUES (3)",
    "INSERT INTO a.root VALUES (1), (16)",
    "INSERT INTO a.first VALUES (1)",
    "INSERT INTO a.second VALUES (1)",
)


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    """A pipeline that replicates TRUNCATE for tables with children, partitions and references."""
    pipeline = Pipeline(tmp_path / "home", north, south)
    pipeline.in_north(*(text.format(s="a") for text in TABLES))
    pipeline.in_south(*(text.format(s="b") for text in TABLES))
    pipeline.write("ext1", "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nGETTRUNCATES\nTABLE a.*;\n")
    pipeline.write("rep1", "REPLICAT rep1\nUSERIDALIAS south\nGETTRUNCATES\nMAP a.*, TARGET b.*;\n")
    pipeline.add()
    pipeline.run("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.*")
    pipeline.start()
    yield pipeline
    pipeline.close()


def rows(pipeline: Pipeline, schema: str) -> dict[str, list[int]]:
    run = pipeline.in_north if schema == "a" else pipeline.in_south
    only = {name: "" if name == "root" else "ONLY" for name in NAMES}
    return {
        name: [number for (number,) in run(f"SELECT id FROM {only[name]} {schema}.{name} ORDER BY id")]
        for name in NAMES
    }


def test_every_form_of_truncate_empties_the_same_tables(pipeline: Pipeline) -> None:
    statements = (
        "TRUNCATE ONLY a.parent",
        "TRUNCATE a.child",
        "TRUNCATE a.parent",
        "TRUNCATE ONLY a.child, a.root",
        "TRUNCATE a.root RESTART IDENTITY",
        "TRUNCATE a.first, a.second",
        "TRUNCATE a.first CASCADE",
        "TRUNCATE a.low",
        "TRUNCATE a.high",
        "TRUNCATE a.low, a.high",
        "TRUNCATE a.low, a.root",
    )
    for marker, statement in enumerate(statements):
        pipeline.in_north("TRUNCATE a.parent, a.root, a.first, a.second", *FILL, statement)
        pipeline.in_north(f"INSERT INTO a.items VALUES ({marker}, '', 0)")
        until(statement, lambda marker=marker: pipeline.in_south("SELECT max(id) FROM b.items") == [(marker,)])  # type: ignore[misc]
        assert rows(pipeline, "a") == rows(pipeline, "b"), statement
