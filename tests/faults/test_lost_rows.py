"""Lost rows of the checkpoint tables: Replicat reports what is uncertain, and following its hint makes the target exact."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from faults.recovery_kit import kill, ledger, open_pipeline, wait_and_compare, write_lines
from pipelines import EXT1, REP1, Pipeline
from processes import until, until_state

from ggshell.groups.load_state import LoadState
from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import GroupKind
from ggshell.home.process_file import ProcessState

LOAD1 = ("LOAD1", GroupKind.EXTRACT)
SEVERAL_APPLIERS = pytest.mark.parametrize("pipeline", ["parallel", "coordinated"], indirect=True)
PARALLEL = pytest.mark.parametrize("pipeline", ["parallel"], indirect=True)


@pytest.fixture
def pipeline(request: pytest.FixtureRequest, tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = open_pipeline(request.param, tmp_path / "home", north, south)
    write_lines(pipeline, 1, 20)
    wait_and_compare(pipeline)
    yield pipeline
    pipeline.close()


def kill_with_lines_past_the_row(pipeline: Pipeline) -> None:
    """Kill Replicat after it has applied lines past the group's row, which cannot pass the change of a locked item."""
    with psycopg.connect(pipeline.south) as holder:
        holder.execute("SELECT FROM b.items WHERE id = 3 FOR UPDATE")
        with psycopg.connect(pipeline.north, autocommit=True) as source:
            source.execute("UPDATE a.items SET price = price + 1 WHERE id = 3")
            for line in range(21, 61):
                source.execute("INSERT INTO a.ledger VALUES (%s, 'x')", [line])
        until("lines are applied past the row", lambda: pipeline.in_south("SELECT count(*) FROM b.ledger")[0][0] > 25)
        kill(pipeline, REP1)


def assert_no_repetition(pipeline: Pipeline) -> None:
    assert {count for _, count in ledger(pipeline.in_south, "b")} == {1}


def refused_start(pipeline: Pipeline, start: str) -> tuple[str, str, str]:
    """The report of a start that fails, and the CSNs of the range in which it is uncertain what has been applied."""
    pipeline.run(start)
    report = pipeline.abended_report(REP1)
    assert "GGS-00516" in report
    found = re.search(
        r"everything up to CSN (\S+) is applied, and any of the transactions above it up to CSN (\S+) may", report
    )
    assert found, report
    return report, found[1], found[2]


def load_again(pipeline: Pipeline) -> str:
    """Empty the target and load it again; returns the CSN of the load."""
    pipeline.write("load1", "EXTRACT load1\nUSERIDALIAS north\nEXTFILE ./dirdat/la\nTABLE a.*;\n")
    pipeline.write("rload", "REPLICAT rload\nUSERIDALIAS south\nMAP a.*, TARGET b.*;\n")
    pipeline.in_south("TRUNCATE b.ledger, b.items")
    pipeline.run("ADD EXTRACT load1, SOURCEISTABLE", "START EXTRACT load1")

    def state() -> LoadState:
        return LoadState.of(checkpoints.load(pipeline.home.checkpoint(*LOAD1))) or LoadState()

    until("the load is complete", lambda: state().complete)
    until_state(pipeline.home, *LOAD1, ProcessState.STOPPED)
    pipeline.run(
        "DBLOGIN USERIDALIAS south", "ADD REPLICAT rload, EXTTRAIL ./dirdat/la, CHECKPOINTTABLE b.checks", "START rload"
    )
    rows = "SELECT (SELECT count(*) FROM b.ledger) + (SELECT count(*) FROM b.items)"
    until("the rows are loaded", lambda: pipeline.in_south(rows) == [(state().all_rows,)])
    pipeline.run("STOP REPLICAT rload")
    return state().csn


@SEVERAL_APPLIERS
def test_a_group_with_several_appliers_refuses_a_csn_within_the_uncertain_range(
    pipeline: Pipeline,
) -> None:
    """Regression: the low watermark was named, and transactions above it were repeated. The hint gives an exact target."""
    kill_with_lines_past_the_row(pipeline)
    pipeline.in_south("DELETE FROM b.checks", "DELETE FROM b.checks_lox")
    report, low, high = refused_start(pipeline, "START REPLICAT rep1")
    assert "load them again, and START REPLICAT REP1, AFTERCSN the CSN that the load reports" in report
    report, *again = refused_start(pipeline, f"START REPLICAT rep1, AFTERCSN {low}")
    assert f"AFTERCSN {low} had no effect" in report
    write_lines(pipeline, 61, 65)
    assert refused_start(pipeline, "START REPLICAT rep1")[1:] == tuple(again) == (low, high)
    assert pipeline.in_south("SELECT count(*) FROM b.checks") == [(0,)]
    assert_no_repetition(pipeline)
    csn = load_again(pipeline)
    write_lines(pipeline, 66, 70)
    pipeline.run(f"START REPLICAT rep1, AFTERCSN {csn}")
    wait_and_compare(pipeline)
    pipeline.run("STOP REPLICAT rep1", "START REPLICAT rep1")
    write_lines(pipeline, 71, 80)
    wait_and_compare(pipeline)


