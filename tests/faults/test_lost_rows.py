"""Rows of the checkpoint tables are gone that say what a Replicat has applied: what it says then is true, and following it
makes the target exact."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from faults.recovery_kit import kill, ledger, open_way, same, work
from processes import until, until_state
from ways import EXT1, REP1, Way

from ggshell.groups.load_state import LoadState
from ggshell.groups.state import ProcessState
from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import GroupKind

LOAD1 = ("LOAD1", GroupKind.EXTRACT)
BESIDE = pytest.mark.parametrize("way", ["parallel", "coordinated"], indirect=True)
PARALLEL = pytest.mark.parametrize("way", ["parallel"], indirect=True)


@pytest.fixture
def way(request: pytest.FixtureRequest, tmp_path: Path, north: str, south: str) -> Iterator[Way]:
    way = open_way(request.param, tmp_path / "home", north, south)
    work(way, 1, 20)
    same(way)
    yield way
    way.close()


def killed_above_its_row(way: Way) -> None:
    """Lines are applied above the group's row, which cannot move over an item that somebody has locked; then the process is
    killed."""
    with psycopg.connect(way.south) as holder:
        holder.execute("SELECT FROM b.items WHERE id = 3 FOR UPDATE")
        with psycopg.connect(way.north, autocommit=True) as source:
            source.execute("UPDATE a.items SET price = price + 1 WHERE id = 3")
            for line in range(21, 61):
                source.execute("INSERT INTO a.ledger VALUES (%s, 'x')", [line])
        until("lines are applied above the row", lambda: way.in_south("SELECT count(*) FROM b.ledger")[0][0] > 25)
        kill(way, REP1)


def counts_are_one(way: Way) -> None:
    assert {count for _, count in ledger(way.in_south, "b")} == {1}


def refused(way: Way, start: str) -> tuple[str, str, str]:
    """The report of a start that fails, and the CSNs between which it says that nobody knows what is applied."""
    way.run(start)
    report = way.ends(REP1)
    assert "GGS-00516" in report
    found = re.search(
        r"everything up to CSN (\S+) is applied, and any of the transactions above it up to CSN (\S+) may", report
    )
    assert found, report
    return report, found[1], found[2]


def load_again(way: Way) -> str:
    """Empty the target and load it again; the CSN that the load reports."""
    way.write("load1", "EXTRACT load1\nUSERIDALIAS north\nEXTFILE ./dirdat/la\nTABLE a.*;\n")
    way.write("rload", "REPLICAT rload\nUSERIDALIAS south\nMAP a.*, TARGET b.*;\n")
    way.in_south("TRUNCATE b.ledger, b.items")
    way.run("ADD EXTRACT load1, SOURCEISTABLE", "START EXTRACT load1")

    def state() -> LoadState:
        return LoadState.of(checkpoints.load(way.home.checkpoint(*LOAD1))) or LoadState()

    until("the load is complete", lambda: state().complete)
    until_state(way.home, *LOAD1, ProcessState.STOPPED)
    way.run(
        "DBLOGIN USERIDALIAS south", "ADD REPLICAT rload, EXTTRAIL ./dirdat/la, CHECKPOINTTABLE b.checks", "START rload"
    )
    rows = "SELECT (SELECT count(*) FROM b.ledger) + (SELECT count(*) FROM b.items)"
    until("the rows are loaded", lambda: way.in_south(rows) == [(state().all_rows,)])
    way.run("STOP REPLICAT rload")
    return state().csn


@BESIDE
def test_a_group_that_applies_beside_each_other_takes_no_csn_within_the_range_that_is_uncertain(way: Way) -> None:
    """The message named the low watermark; what was applied above it came twice.  Following the hint makes the target exact."""
    killed_above_its_row(way)
    way.in_south("DELETE FROM b.checks", "DELETE FROM b.checks_lox")
    report, low, high = refused(way, "START REPLICAT rep1")
    assert "load them again, and START REPLICAT REP1, AFTERCSN the CSN that the load reports" in report
    report, *again = refused(way, f"START REPLICAT rep1, AFTERCSN {low}")
    assert f"AFTERCSN {low} had no effect" in report
    work(way, 61, 65)
    assert refused(way, "START REPLICAT rep1")[1:] == tuple(again) == (low, high)
    assert way.in_south("SELECT count(*) FROM b.checks") == [(0,)]
    counts_are_one(way)
    csn = load_again(way)
    work(way, 66, 70)
    way.run(f"START REPLICAT rep1, AFTERCSN {csn}")
    same(way)
    way.run("STOP REPLICAT rep1", "START REPLICAT rep1")
    work(way, 71, 80)
    same(way)


@pytest.mark.parametrize("way", ["classic", "parallel"], indirect=True)
def test_alter_of_a_group_whose_row_is_gone_names_the_remedy_of_start(way: Way) -> None:
    """The hint was to DELETE and ADD the group again, which applied every row twice."""
    way.run("STOP REPLICAT rep1")
    way.in_south("DELETE FROM b.checks")
    for statement in (
        "ALTER REPLICAT rep1, EXTSEQNO 0, EXTRBA 0",
        "ALTER REPLICAT rep1, BEGIN NOW",
        "START REPLICAT rep1, NOFILTERDUPTRANSACTIONS",
    ):
        said = way.run("DBLOGIN USERIDALIAS south", statement, fails=True)
        assert "has no row in checkpoint table b.checks" in said, statement
        assert "AFTERCSN" in said
        assert "ADD" not in said
    counts_are_one(way)


@BESIDE
def test_a_lost_row_beside_the_groups_own_is_noticed(way: Way) -> None:
    """The names of the transaction table, or the row of one thread: without them transactions were applied twice, silently."""
    killed_above_its_row(way)
    way.in_south("DELETE FROM b.checks_lox", "DELETE FROM b.checks WHERE group_name = 'REP1002'")
    refused(way, "START REPLICAT rep1")
    counts_are_one(way)


@BESIDE
def test_rows_beside_the_groups_own_may_be_gone_when_it_was_stopped(way: Way) -> None:
    way.run("STOP REPLICAT rep1")
    work(way, 21, 30)
    way.in_south("DELETE FROM b.checks_lox", "DELETE FROM b.checks WHERE group_name <> 'REP1'")
    way.run("START REPLICAT rep1")
    same(way)


@PARALLEL
def test_a_lost_transaction_table_is_named_at_start_and_while_running(way: Way) -> None:
    """It ended in GGS-00401, an error of the database."""
    way.in_south("DROP TABLE b.checks_lox")
    work(way, 21, 25)
    report = way.ends(REP1)
    assert "transaction table b.checks_lox of checkpoint table b.checks does not exist" in report
    assert "UPGRADE CHECKPOINTTABLE b.checks" in report
    way.run(f"START REPLICAT rep1, AFTERCSN 0/{1:08X}")
    report = way.ends(REP1)
    assert "transaction table b.checks_lox of checkpoint table b.checks does not exist" in report
    assert "had no effect" in report
    said = way.run("DBLOGIN USERIDALIAS south", "UPGRADE CHECKPOINTTABLE b.checks")
    assert "added checks_lox" in said


@PARALLEL
def test_the_main_table_alone_is_missing(way: Way) -> None:
    way.run("STOP REPLICAT rep1")
    way.in_south("DROP TABLE b.checks")
    way.run("START REPLICAT rep1, AFTERCSN 0/1")
    report = way.ends(REP1)
    assert "checkpoint table b.checks does not exist" in report
    assert "AFTERCSN 00000000/00000001 had no effect" in report
    way.run("DBLOGIN USERIDALIAS south", "ADD CHECKPOINTTABLE b.checks", "STOP EXTRACT ext1")
    _, low, high = refused(way, "START REPLICAT rep1")
    assert low == high
    way.run(f"START REPLICAT rep1, AFTERCSN {high}", "START EXTRACT ext1")
    work(way, 21, 30)
    same(way)
    assert way.is_running(EXT1)
