"""A generated source column with a plain target column: reported by Extract and Replicat, and published on request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pipelines import Pipeline
from processes import until


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    yield pipeline
    pipeline.close()


def test_a_generated_column_of_the_source_is_reported_where_the_target_needs_its_value(pipeline: Pipeline) -> None:
    column = "g int GENERATED ALWAYS AS (v * 2) STORED"
    pipeline.in_north(
        f"CREATE TABLE a.plain (id int PRIMARY KEY, v int, {column})",
        f"CREATE TABLE a.same (id int PRIMARY KEY, v int, {column})",
    )
    pipeline.in_south(
        "CREATE TABLE b.plain (id int PRIMARY KEY, v int, g int)",
        f"CREATE TABLE b.same (id int PRIMARY KEY, v int, {column})",
    )
    pipeline.add()
    note = "Generated column g of a.{} is not logged: in the target, generate such columns as well"
    output = pipeline.run("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.*")
    assert f"INFO    GGS-00422  {note.format('plain')}" in output
    assert note.format("same") in pipeline.run("DBLOGIN USERIDALIAS north", "INFO TRANDATA a.same")
    pipeline.start()
    pipeline.in_north(
        "INSERT INTO a.plain VALUES (1, 4)",
        "UPDATE a.plain SET v = 5",
        "INSERT INTO a.same VALUES (1, 4)",
        "INSERT INTO a.items VALUES (1, 'one', 1)",
    )
    pipeline.wait_for_rows(1)
    assert pipeline.in_south("SELECT * FROM b.plain") == [(1, 5, None)]
    assert pipeline.in_south("SELECT * FROM b.same") == [(1, 4, 8)]
    assert pipeline.home.report("EXT1").read_text().count(note.format("plain")) == 1
    report = pipeline.home.report("REP1").read_text()
    assert "a.plain has no value for column g of b.plain: inserted rows get the default or NULL" in report
    assert "a.same has no value" not in report
    pipeline.in_north(
        "ALTER PUBLICATION ggshell SET (publish_generated_columns = stored)",
        "UPDATE a.plain SET v = 6",
        "INSERT INTO a.same VALUES (2, 7)",
        "INSERT INTO a.items VALUES (2, 'two', 2)",
    )
    pipeline.wait_for_rows(2)
    assert pipeline.in_south("SELECT * FROM b.plain") == [(1, 6, 12)]
    assert pipeline.in_south("SELECT * FROM b.same ORDER BY id") == [(1, 4, 8), (2, 7, 14)]
    assert "GGS-00422" not in pipeline.run("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.plain")
    until("Replicat reports it", lambda: "b.same computes column g itself" in pipeline.home.report("REP1").read_text())
