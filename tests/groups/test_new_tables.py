"""New tables that match a wildcard: captured from their first row or reported, without blocking other tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pipelines import EXT1, REP1, Pipeline
from processes import until, until_state

from ggshell.connectors.postgres import session, trandata
from ggshell.connectors.postgres.table_watch import CHECK_SECONDS, TableWatch
from ggshell.errors import DatabaseError, NotFoundError
from ggshell.groups.load_state import LoadState
from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import GroupKind
from ggshell.home.events import Severity
from ggshell.home.process_file import ProcessState
from ggshell.parameters.table_patterns import TableFilter
from ggshell.types import TableName


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    yield pipeline
    pipeline.close()


NEW_TABLES = (
    "CREATE TABLE {s}.made (id int PRIMARY KEY, v text)",
    "CREATE TABLE {s}.keyless (v text)",
    "CREATE TABLE {s}.copied (id int, v text)",
    "CREATE TABLE {s}.again (id int PRIMARY KEY)",
)


def test_a_table_created_filled_and_altered_in_one_transaction_is_complete(pipeline: Pipeline) -> None:
    pipeline.in_south(*(text.format(s="b") for text in NEW_TABLES), "ALTER TABLE b.made ADD COLUMN w int")
    pipeline.add()
    out = pipeline.run("DBLOGIN USERIDALIAS north", "ADD SCHEMATRANDATA a", "INFO SCHEMATRANDATA a")
    assert 'OGG-01788  SCHEMATRANDATA has been added on schema "a".' in out
    assert 'Schema level supplemental logging is enabled on schema "a".' in out
    pipeline.start()
    with psycopg.connect(pipeline.north) as application:
        for statement in (
            NEW_TABLES[0].format(s="a"),
            "INSERT INTO a.made VALUES (1, 'x'), (2, 'y')",
            "ALTER TABLE a.made ADD COLUMN w int",
            "UPDATE a.made SET w = 7 WHERE id = 2",
        ):
            application.execute(statement)
    pipeline.in_north(
        NEW_TABLES[1].format(s="a"),
        "INSERT INTO a.keyless VALUES ('one'), ('two')",
        "UPDATE a.keyless SET v = 'three' WHERE v = 'one'",
        "CREATE TABLE a.copied AS SELECT id, v FROM a.made",
        "DELETE FROM a.copied WHERE id = 1",
        *(
            f"{NEW_TABLES[3].format(s='a')}; INSERT INTO a.again VALUES ({number}); DROP TABLE a.again"
            for number in (1, 2)
        ),
        "INSERT INTO a.items VALUES (1, 'last', 1)",
    )
    pipeline.wait_for_rows(1)
    assert pipeline.in_south("SELECT * FROM b.made ORDER BY 1") == [(1, "x", None), (2, "y", 7)]
    assert pipeline.in_south("SELECT v FROM b.keyless ORDER BY 1") == [("three",), ("two",)]
    assert pipeline.in_south("SELECT * FROM b.copied") == [(2, "y")]
    assert pipeline.in_south("SELECT * FROM b.again ORDER BY 1") == [(1,), (2,)]
    assert "OGG-05700" not in pipeline.home.report("EXT1").read_text()


def test_a_table_that_cannot_be_captured_is_reported_and_does_not_stop_the_others(pipeline: Pipeline) -> None:
    pipeline.add()
    pipeline.in_north("CREATE TABLE a.late (id int PRIMARY KEY)", "CREATE UNLOGGED TABLE a.scratch (id int)")
    pipeline.start()
    pipeline.in_north("INSERT INTO a.late VALUES (1)", "INSERT INTO a.items VALUES (1, 'one', 1)")
    pipeline.wait_for_rows(1)
    line = "The ADD TRANDATA command was not issued for table a.late. No records will be processed for this table."
    assert f"WARNING OGG-05700  {line}" in pipeline.home.report("EXT1").read_text()
    assert line in pipeline.home.event_log.read_text()
    assert "Table a.scratch is not captured: it is UNLOGGED" in pipeline.home.event_log.read_text()
    assert "Not captured: table a.late: it has no TRANDATA." in pipeline.run("STATS EXTRACT ext1")
    until(
        "the checkpoint file has the reason",
        lambda: "  a.late: it has no TRANDATA" in pipeline.run("INFO EXTRACT ext1, DETAIL"),
    )
    pipeline.run("STOP EXTRACT ext1", "DBLOGIN USERIDALIAS north", "ADD TRANDATA a.late", "START EXTRACT ext1")
    pipeline.in_south("CREATE TABLE b.late (id int PRIMARY KEY)")
    pipeline.in_north("INSERT INTO a.late VALUES (2)", "INSERT INTO a.items VALUES (2, 'two', 2)")
    pipeline.wait_for_rows(2)
    assert pipeline.in_south("SELECT id FROM b.late") == [(2,)]
    assert "Not captured: table a.late" not in pipeline.run("STATS EXTRACT ext1")
    assert "a.late" not in pipeline.run("INFO EXTRACT ext1, DETAIL")


@pytest.mark.parametrize("word", ["", " ABEND"])
def test_ddloptions_addtrandata_adds_missing_trandata_and_abends_on_request(pipeline: Pipeline, word: str) -> None:
    pipeline.write(
        "ext1", f"EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nDDLOPTIONS ADDTRANDATA{word}\nTABLE a.*;\n"
    )
    pipeline.add()
    pipeline.in_north(
        "CREATE TABLE a.late (id int)", "CREATE TABLE a.bad (v int, g int GENERATED ALWAYS AS (v * 2) STORED)"
    )
    pipeline.start("ext1")
    if word:
        assert "changes of table a.bad cannot be captured" in pipeline.abended_report(EXT1)
    else:
        until(
            "the table is added",
            lambda: "Table a.late is now captured. Changes made before" in pipeline.home.report("EXT1").read_text(),
        )
        assert pipeline.is_running(EXT1)
    with session.connect(pipeline.north) as connection:
        assert trandata.info(connection, TableName("a", "late")).identity == "full"


class ManualClock:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.at = 0.0

    def steady(self) -> float:
        return self.at

    def now(self) -> int:
        return int(self.at * 1e6)


def test_new_tables_are_detected_while_capture_runs(north: str) -> None:
    messages: list[str] = []
    clock = ManualClock()

    def collect(_: Severity, code: str, text: str) -> None:
        messages.append(f"{code} {text}")

    with session.connect(north) as connection:
        connection.execute("CREATE SCHEMA s CREATE TABLE t (id int PRIMARY KEY)")
        watch = TableWatch(["s.*", "s.named"], TableFilter(["s.*"]), collect, clock)  # type: ignore[arg-type]
        with pytest.raises(DatabaseError, match=r"changes of table s\.t cannot be captured: it has no TRANDATA"):
            watch.begin(connection)
        trandata.add(connection, TableName("s", "t"))
        watch.begin(connection)
        assert dict(watch.missed) == {"s.named": "it does not exist"}
        messages.clear()
        connection.execute("CREATE TABLE s.later (id int)")
        watch.check_again(connection)
        assert not messages
        clock.at += CHECK_SECONDS
        watch.check_again(connection)
        assert [line[:9] for line in messages] == ["OGG-05700"]
        trandata.add(connection, TableName("s", "later"))
        connection.execute("ALTER TABLE s.later REPLICA IDENTITY DEFAULT")
        watch.check(connection)
        assert "it has no primary key" in messages[-1]
        connection.execute("ALTER TABLE s.later REPLICA IDENTITY FULL")
        watch.check(connection)
        assert messages[-1].startswith(
            "GGS-00534 Table s.later is now captured. Changes made before its ADD TRANDATA are not in the trail"
        )
        connection.execute("DROP TABLE s.later, s.t")
        with pytest.raises(NotFoundError):
            watch.begin(connection)


def test_an_unlogged_partition_is_reported(north: str) -> None:
    messages: list[str] = []

    def collect(_: Severity, code: str, text: str) -> None:
        messages.append(f"{code} {text}")

    with session.connect(north) as connection:
        connection.execute("CREATE SCHEMA s CREATE TABLE t (id int PRIMARY KEY) PARTITION BY RANGE (id)")
        trandata.add(connection, TableName("s", "t"))
        watch = TableWatch(["s.t"], TableFilter(["s.t"]), collect, ManualClock())
        watch.begin(connection)
        assert not messages
        connection.execute("CREATE UNLOGGED TABLE s.low PARTITION OF s.t FOR VALUES FROM (0) TO (10)")
        watch.check(connection)
        watch.check(connection)
        text = "it is UNLOGGED, so its changes are not in the log"
        assert messages == [f"GGS-00533 Partition s.low is not captured: {text}."]
        assert watch.shown == {"s.low": text}
        connection.execute("ALTER TABLE s.low SET LOGGED")
        watch.check(connection)
        assert watch.shown == {}


def test_partitions_whose_truncate_is_not_captured_are_reported(north: str) -> None:
    messages: list[str] = []

    def collect(_: Severity, code: str, text: str) -> None:
        messages.append(f"{code} {text}")

    root = TableName("s", "root")
    with session.connect(north) as connection:
        connection.execute("CREATE SCHEMA s CREATE TABLE root (id int PRIMARY KEY) PARTITION BY RANGE (id)")
        connection.execute("CREATE TABLE s.low PARTITION OF s.root FOR VALUES FROM (0) TO (10)")
        assert trandata.add(connection, root).unnoted == ()
        watch = TableWatch(["s.*"], TableFilter(["s.*"]), collect, ManualClock(), truncates=True)  # type: ignore[arg-type]
        watch.check(connection)
        assert not messages
        connection.execute("ALTER EVENT TRIGGER ggshell_schematrandata DISABLE")
        connection.execute("CREATE TABLE s.high PARTITION OF s.root FOR VALUES FROM (10) TO (20)")
        watch.check(connection)
        watch.check(connection)
        assert messages[0].startswith("GGS-00421 When a partition of s.root is created later, TRUNCATE of it alone")
        assert messages[1:] == [
            "GGS-00535 TRUNCATE of a single partition of s.root is not captured for s.high: requires ADD TRANDATA s.root."
        ]
        assert trandata.add(connection, root).unnoted == ()
        narrow = TableWatch(["s.root"], TableFilter(["s.root"]), collect, ManualClock(), truncates=True)  # type: ignore[arg-type]
        narrow.check(connection)
        assert "s.high, s.low: requires a TABLE parameter that includes them" in messages[-1]
        needs = "TRUNCATE of a single partition, s.high, s.low: requires a TABLE parameter that includes them"
        assert narrow.shown == {"s.root": needs}
        assert not narrow.missed
        trandata.delete(connection, root)
        triggers = connection.execute("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal").fetchall()
    assert triggers == []


def test_a_partition_that_first_appears_in_the_log_is_checked_at_once(north: str) -> None:
    """Regression: a TRUNCATE within ten seconds after the partition was created was not reported."""
    messages: list[str] = []
    root, low, high = (TableName("s", name) for name in ("root", "low", "high"))
    with session.connect(north) as connection:
        connection.execute("CREATE SCHEMA s CREATE TABLE root (id int PRIMARY KEY) PARTITION BY RANGE (id)")
        trandata.add(connection, root)
        wanted = TableFilter(["s.root"])
        watch = TableWatch(
            ["s.root"], wanted, lambda *line: messages.append(" ".join(line[1:])), ManualClock(), truncates=True
        )  # type: ignore[arg-type]
        watch.check(connection)
        connection.execute("CREATE TABLE s.low PARTITION OF s.root FOR VALUES FROM (0) TO (10)")
        watch.check_again(connection)
        assert not messages
        watch.described(root, wanted=True)
        watch.check_again(connection)
        assert not messages
        watch.described(low, wanted=False)
        watch.check_again(connection)
        assert [line[:9] for line in messages] == ["GGS-00535"]
        watch.truncated(high, root)
        watch.truncated(high, root)
        watch.truncated(TableName("t", "low"), TableName("t", "root"))
        assert [line[:9] for line in messages] == ["GGS-00535", "GGS-00547"]
        assert "TRUNCATE of s.high, a partition of s.root, is not in the trail" in messages[-1]


def test_a_table_is_loaded_later_while_others_are_replicated(pipeline: Pipeline) -> None:
    """The statements of HELP LOADING."""
    pipeline.add()
    pipeline.start()
    late = "CREATE TABLE {}.late (id int PRIMARY KEY, v int)"
    pipeline.in_north(late.format("a"), "INSERT INTO a.late SELECT n, 0 FROM generate_series(1, 500) n")
    pipeline.in_south(late.format("b"))
    until("the table is reported", lambda: "a.late" in pipeline.home.report("EXT1").read_text())
    with psycopg.connect(pipeline.north) as early:
        early.execute("UPDATE a.late SET v = 1 WHERE id <= 10")
        pipeline.run("STOP EXTRACT ext1", "STOP REPLICAT rep1")
        pipeline.run("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.late", "START EXTRACT ext1", "START REPLICAT rep1")
        early.execute("UPDATE a.late SET v = v + 1 WHERE id <= 20")
        early.commit()
    pipeline.in_north("INSERT INTO a.late VALUES (501, 1)", "DELETE FROM a.late WHERE id = 30")
    assert "b.late" in pipeline.abended_report(REP1), "it lacks the rows from before ADD TRANDATA"
    pipeline.in_south("TRUNCATE b.late")
    pipeline.write("load1", "EXTRACT load1\nUSERIDALIAS north\nEXTFILE ./dirdat/la, PURGE\nTABLE a.late;\n")
    pipeline.write("rload", "REPLICAT rload\nUSERIDALIAS south\nEND RUNTIME\nMAP a.late, TARGET b.late;\n")
    pipeline.run("ADD EXTRACT load1, SOURCEISTABLE", "START EXTRACT load1")
    load1, rload = ("LOAD1", GroupKind.EXTRACT), ("RLOAD", GroupKind.REPLICAT)
    until_state(pipeline.home, *load1, ProcessState.STOPPED)
    csn = (LoadState.of(checkpoints.load(pipeline.home.checkpoint(*load1))) or LoadState()).csn
    pipeline.in_north("UPDATE a.late SET v = v + 1 WHERE id <= 30", "INSERT INTO a.late VALUES (502, 1)")
    pipeline.run("ADD REPLICAT rload, EXTFILE ./dirdat/la, CHECKPOINTTABLE b.checks", "START REPLICAT rload")
    until_state(pipeline.home, *rload, ProcessState.STOPPED)
    assert pipeline.in_south("SELECT count(*) FROM b.late") == [(500,)]
    line = f"MAP a.late, TARGET b.late, FILTER (@STRCMP (@GETENV ('TRANSACTION', 'CSN'), '{csn}') > 0);"
    pipeline.write("rep1", f"REPLICAT rep1\nUSERIDALIAS south\n{line}\nMAP a.*, TARGET b.*;\n")
    pipeline.start("rep1")
    pipeline.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    pipeline.wait_for_rows(1)
    rows = "SELECT * FROM {}.late ORDER BY id"
    assert pipeline.in_south(rows.format("b")) == pipeline.in_north(rows.format("a"))
