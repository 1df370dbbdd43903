"""Initial load of tables from a busy source with real processes; after the changes, target equals source."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from pipelines import EXT1, REP1, Pipeline
from processes import until, until_state

from ggshell.groups.load_state import LoadState
from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import GroupKind
from ggshell.home.process_file import ProcessState
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader
from ggshell.types import Csn

LOAD1, RLOAD = ("LOAD1", GroupKind.EXTRACT), ("RLOAD", GroupKind.REPLICAT)
LOAD = "EXTRACT load1\nUSERIDALIAS north\nEXTFILE ./dirdat/la{file}\nTABLE a.*{clause};\n"
ROWS = 3000
PAUSE_SECONDS = 0.01
"""Between concurrent transactions: without a pause there are thousands, which only take longer to apply."""


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    prepare(pipeline)
    yield pipeline
    pipeline.close()


def prepare(pipeline: Pipeline, file: str = "", clause: str = "") -> None:
    pipeline.write("load1", LOAD.format(file=file, clause=clause))
    pipeline.write("rload", "REPLICAT rload\nUSERIDALIAS south\nMAP a.*, TARGET b.*;\n")


@contextmanager
def concurrent_changes(dsn: str) -> Iterator[Callable[[], int]]:
    """Runs inserts, updates, deletes and key changes in the background; yields a counter of the transactions."""
    stop, count = threading.Event(), [0]

    def work() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            while not stop.wait(PAUSE_SECONDS):
                number = count[0]
                one, other = number % ROWS + 1, (number * 7) % ROWS + 1
                with connection.transaction():
                    connection.execute("INSERT INTO a.items VALUES (%s, 'new', %s)", [ROWS + 1 + number, number])
                    connection.execute("UPDATE a.items SET price = price + 1 WHERE id = %s", [one])
                    connection.execute("DELETE FROM a.items WHERE id = %s", [other])
                    connection.execute("UPDATE a.items SET id = -id WHERE id = %s", [ROWS + 1 + number - 5])
                count[0] += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield lambda: count[0]
    finally:
        stop.set()
        thread.join()


def fill(pipeline: Pipeline) -> None:
    pipeline.in_north(f"INSERT INTO a.items SELECT n, 'row ' || n, n FROM generate_series(1, {ROWS}) n")


def load_state(pipeline: Pipeline) -> LoadState:
    return LoadState.of(checkpoints.load(pipeline.home.checkpoint(*LOAD1))) or LoadState()


def run_load(pipeline: Pipeline) -> LoadState:
    """Run the load until it is complete."""
    pipeline.run("START EXTRACT load1")
    until("the load is complete", lambda: load_state(pipeline).complete)
    until_state(pipeline.home, *LOAD1, ProcessState.STOPPED)
    return load_state(pipeline)


def capture_and_load(pipeline: Pipeline, changes: Callable[[], int]) -> LoadState:
    """Start change capture, run the load, and apply its rows in south."""
    pipeline.run(
        "DBLOGIN USERIDALIAS north",
        "ADD TRANDATA a.items",
        "REGISTER EXTRACT ext1",
        "ADD EXTRACT ext1, TRANLOG, BEGIN NOW",
        "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1",
        "START EXTRACT ext1",
        "ADD EXTRACT load1, SOURCEISTABLE",
    )
    early = changes()
    until("changes before the load", lambda: changes() > early + 20)
    state = run_load(pipeline)
    late = changes()
    until("changes after the load", lambda: changes() > late + 20)
    pipeline.run(
        "DBLOGIN USERIDALIAS south",
        "ADD CHECKPOINTTABLE b.checks",
        "ADD REPLICAT rload, EXTTRAIL ./dirdat/la, CHECKPOINTTABLE b.checks",
        "ADD REPLICAT rep1, EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks",
        "START REPLICAT rload",
    )
    until("the rows are loaded", lambda: pipeline.in_south("SELECT count(*) FROM b.items") == [(state.all_rows,)])
    pipeline.run("STOP REPLICAT rload")
    return state


def wait_and_compare(pipeline: Pipeline) -> None:
    """Wait until the last change is in south, then compare."""
    pipeline.in_north("INSERT INTO a.items VALUES (1000000, 'last', 0)")
    until("the last change", lambda: pipeline.in_south("SELECT 1 FROM b.items WHERE id = 1000000") == [(1,)], 60)
    pipeline.assert_same_rows()


def test_the_progress_names_the_table_only_if_it_is_known() -> None:
    state = LoadState("1", tables=2)
    assert state.words == "Loading table 1 of 2"
    state = state._replace(table="a.items", about=50_000, rows=12_000, seconds=2.5)
    assert state.words == "Loading a.items, table 1 of 2: 12,000 of about 50,000 rows, 24 %, 8 s left"


def test_a_busy_source_is_loaded_and_replicated_without_collisions(pipeline: Pipeline) -> None:
    fill(pipeline)
    with concurrent_changes(pipeline.north) as changes:
        state = capture_and_load(pipeline, changes)
        pipeline.run(f"START REPLICAT rep1, AFTERCSN {state.csn}")
    wait_and_compare(pipeline)
    assert pipeline.is_running(REP1)
    assert pipeline.is_running(EXT1)
    assert "(not running: STOPPED)" in pipeline.run("SEND EXTRACT load1, STATUS")
    text = pipeline.run("INFO EXTRACT load1, TASKS")
    assert "Status STOPPED" in text
    assert state.csn in text
    assert f"Loaded {state.all_rows:,} rows of 1 table" in text
    assert state.csn in pipeline.home.report("LOAD1").read_text()
    assert "LOAD1" not in pipeline.run("INFO EXTRACT *")


def test_collisions_are_handled_up_to_the_csn_of_the_load(pipeline: Pipeline) -> None:
    fill(pipeline)
    rep1 = "REPLICAT rep1\nUSERIDALIAS south\n{}MAP a.*, TARGET b.*;\n"
    pipeline.write("rep1", rep1.format("HANDLECOLLISIONS\n"))
    with concurrent_changes(pipeline.north) as changes:
        state = capture_and_load(pipeline, changes)
        pipeline.run("START REPLICAT rep1")
        until("rep1 is past the load", lambda: _applied(pipeline) > Csn.parse(state.csn), 60)
        pipeline.run("SEND REPLICAT rep1, NOHANDLECOLLISIONS")
        pipeline.write("rep1", rep1.format(""))
        pipeline.run("STOP REPLICAT rep1", "START REPLICAT rep1")
    wait_and_compare(pipeline)
    assert pipeline.is_running(REP1)


def test_start_warns_of_changes_that_overtake_an_initial_load(pipeline: Pipeline) -> None:
    fill(pipeline)
    pipeline.write("other", "REPLICAT other\nUSERIDALIAS south\nMAP a.*, TARGET c.*;\n")
    pipeline.run("DBLOGIN USERIDALIAS north", "ADD EXTRACT load1, SOURCEISTABLE")
    pipeline.add()
    pipeline.run("ADD REPLICAT rload, EXTTRAIL ./dirdat/la, CHECKPOINTTABLE b.checks")
    pipeline.run("ADD REPLICAT other, EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks")
    warning = (
        "REPLICAT REP1 applies changes while REPLICAT RLOAD has not applied all of the initial load of EXTRACT LOAD1"
    )
    assert warning in pipeline.run("START REPLICAT rep1")
    assert "GGS-00556" not in pipeline.run("START REPLICAT other"), "it writes to other tables"
    assert "GGS-00556" in pipeline.run("START EXTRACT load1")
    until_state(pipeline.home, *LOAD1, ProcessState.STOPPED)
    assert "GGS-00556" in pipeline.run("STOP REPLICAT rep1", "START REPLICAT rep1"), "no row of the load is applied"
    assert "GGS-00556" in pipeline.run("STOP REPLICAT rep1", "START REPLICAT r*"), "both start at once"
    pipeline.run("STOP REPLICAT rep1")
    pipeline.wait_for_rows(ROWS)
    pipeline.run("STOP REPLICAT rload")
    assert "GGS-00556" not in pipeline.run("START REPLICAT *"), "the load is applied whole"


def _applied(pipeline: Pipeline) -> Csn:
    found = checkpoints.load(pipeline.home.checkpoint(*REP1)).latest_csn
    return Csn.parse(found) if found else Csn(0)


def test_the_trail_has_one_transaction_per_table_with_the_csn_of_the_snapshot(pipeline: Pipeline) -> None:
    pipeline.in_north(
        "CREATE TABLE a.empty (id int PRIMARY KEY)",
        "CREATE TABLE a.parts (id int, v bytea) PARTITION BY RANGE (id)",
        "CREATE TABLE a.parts1 PARTITION OF a.parts FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE a.parts2 PARTITION OF a.parts FOR VALUES FROM (10) TO (20)",
        r"INSERT INTO a.parts VALUES (1, '\x00ff'), (11, NULL)",
    )
    fill(pipeline)
    pipeline.run("DBLOGIN USERIDALIAS north", "ADD EXTRACT load1, SOURCEISTABLE")
    state = run_load(pipeline)
    assert (state.tables, state.done, state.all_rows) == (3, 3, ROWS + 2)
    found = _transactions(pipeline)
    assert [(name, rows) for name, _, _, rows in found] == [("items", ROWS), ("parts", 2)]
    assert {str(csn) for _, csn, _, _ in found} == {state.csn}
    assert len({xid for _, _, xid, _ in found}) == 2


def _transactions(pipeline: Pipeline) -> list[tuple[str, Csn, str, int]]:
    """Table, CSN, id and rows of each transaction in ./dirdat/la."""
    reader = TrailReader(TrailName.parse("./dirdat/la", pipeline.home.root))
    found: list[tuple[str, Csn, str, int]] = []
    while (batch := reader.read()) is not None:
        for piece in batch.pieces:
            name, header = batch.tables[int(batch.table[piece.first])].name.name, piece.header
            if piece.begins:
                found.append((name, header.csn, header.xid, 0))
            found[-1] = (*found[-1][:3], found[-1][3] + piece.count)
    reader.close()
    return found


@pytest.mark.parametrize(("file", "copies", "first"), [(", PURGE", 1, 0), ("", 2, 1)])
def test_a_restarted_load_starts_over_from_a_new_snapshot(
    pipeline: Pipeline, file: str, copies: int, first: int
) -> None:
    prepare(pipeline, file)
    fill(pipeline)
    pipeline.run("DBLOGIN USERIDALIAS north", "ADD EXTRACT load1, SOURCEISTABLE")
    before = run_load(pipeline)
    pipeline.in_north("DELETE FROM a.items WHERE id = 1")
    pipeline.run("START EXTRACT load1")
    until(
        "the second load is complete", lambda: load_state(pipeline).complete and load_state(pipeline).csn != before.csn
    )
    until_state(pipeline.home, *LOAD1, ProcessState.STOPPED)
    state = load_state(pipeline)
    assert Csn.parse(state.csn) > Csn.parse(before.csn)
    assert state.file.endswith(f"{first:09d}")
    assert [rows for _, _, _, rows in _transactions(pipeline)] == [ROWS, ROWS - 1][-copies:]


WAITS = "SQLPREDICATE 'WHERE pg_advisory_xact_lock_shared(7) IS NOT NULL'"
"""The rows of a table arrive as soon as nothing holds this lock."""


def _interrupt(pipeline: Pipeline, started: Callable[[], bool]) -> None:
    """Kill a load of two tables between them, when ``started`` returns true."""
    pipeline.in_north("CREATE TABLE a.early (id int)", "INSERT INTO a.early VALUES (1), (2)")
    fill(pipeline)
    text = "EXTRACT load1\nUSERIDALIAS north\nEXTFILE ./dirdat/la\nTABLE a.early;\nTABLE a.items, {};\n"
    pipeline.write("load1", text.format(WAITS))
    pipeline.run("DBLOGIN USERIDALIAS north", "ADD EXTRACT load1, SOURCEISTABLE")
    with psycopg.connect(pipeline.north, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(7)")
        pipeline.run("START EXTRACT load1")
        until("the first table is loaded", started)
        pipeline.run("KILL EXTRACT load1")


def test_an_interrupted_load_begins_again_and_the_file_has_each_row_once(pipeline: Pipeline) -> None:
    """Regression: the file had the rows of both attempts, so tables without keys had them twice in the target."""
    _interrupt(pipeline, lambda: len(_transactions(pipeline)) == 1)
    state = run_load(pipeline)
    assert state.file.endswith("000000000")
    assert [(name, rows) for name, _, _, rows in _transactions(pipeline)] == [("early", 2), ("items", ROWS)]
    assert {str(csn) for _, csn, _, _ in _transactions(pipeline)} == {state.csn}


def test_an_interrupted_load_that_a_replicat_has_read_is_not_written_again(pipeline: Pipeline) -> None:
    pipeline.in_south("CREATE TABLE b.early (id int)")
    pipeline.run(
        "DBLOGIN USERIDALIAS south",
        "ADD CHECKPOINTTABLE b.checks",
        "ADD REPLICAT rload, EXTTRAIL ./dirdat/la, CHECKPOINTTABLE b.checks",
        "START REPLICAT rload",
    )
    _interrupt(pipeline, lambda: pipeline.in_south("SELECT count(*) FROM b.early") == [(2,)])
    for stop in ("INFO ALL", "STOP REPLICAT rload"):
        pipeline.run(stop)
        pipeline.start("load1")
        assert "GGS-00558  REPLICAT RLOAD has read rows of a load in" in pipeline.abended_report(LOAD1)
    assert [rows for _, _, _, rows in _transactions(pipeline)] == [2], "nothing was removed"
    pipeline.in_south("TRUNCATE b.early")
    pipeline.run("DBLOGIN USERIDALIAS south", "ALTER REPLICAT rload, EXTSEQNO 0, EXTRBA 0")
    run_load(pipeline)
    pipeline.run("START REPLICAT rload")
    until("the rows are loaded", lambda: pipeline.in_south("SELECT count(*) FROM b.items") == [(ROWS,)])
    assert pipeline.in_south("SELECT count(*) FROM b.early") == [(2,)]


def test_a_load_waits_for_transactions_that_write_and_can_be_stopped_meanwhile(pipeline: Pipeline) -> None:
    fill(pipeline)
    pipeline.run("DBLOGIN USERIDALIAS north", "ADD EXTRACT load1, SOURCEISTABLE")
    with psycopg.connect(pipeline.north) as writer:
        writer.execute("INSERT INTO a.items VALUES (-1, 'open', 0)")
        pipeline.run("START EXTRACT load1")
        assert "Waiting for the snapshot" in pipeline.run("SEND EXTRACT load1, STATUS")
        pipeline.run("STOP EXTRACT load1")
        assert not load_state(pipeline).complete
        pipeline.run("START EXTRACT load1")
    until("the load is complete", lambda: load_state(pipeline).complete)
    assert load_state(pipeline).all_rows == ROWS + 1, "what committed while it waited is in the snapshot"


@pytest.mark.parametrize("kind", ["", "PARALLEL, "])
def test_three_hundred_tables_are_loaded_and_unlogged_tables_are_reported(pipeline: Pipeline, kind: str) -> None:
    for schema, run in (("a", pipeline.in_north), ("b", pipeline.in_south)):
        run("".join(f"CREATE TABLE {schema}.t{number} (id int PRIMARY KEY);" for number in range(299)))
    pipeline.in_north("".join(f"INSERT INTO a.t{number} VALUES (1), (2);" for number in range(299)))
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)", "CREATE UNLOGGED TABLE a.scratch (id int)")
    pipeline.run("DBLOGIN USERIDALIAS north", "ADD EXTRACT load1, SOURCEISTABLE")
    assert run_load(pipeline).all_rows == 599
    assert "Table a.scratch is UNLOGGED and is not loaded" in pipeline.home.report("LOAD1").read_text()
    pipeline.run(
        "DBLOGIN USERIDALIAS south",
        "ADD CHECKPOINTTABLE b.checks",
        f"ADD REPLICAT rload, {kind}EXTTRAIL ./dirdat/la, CHECKPOINTTABLE b.checks",
        "START REPLICAT rload",
    )
    union = " UNION ALL ".join(f"SELECT id FROM b.t{number}" for number in range(299))
    until("the rows are loaded", lambda: pipeline.in_south(f"SELECT count(*) FROM ({union}) x") == [(598,)])
    until("the last row", lambda: pipeline.in_south("SELECT count(*) FROM b.items") == [(1,)])
    pipeline.run("STOP REPLICAT rload", "START REPLICAT rload", "STOP REPLICAT rload")
    assert pipeline.in_south(f"SELECT count(*) FROM ({union}) x") == [(598,)]
    rows = pipeline.in_south("SELECT log_cmplt_xids FROM b.checks")
    assert "~300" in str(rows[0][0])


def test_sqlpredicate_and_other_clauses_select_the_loaded_rows(pipeline: Pipeline) -> None:
    prepare(pipeline, clause=", FILTER (id > 10), SQLPREDICATE 'WHERE id <= 20'")
    fill(pipeline)
    pipeline.run("DBLOGIN USERIDALIAS north", "ADD EXTRACT load1, SOURCEISTABLE")
    run_load(pipeline)
    assert [rows for _, _, _, rows in _transactions(pipeline)] == [10]


def test_options_of_a_load_are_refused_for_an_extract_on_a_log(pipeline: Pipeline) -> None:
    pipeline.write("ext1", "EXTRACT ext1\nUSERIDALIAS north\nSOURCEISTABLE\nTABLE a.*;\n")
    pipeline.add()
    pipeline.start("ext1")
    assert "SOURCEISTABLE is valid only for an initial load" in pipeline.abended_report(EXT1)


def test_a_load_without_a_trail_reports_the_missing_parameter(pipeline: Pipeline) -> None:
    pipeline.write("load1", "EXTRACT load1\nUSERIDALIAS north\nTABLE a.*;\n")
    pipeline.run("ADD EXTRACT load1, SOURCEISTABLE")
    pipeline.start("load1")
    assert "an initial load requires a file or trail" in pipeline.abended_report(LOAD1)