@pytest.mark.parametrize("pipeline", ["classic", "parallel"], indirect=True)
def test_alter_of_a_group_with_a_lost_row_suggests_the_remedy_of_start(pipeline: Pipeline) -> None:
    """Regression: the hint was to DELETE and ADD the group again, which applied every row twice."""
    pipeline.run("STOP REPLICAT rep1")
    pipeline.in_south("DELETE FROM b.checks")
    for statement in (
        "ALTER REPLICAT rep1, EXTSEQNO 0, EXTRBA 0",
        "ALTER REPLICAT rep1, BEGIN NOW",
        "START REPLICAT rep1, NOFILTERDUPTRANSACTIONS",
    ):
        output = pipeline.run("DBLOGIN USERIDALIAS south", statement, fails=True)
        assert "has no row in checkpoint table b.checks" in output, statement
        assert "AFTERCSN" in output
        assert "ADD" not in output
    assert_no_repetition(pipeline)


@SEVERAL_APPLIERS
def test_a_lost_row_other_than_the_groups_own_is_detected(pipeline: Pipeline) -> None:
    """Regression: without the transaction table's rows or the row of a thread, transactions were silently applied twice."""
    kill_with_lines_past_the_row(pipeline)
    pipeline.in_south("DELETE FROM b.checks_lox", "DELETE FROM b.checks WHERE group_name = 'REP1002'")
    refused_start(pipeline, "START REPLICAT rep1")
    assert_no_repetition(pipeline)


@SEVERAL_APPLIERS
def test_rows_other_than_the_groups_own_are_not_needed_after_a_stop(pipeline: Pipeline) -> None:
    pipeline.run("STOP REPLICAT rep1")
    write_lines(pipeline, 21, 30)
    pipeline.in_south("DELETE FROM b.checks_lox", "DELETE FROM b.checks WHERE group_name <> 'REP1'")
    pipeline.run("START REPLICAT rep1")
    wait_and_compare(pipeline)


@PARALLEL
def test_a_lost_transaction_table_is_reported_at_start_and_while_running(pipeline: Pipeline) -> None:
    """Regression: it ended with GGS-00401, an error of the database."""
    pipeline.in_south("DROP TABLE b.checks_lox")
    write_lines(pipeline, 21, 25)
    report = pipeline.abended_report(REP1)
    assert "transaction table b.checks_lox of checkpoint table b.checks does not exist" in report
    assert "UPGRADE CHECKPOINTTABLE b.checks" in report
    pipeline.run(f"START REPLICAT rep1, AFTERCSN 0/{1:08X}")
    report = pipeline.abended_report(REP1)
    assert "transaction table b.checks_lox of checkpoint table b.checks does not exist" in report
    assert "had no effect" in report
    output = pipeline.run("DBLOGIN USERIDALIAS south", "UPGRADE CHECKPOINTTABLE b.checks")
    assert "added checks_lox" in output


@PARALLEL
def test_only_the_main_checkpoint_table_is_missing(pipeline: Pipeline) -> None:
    pipeline.run("STOP REPLICAT rep1")
    pipeline.in_south("DROP TABLE b.checks")
    pipeline.run("START REPLICAT rep1, AFTERCSN 0/1")
    report = pipeline.abended_report(REP1)
    assert "checkpoint table b.checks does not exist" in report
    assert "AFTERCSN 00000000/00000001 had no effect" in report
    pipeline.run("DBLOGIN USERIDALIAS south", "ADD CHECKPOINTTABLE b.checks", "STOP EXTRACT ext1")
    _, low, high = refused_start(pipeline, "START REPLICAT rep1")
    assert low == high
    pipeline.run(f"START REPLICAT rep1, AFTERCSN {high}", "START EXTRACT ext1")
    write_lines(pipeline, 21, 30)
    wait_and_compare(pipeline)
    assert pipeline.is_running(EXT1)
