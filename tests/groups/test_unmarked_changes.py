"""A Replicat reports that its changes are not marked, and DELETE REPLICAT frees what marked them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pipelines import Pipeline
from processes import until
from servers import all_origins_in_use

ORIGINS = "SELECT roname FROM pg_replication_origin WHERE roname ~ '^ggs_rep1_?[0-9]{0,3}$'"
DROP_ORIGINS = f"SELECT pg_replication_origin_drop(roname) FROM ({ORIGINS}) AS left_over"


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    yield pipeline
    pipeline.close()


@pytest.mark.parametrize("kind", ["", "PARALLEL, ", "COORDINATED, "], ids=["classic", "parallel", "coordinated"])
def test_changes_without_an_origin_are_reported_and_a_deleted_group_leaves_no_origin(
    pipeline: Pipeline, kind: str
) -> None:
    pipeline.add(kind=kind)
    pipeline.start("ext1")
    report = pipeline.home.report("REP1")
    pipeline.insert(1)
    with psycopg.connect(pipeline.south, autocommit=True) as connection:
        connection.execute(DROP_ORIGINS)  # those that groups of this name had in earlier tests can be used at any time
        with all_origins_in_use(connection):
            pipeline.start("rep1")
            pipeline.wait_for_rows(1)
            assert report.read_text().count("GGS-00548") == 1
            assert "all replication origins of the server are in use" in report.read_text()
            pipeline.run("STOP REPLICAT rep1")
        pipeline.start("rep1")
        pipeline.insert(2)
        pipeline.wait_for_rows(2)
        assert "GGS-00548" not in report.read_text()
        assert connection.execute(ORIGINS).fetchall()
        pipeline.run("STOP REPLICAT rep1")

        def is_free() -> bool:  # The server takes a moment to notice that the sessions have ended.
            used = "SELECT count(*) FROM pg_stat_activity WHERE application_name ILIKE 'ggs%rep1%'"
            return connection.execute(used).fetchall() == [(0,)]

        until("the sessions of the Replicat have ended", is_free)
        pipeline.run("DBLOGIN USERIDALIAS south", "DELETE REPLICAT rep1")
        assert connection.execute(ORIGINS).fetchall() == []
