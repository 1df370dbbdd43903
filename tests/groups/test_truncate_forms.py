"""TRUNCATE empties the very tables at the target that it emptied at the source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import until
from ways import Way

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
def way(tmp_path: Path, north: str, south: str) -> Iterator[Way]:
    """A way that takes TRUNCATE, over tables with children, partitions and references."""
    way = Way(tmp_path / "home", north, south)
    way.in_north(*(text.format(s="a") for text in TABLES))
    way.in_south(*(text.format(s="b") for text in TABLES))
    way.write("ext1", "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nGETTRUNCATES\nTABLE a.*;\n")
    way.write("rep1", "REPLICAT rep1\nUSERIDALIAS south\nGETTRUNCATES\nMAP a.*, TARGET b.*;\n")
    way.add()
    way.run("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.*")
    way.start()
    yield way
    way.close()


def rows(way: Way, schema: str) -> dict[str, list[int]]:
    run = way.in_north if schema == "a" else way.in_south
    only = {name: "" if name == "root" else "ONLY" for name in NAMES}
    return {
        name: [number for (number,) in run(f"SELECT id FROM {only[name]} {schema}.{name} ORDER BY id")]
        for name in NAMES
    }


def test_truncate_only_of_a_parent_leaves_the_children_and_every_other_form_is_exact(way: Way) -> None:
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
        way.in_north("TRUNCATE a.parent, a.root, a.first, a.second", *FILL, statement)
        way.in_north(f"INSERT INTO a.items VALUES ({marker}, '', 0)")
        until(statement, lambda marker=marker: way.in_south("SELECT max(id) FROM b.items") == [(marker,)])  # type: ignore[misc]
        assert rows(way, "a") == rows(way, "b"), statement
