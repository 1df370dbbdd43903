"""Rows of the checkpoint tables are gone that say what a Replicat has applied: what it says then is true, and following it
makes the target exact."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from faults.recovery_kit import kill, ledger, open_pipeline, same, work
from pipelines import EXT1, REP1, Pipeline
from processes import until, until_state

from ggshell.groups.load_state import LoadState
from ggshell.groups.state import ProcessState
from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import GroupKind

LOAD1 = ("LOAD1", GroupKind.EXTRACT)
BESIDE = pytest.mark.parametrize("pipeline", ["parallel", "coordinated"], indirect=True)
PARALLEL = pytest.mark.parametrize("pipeline", ["parallel"], indirect=True)


@pytest.fixture
def pipeline(request: pytest.FixtureRequest, tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = open_pipeline(request.param, tmp_path / "home", north, south)
    work(pipeline, 1, 20)
    same(pipeline)
    yield pipeline
    pipeline.close()


def killed_above_its_row(pipeline: Pipeline) -> None:
    """Lines are applied above the group's row, which cannot move over an item that somebody has locked; then the process is
    killed."""
    with psycopg.connect(pipeline.south) as holder:
        holder.execute("SELECT FROM b.items WHERE id = 3 FOR UPDATE")
        with psycopg.connect(pipeline.north, autocommit=True) as source:
            source.execute("UPDATE a.items SET price = price + 1 WHERE id = 3")
            for line in range(21, 61):
                source.execute("INSERT INTO a.ledger VALUES (%s, 'x')", [line])
        until("lines are applied above the row", lambda: pipeline.in_south("SELECT count(*) FROM b.ledger")[0][0] > 25)
        kill(pipeline, REP1)


def counts_are_one(pipeline: Pipeline) -> None:
    assert {count for _, count in ledger(pipeline.in_south, "b")} == {1}


def refused(pipeline: Pipeline, start: str) -> tuple[str, str, str]:
    """The report of a start that fails, and the CSNs between which it says that nobody knows what is applied."""
    pipeline.run(start)
    report = pipeline.abended_report(REP1)
    assert "GGS-00516" in report
    found = re.search(
        r"everything up to CSN (\S+) is applied, and any of the transactions above it up to CSN (\S+) may", report
    )
    assert found, report
    return report, found[1], found[2]


def load_again(pipeline: Pipeline) -> str:
    """Empty the target and load it again; the CSN that the load reports."""
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


@BESIDE
def test_a_group_that_applies_beside_each_other_takes_no_csn_within_the_range_that_is_uncertain(
    pipeline: Pipeline,
) -> None:
    """The message named the low watermark; what was applied above it came twice.  Following the hint makes the target exact."""
    killed_above_its_row(pipeline)
    pipeline.in_south("DELETE FROM b.checks", "DELETE FROM b.checks_lox")
    report, low, high = refused(pipeline, "START REPLICAT rep1")
    assert "load them again, and START REPLICAT REP1, AFTERCSN the CSN that the load reports" in report
    report, *again = refused(pipeline, f"START REPLICAT rep1, AFTERCSN {low}")
    assert f"AFTERCSN {low} had no effect" in report
    work(pipeline, 61, 65)
    assert refused(pipeline, "START REPLICAT rep1")[1:] == tuple(again) == (low, high)
    assert pipeline.in_south("SELECT count(*) FROM b.checks") == [(0,)]
    counts_are_one(pipeline)
    csn = load_again(pipeline)
    work(pipeline, 66, 70)
    pipeline.run(f"START REPLICAT rep1, AFTERCSN {csn}")
    same(pipeline)
    pipeline.run("STOP REPLICAT rep1", "START REPLICAT rep1")
    work(pipeline, 71, 80)
    same(pipeline)


@pytest.mark.parametrize("pipeline", ["classic", "parallel"], indirect=True)
def test_alter_of_a_group_whose_row_is_gone_names_the_remedy_of_start(pipeline: Pipeline) -> None:
    """The hint was to DELETE and ADD the group again, which applied every row twice."""
    pipeline.run("STOP REPLICAT rep1")
    pipeline.in_south("DELETE FROM b.checks")
    for statement in (
        "ALTER REPLICAT rep1, EXTSEQNO 0, EXTRBA 0",
        "ALTER REPLICAT rep1, BEGIN NOW",
        "START REPLICAT rep1, NOFILTERDUPTRANSACTIONS",
    ):
        said = pipeline.run("DBLOGIN USERIDALIAS south", statement, fails=True)
        assert "has no row in checkpoint table b.checks" in said, statement
        assert "AFTERCSN" in said
        assert "ADD" not in said
    counts_are_one(pipeline)


@BESIDE
def test_a_lost_row_beside_the_groups_own_is_noticed(pipeline: Pipeline) -> None:
    """The names of the transaction table, or the row of one thread: without them transactions were applied twice, silently."""
    killed_above_its_row(pipeline)
    pipeline.in_south("DELETE FROM b.checks_lox", "DELETE FROM b.checks WHERE group_name = 'REP1002'")
    refused(pipeline, "START REPLICAT rep1")
    counts_are_one(pipeline)


@BESIDE
def test_rows_beside_the_groups_own_may_be_gone_when_it_was_stopped(pipeline: Pipeline) -> None:
    pipeline.run("STOP REPLICAT rep1")
    work(pipeline, 21, 30)
    pipeline.in_south("DELETE FROM b.checks_lox", "DELETE FROM b.checks WHERE group_name <> 'REP1'")
    pipeline.run("START REPLICAT rep1")
    same(pipeline)


@PARALLEL
def test_a_lost_transaction_table_is_named_at_start_and_while_running(pipeline: Pipeline) -> None:
    """It ended in GGS-00401, an error of the database."""
    pipeline.in_south("DROP TABLE b.checks_lox")
    work(pipeline, 21, 25)
    report = pipeline.abended_report(REP1)
    assert "transaction table b.checks_lox of checkpoint table b.checks does not exist" in report
    assert "UPGRADE CHECKPOINTTABLE b.checks" in report
    pipeline.run(f"START REPLICAT rep1, AFTERCSN 0/{1:08X}")
    report = pipeline.abended_report(REP1)
    assert "transaction table b.checks_lox of checkpoint table b.checks does not exist" in report
    assert "had no effect" in report
    said = pipeline.run("DBLOGIN USERIDALIAS south", "UPGRADE CHECKPOINTTABLE b.checks")
    assert "added checks_lox" in said


@PARALLEL
def test_the_main_table_alone_is_missing(pipeline: Pipeline) -> None:
    pipeline.run("STOP REPLICAT rep1")
    pipeline.in_south("DROP TABLE b.checks")
    pipeline.run("START REPLICAT rep1, AFTERCSN 0/1")
    report = pipeline.abended_report(REP1)
    assert "checkpoint table b.checks does not exist" in report
    assert "AFTERCSN 00000000/00000001 had no effect" in report
    pipeline.run("DBLOGIN USERIDALIAS south", "ADD CHECKPOINTTABLE b.checks", "STOP EXTRACT ext1")
    _, low, high = refused(pipeline, "START REPLICAT rep1")
    assert low == high
    pipeline.run(f"START REPLICAT rep1, AFTERCSN {high}", "START EXTRACT ext1")
    work(pipeline, 21, 30)
    same(pipeline)
    assert pipeline.is_running(EXT1)
