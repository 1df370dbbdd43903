"""From a real PostgreSQL into a DuckDB file, with real processes: kills, locks, types, and what is refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from duckdb_pipeline import DuckdbPipeline
from pipelines import REP1
from processes import until

from ggshell.connectors.duckdb import session

TYPES = """CREATE TABLE {schema}.kinds (id int PRIMARY KEY, small smallint, big bigint, exact numeric(20, 5), fraction double
  precision, truth boolean, moment timestamp, zoned timestamptz, day date, clock time, span interval, raw {bytes}, long text,
  fixed char(4), unique_id uuid, document {json}, numbers integer[], words text[])"""
SAME = """SELECT id, small, big, exact, fraction, truth, moment::text, zoned::text, day::text, clock::text, raw, long,
  trim(fixed), unique_id::text, numbers, words FROM {}.kinds WHERE id < 3 ORDER BY id"""
VALUES = (
    "(1, -32768, 9223372036854775807, -123456789012345.67891, 1e-300, true, '2026-02-28 23:59:59.999999',"
    " '2026-03-29 01:30:00.5+00', '2024-02-29', '23:59:59.000001', '-1 years +2 mons -3 days +04:05:06', '\\x00ff27225c',"
    " repeat('ä''\"\\', 60000), 'ab', '550e8400-e29b-41d4-a716-446655440000', '{\"a\": [1, null]}', '{1,NULL,-3}',"
    " ARRAY['a b', 'NULL', NULL, 'q\"\\,{}'])",
    "(2, null, null, null, null, false, null, null, null, null, null, null, null, null, null, null, null, null)",
    "(3, 0, 0, 0.00001, 'Infinity', null, 'infinity', '-infinity', '0044-03-15 BC', '24:00:00', '0', '', '', '',"
    " null, 'null', '{}', '{}')",
)


@pytest.fixture
def pipeline(tmp_path: Path, north: str) -> Iterator[DuckdbPipeline]:
    pipeline = DuckdbPipeline(tmp_path / "home", north)
    pipeline.in_north(
        "CREATE TABLE a.sentinels (moment timestamptz DEFAULT clock_timestamp())", "CREATE TABLE a.notes (n int)"
    )
    pipeline.in_south("CREATE TABLE b.sentinels (moment timestamptz)", "CREATE TABLE b.notes (n int)")
    yield pipeline
    pipeline.close()


class Writer:
    """Writes until it is stopped: repeated updates, key changes, and notes that show a missing or repeated row."""

    def __init__(self, dsn: str) -> None:
        self.count = 0
        self._dsn = dsn
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def writes(self, more: int) -> None:
        """Wait until a number of further transactions are committed."""
        wanted = self.count + more
        until(f"transaction {wanted}", lambda: self.count >= wanted, 60)

    def _write(self) -> None:
        with psycopg.connect(self._dsn) as connection:
            while not self._ends.wait(0.002):
                n = self.count + 1
                connection.execute("INSERT INTO a.notes VALUES (%s)", [n])
                connection.execute("INSERT INTO a.items VALUES (%s, 'new', 0)", [n])
                connection.execute("UPDATE a.items SET price = price + 1, name = %s WHERE id > %s", [f"n{n}", n - 5])
                if n % 5 == 0:
                    connection.execute("UPDATE a.items SET id = -id WHERE id = %s", [n - 3])
                    connection.execute("DELETE FROM a.items WHERE id = %s", [n - 2])
                connection.commit()
                self.count = n


def test_after_kills_every_change_is_applied_exactly_once(
    pipeline: DuckdbPipeline, request: pytest.FixtureRequest
) -> None:
    pipeline.write(
        "rep1", "REPLICAT rep1\nUSERIDALIAS south\nGROUPTRANSOPS 50\nCHECKPOINTSECS 1\nMAP a.*, TARGET b.*;\n"
    )
    pipeline.add()
    pipeline.start()
    with Writer(pipeline.north) as writer:
        for _ in range(request.config.getoption("--rounds") or 3):
            before = pipeline.applied()
            writer.writes(40)
            pipeline.wait_for_transaction_after(before)
            pipeline.kill_replicat()
            pipeline.start("rep1")
    pipeline.wait_until_applied()
    pipeline.stop()
    pipeline.assert_same_rows()
    assert pipeline.in_south("SELECT n, count(*) FROM b.notes GROUP BY n HAVING count(*) > 1") == []
    assert pipeline.in_south("SELECT count(*), max(n) FROM b.notes") == [(writer.count, writer.count)]
    ((rows, kept, beside),) = pipeline.in_south(
        "SELECT (SELECT count(*) FROM b.checks), (SELECT log_csn = log_cmplt_csn FROM b.checks),"
        " (SELECT count(*) FROM b.checks_lox)"
    )
    assert (rows, kept, beside) == (1, True, 0)


def test_values_of_every_type_arrive_unchanged(pipeline: DuckdbPipeline) -> None:
    pipeline.in_north(TYPES.format(schema="a", bytes="bytea", json="jsonb"))
    pipeline.in_south(TYPES.format(schema="b", bytes="blob", json="json").replace("precision", ""))
    pipeline.add()
    pipeline.start()
    pipeline.in_north(f"INSERT INTO a.kinds VALUES {', '.join(VALUES)}")
    pipeline.in_north("UPDATE a.kinds SET big = 4 WHERE id = 1", "UPDATE a.kinds SET id = 9, truth = true WHERE id = 3")
    pipeline.wait_until_applied()
    pipeline.stop()
    theirs = pipeline.in_north("SET timezone = 'UTC'", SAME.format("a"))
    assert pipeline.in_south(SAME.format("b")) == [tuple(map(_plain, row)) for row in theirs]
    far = "SELECT big, moment::text, zoned::text, clock::text, day::text, fraction, truth FROM b.kinds WHERE id = 9"
    assert pipeline.in_south(far) == [(0, "infinity", "-infinity", "24:00:00", "0044-03-15 (BC)", float("inf"), True)]
    assert pipeline.in_south("SELECT document ->> '$.a[0]', span::varchar FROM b.kinds WHERE id = 1") == [
        ("1", "-10 months -3 days 04:05:06")
    ]


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value


def test_truncate_is_applied_and_collisions_are_handled(pipeline: DuckdbPipeline) -> None:
    pipeline.write("ext1", "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nGETTRUNCATES\nTABLE a.*;\n")
    text = "REPLICAT rep1\nUSERIDALIAS south\nGETTRUNCATES\nHANDLECOLLISIONS\nMAP a.*, TARGET b.*;\n"
    pipeline.write("rep1", text)
    pipeline.in_south("INSERT INTO b.items VALUES (1, 'old', 1), (2, 'gone', 2)")
    pipeline.add()
    pipeline.start()
    pipeline.in_north("TRUNCATE a.items", "INSERT INTO a.items VALUES (1, 'one', 1)")
    pipeline.wait_until_applied()
    pipeline.stop()
    pipeline.assert_same_rows()
    pipeline.in_south("INSERT INTO b.items VALUES (3, 'old', 1)")
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (3, 'new', 3)")
    pipeline.wait_until_applied()
    pipeline.stop()
    pipeline.assert_same_rows()


def test_checkpoint_table_commands_work_on_a_duckdb_file(pipeline: DuckdbPipeline) -> None:
    pipeline.add()
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    pipeline.wait_until_applied()
    output = pipeline.run("DBLOGIN USERIDALIAS south", "INFO CHECKPOINTTABLE b.checks", fails=True)
    assert "is locked by process" in output
    assert "STOP the Replicat" in output
    pipeline.stop()
    output = pipeline.run(
        "DBLOGIN USERIDALIAS south",
        "INFO CHECKPOINTTABLE b.checks",
        "ALTER REPLICAT rep1, EXTSEQNO 0, EXTRBA 0",
        "UPGRADE CHECKPOINTTABLE b.checks",
        "CLEANUP CHECKPOINTTABLE b.checks",
    )
    assert "REP1" in output
    assert "DuckDB v" in output
    pipeline.in_south("DELETE FROM b.items")
    pipeline.start()  # ALTER has set its row to the beginning of the trail, so it applies the row again
    pipeline.wait_until_applied()
    pipeline.stop()
    pipeline.assert_same_rows()
    output = pipeline.run(
        "DBLOGIN USERIDALIAS south",
        "DELETE REPLICAT rep1 !",
        "INFO CHECKPOINTTABLE b.checks",
        "DELETE CHECKPOINTTABLE b.checks !",
    )
    assert "REP1      CSN" not in output
    assert pipeline.in_south("SELECT count(*) FROM duckdb_tables() WHERE table_name LIKE 'checks%'") == [(0,)]


def test_replicat_abends_with_the_reason_if_another_process_has_the_file_open(pipeline: DuckdbPipeline) -> None:
    pipeline.add()
    holder = session.connect(pipeline.south)
    try:
        pipeline.start("rep1")
        report = pipeline.abended_report(REP1)
    finally:
        holder.close()
    assert "south.duckdb is locked by process" in report
    assert "GGS-00414" in report


@pytest.mark.parametrize("kind", ["PARALLEL", "COORDINATED"])
def test_kinds_of_replicat_with_several_writers_are_refused(pipeline: DuckdbPipeline, kind: str) -> None:
    pipeline.run(
        "DBLOGIN USERIDALIAS south",
        "ADD CHECKPOINTTABLE b.checks",
        f"ADD REPLICAT rep1, {kind}, EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks",
    )
    pipeline.start("rep1")
    report = pipeline.abended_report(REP1)
    assert f"a {kind.lower()} Replicat cannot apply to a DuckDB file" in report


def test_a_duckdb_file_cannot_be_a_source(pipeline: DuckdbPipeline) -> None:
    output = pipeline.run("DBLOGIN SOURCEDB duckdb://south.duckdb", "ADD TRANDATA a.items", fails=True)
    assert "south is a DuckDB file" in output
    output = pipeline.run("DBLOGIN USERID duckdb:///nowhere/at/all.duckdb", fails=True)
    assert "cannot be opened" in output
