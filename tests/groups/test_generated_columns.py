"""A generated column of the source that is a plain column at the target: reported at both ends, and published on request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import until
from ways import Way


@pytest.fixture
def way(tmp_path: Path, north: str, south: str) -> Iterator[Way]:
    way = Way(tmp_path / "home", north, south)
    yield way
    way.close()


def test_a_generated_column_of_the_source_is_reported_where_the_target_needs_its_value(way: Way) -> None:
    column = "g int GENERATED ALWAYS AS (v * 2) STORED"
    way.in_north(
        f"CREATE TABLE a.plain (id int PRIMARY KEY, v int, {column})",
        f"CREATE TABLE a.same (id int PRIMARY KEY, v int, {column})",
    )
    way.in_south(
        "CREATE TABLE b.plain (id int PRIMARY KEY, v int, g int)",
        f"CREATE TABLE b.same (id int PRIMARY KEY, v int, {column})",
    )
    way.add()
    note = "Generated column g of a.{} is not logged: in the target, generate such columns as well"
    said = way.run("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.*")
    assert f"INFO    GGS-00422  {note.format('plain')}" in said
    assert note.format("same") in way.run("DBLOGIN USERIDALIAS north", "INFO TRANDATA a.same")
    way.start()
    way.in_north(
        "INSERT INTO a.plain VALUES (1, 4)",
        "UPDATE a.plain SET v = 5",
        "INSERT INTO a.same VALUES (1, 4)",
        "INSERT INTO a.items VALUES (1, 'one', 1)",
    )
    way.arrives(1)
    assert way.in_south("SELECT * FROM b.plain") == [(1, 5, None)]
    assert way.in_south("SELECT * FROM b.same") == [(1, 4, 8)]
    assert way.home.report("EXT1").read_text().count(note.format("plain")) == 1
    report = way.home.report("REP1").read_text()
    assert "a.plain has no value for column g of b.plain: inserted rows get the default or NULL" in report
    assert "a.same has no value" not in report
    way.in_north(
        "ALTER PUBLICATION ggshell SET (publish_generated_columns = stored)",
        "UPDATE a.plain SET v = 6",
        "INSERT INTO a.same VALUES (2, 7)",
        "INSERT INTO a.items VALUES (2, 'two', 2)",
    )
    way.arrives(2)
    assert way.in_south("SELECT * FROM b.plain") == [(1, 6, 12)]
    assert way.in_south("SELECT * FROM b.same ORDER BY id") == [(1, 4, 8), (2, 7, 14)]
    assert "GGS-00422" not in way.run("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.plain")
    until("Replicat says so", lambda: "b.same computes column g itself" in way.home.report("REP1").read_text())
