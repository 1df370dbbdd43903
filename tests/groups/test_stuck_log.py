"""An Extract does not stay RUNNING silently if the server cannot stream a transaction or cannot decode its log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pipelines import EXT1, Pipeline
from processes import until

from ggshell.connectors.postgres.wire import end_of_log
from ggshell.errors import CaptureError, ConnectionLostError, LogRefusedError
from ggshell.groups.reconnecting import MOST_TIMES, StuckLog

ROLLED_BACK = (
    "ALTER TABLE a.wide ADD COLUMN c0 int DEFAULT 5",
    "INSERT INTO a.wide (id, t) SELECT n, repeat('x', 100) FROM generate_series(1, 3000) n",
    "SAVEPOINT s",
    "UPDATE a.wide SET id = id",
    "UPDATE a.wide SET id = id",
    "ALTER TABLE a.wide ALTER t TYPE varchar(201)",
    "SAVEPOINT s2",
    "TRUNCATE a.wide",
    "ROLLBACK TO s",
    "UPDATE a.wide SET id = id",
    "ALTER TABLE a.wide ADD COLUMN c3 float DEFAULT random()",
)
"""PostgreSQL 18 cannot stream this transaction but can decode it as a whole."""


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    yield pipeline
    pipeline.close()


def test_a_transaction_that_the_server_cannot_stream_is_read_at_its_commit(pipeline: Pipeline) -> None:
    pipeline.in_north("CREATE TABLE a.wide (id int, t text)")
    pipeline.in_south("CREATE TABLE b.wide (id int, t text, c0 int, c3 float)")
    pipeline.in_north(
        f"ALTER DATABASE {psycopg.conninfo.conninfo_to_dict(pipeline.north)['dbname']} SET logical_decoding_work_mem = '64kB'"
    )
    pipeline.add()
    pipeline.run("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.wide", "START ext1")
    began = "SELECT count(*) FROM pg_replication_slots WHERE active AND database = current_database()"
    until("capture begins", lambda: pipeline.in_north(began) == [(1,)])
    with psycopg.connect(pipeline.north) as connection:
        for statement in ROLLED_BACK:
            connection.execute(statement)
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'after', 1)")
    pipeline.start("rep1")
    pipeline.wait_for_rows(1)
    rows = "SELECT md5(string_agg((id, t, c0)::text, ',' ORDER BY id)) FROM {}.wide"
    assert pipeline.in_north(rows.format("a")) == pipeline.in_south(rows.format("b"))
    report = pipeline.home.report("EXT1").read_text()
    assert report.count("The server cannot stream an open transaction") == 1
    assert "Reconnected" in report
    assert pipeline.is_running(EXT1)


def test_what_a_streamed_transaction_rolls_back_is_not_applied(pipeline: Pipeline) -> None:
    """The server does not name the part of a transaction that a message of a truncated partition belongs to."""
    for where, schema in ((pipeline.in_north, "a"), (pipeline.in_south, "b")):
        where(
            f"CREATE TABLE {schema}.ev (id int PRIMARY KEY) PARTITION BY RANGE (id)",
            f"CREATE TABLE {schema}.low PARTITION OF {schema}.ev FOR VALUES FROM (0) TO (10)",
            f"CREATE TABLE {schema}.high PARTITION OF {schema}.ev DEFAULT",
        )
    name = psycopg.conninfo.conninfo_to_dict(pipeline.north)["dbname"]
    pipeline.in_north(f"ALTER DATABASE {name} SET logical_decoding_work_mem = '64kB'")
    for group in ("ext1", "rep1"):
        path = pipeline.home.parameters(group)
        path.write_text(path.read_text().replace("\n", "\nGETTRUNCATES\n", 1))
    pipeline.add()
    pipeline.run("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.ev")
    pipeline.start()
    pipeline.in_north("INSERT INTO a.ev VALUES (1), (2)")
    with psycopg.connect(pipeline.north) as connection:
        connection.execute("INSERT INTO a.ev SELECT generate_series(100, 3000)")
        connection.execute("SAVEPOINT s")
        connection.execute("TRUNCATE a.low")
        connection.execute("INSERT INTO a.ev SELECT generate_series(4000, 7000)")
        connection.execute("ROLLBACK TO s")
        connection.execute("INSERT INTO a.ev VALUES (3)")
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'after', 1)")
    pipeline.wait_for_rows(1)
    rows = "SELECT count(*), sum(id) FROM {}.ev"
    assert pipeline.in_south(rows.format("b")) == pipeline.in_north(rows.format("a"))
    assert "has rolled back a part" in pipeline.home.report("EXT1").read_text()


def test_failures_at_a_position_are_counted_until_reading_passes_it() -> None:
    stuck, error = StuckLog(), LogRefusedError("the server ended the log: x")
    for read in (10, 12, 12, 11, 12):
        stuck.refused(error, read)
    assert stuck.times == 4
    assert "the server ended the log: x (4 times at the same position)" in stuck.words
    assert not stuck.passed(12)
    assert stuck.passed(13)
    assert not stuck.words


def test_extract_abends_with_the_reason_if_the_log_cannot_be_decoded() -> None:
    stuck, error = StuckLog(), LogRefusedError("the server ended the log: invalid record")
    for _ in range(MOST_TIMES):
        stuck.refused(error, 10)
    with pytest.raises(CaptureError, match="invalid record; attempt 11 at the same position"):
        stuck.refused(error, 10)


@pytest.mark.parametrize(
    ("state", "refused"),
    [("XX000", True), ("58P01", True), ("57P01", False), ("08006", False), ("53300", False), ("", False)],
)
def test_only_a_decoding_error_is_a_refusal(state: str, refused: bool) -> None:
    found = end_of_log("reason", state)
    assert isinstance(found, ConnectionLostError)
    assert isinstance(found, LogRefusedError) is refused
