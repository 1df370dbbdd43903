"""START REPLICAT with a CSN beyond the trail's end: never silent, counted, and taken back by the commands that it names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import until
from ways import REP1, Way

from ggshell.groups.start_position import BEYOND_TRAIL
from ggshell.home import checkpoint as checkpoints

FAR = "00000000/FFFFFFF0"
KINDS = pytest.mark.parametrize("kind", ["", "PARALLEL, "])


@pytest.fixture
def way(tmp_path: Path, north: str, south: str) -> Iterator[Way]:
    way = Way(tmp_path / "home", north, south)
    way.add()
    way.start("ext1")
    yield way
    way.close()


def report(way: Way) -> str:
    return way.home.report("REP1").read_text()


def stopped_after_two(way: Way, kind: str) -> str:
    """A Replicat that has applied two transactions and has its row; the CSN of the last."""
    way.run(
        "DBLOGIN USERIDALIAS south",
        "DELETE REPLICAT rep1",
        f"ADD REPLICAT rep1, {kind}EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks",
    )
    way.insert(1, 2)
    way.start("rep1")
    way.arrives(2)
    way.run("STOP REPLICAT rep1")
    return way.csns(2)[-1]


def reported(way: Way, text: str) -> None:
    """The process opens its target after START has come back."""
    until(f"the report has: {text}", lambda: text in report(way))


def skipped(way: Way, csn: str) -> None:
    until("the skipped transaction is reported", lambda: f"The transaction with CSN {csn} is skipped" in report(way))


@KINDS
def test_a_mistyped_csn_is_said_at_each_start_until_it_is_taken_back(way: Way, kind: str) -> None:
    last = stopped_after_two(way, kind)
    beyond = f"AFTERCSN {FAR} specifies a CSN past the end of the trail: the last CSN of ./dirdat/ea is {{}}"
    told = way.run(f"START REPLICAT rep1, AFTERCSN {FAR}, DRYRUN")
    assert beyond.format(last) in told
    assert "No transaction would be skipped" not in told
    assert BEYOND_TRAIL not in way.run("INFO REPLICAT rep1, DETAIL")
    told = way.run(f"START REPLICAT rep1, AFTERCSN {FAR}")
    assert f"{BEYOND_TRAIL}" in told
    assert beyond.format(last) in told
    reported(way, f"{BEYOND_TRAIL}  START … {beyond.format(last)}")
    assert "including those captured later" in report(way)
    assert BEYOND_TRAIL in way.home.event_log.read_text()
    way.insert(3)
    third = way.csns(3)[-1]
    skipped(way, third)
    told = way.run("INFO REPLICAT rep1, DETAIL", "STOP REPLICAT rep1", "START REPLICAT rep1")
    assert told.count(beyond.format(third)) == 2
    assert "START REPLICAT REP1, AFTERCSN the correct CSN" in told
    reported(way, f"{BEYOND_TRAIL}  START … {beyond.format(third)}")
    skipped(way, third)
    way.insert(4)
    fourth = way.csns(4)[-1]
    told = way.run("STOP REPLICAT rep1", "START REPLICAT rep1, DRYRUN")
    assert beyond.format(fourth) in told
    assert "2 transactions with 2 rows of the trail would be skipped" in told
    assert way.ids() == [1, 2]
    told = way.run(f"START REPLICAT rep1, AFTERCSN {last}")
    assert BEYOND_TRAIL not in told
    way.arrives(4)
    way.insert(5)
    way.arrives(5)
    told = way.run("STOP REPLICAT rep1", "START REPLICAT rep1", "INFO REPLICAT rep1, DETAIL")
    assert BEYOND_TRAIL not in told + report(way)


@KINDS
def test_a_mistyped_csn_where_the_row_is_gone_is_said_and_taken_back(way: Way, kind: str) -> None:
    last = stopped_after_two(way, kind)
    way.in_south("DELETE FROM b.checks")
    assert BEYOND_TRAIL in way.run(f"START REPLICAT rep1, AFTERCSN {FAR}")
    reported(way, "EXTRBA 0, then START REPLICAT REP1, AFTERCSN the correct CSN, NOFILTERDUPTRANSACTIONS")
    way.insert(3)
    skipped(way, way.csns(3)[-1])
    told = way.run("STOP REPLICAT rep1", "INFO REPLICAT rep1, DETAIL", "START REPLICAT rep1")
    assert told.count(BEYOND_TRAIL) == 2
    reported(way, BEYOND_TRAIL)
    assert way.ids() == [1, 2]
    way.run(
        "STOP REPLICAT rep1",
        "DBLOGIN USERIDALIAS south",
        "ALTER REPLICAT rep1, EXTSEQNO 0, EXTRBA 0",
        f"START REPLICAT rep1, AFTERCSN {last}, NOFILTERDUPTRANSACTIONS",
    )
    way.arrives(3)
    way.insert(4)
    way.arrives(4)
    assert way.ids() == [1, 2, 3, 4]
    assert BEYOND_TRAIL not in way.run("INFO REPLICAT rep1, DETAIL")


@KINDS
def test_what_is_skipped_after_the_trails_former_end_is_counted_over_runs_until_the_place_is_reached(
    way: Way, kind: str
) -> None:
    stopped_after_two(way, kind)
    way.run("STOP EXTRACT ext1")
    way.insert(3, 4)
    (loaded,) = way.in_north("SELECT pg_current_wal_lsn()::text")[0]
    assert BEYOND_TRAIL in way.run(f"START REPLICAT rep1, AFTERCSN {loaded}")
    reported(way, BEYOND_TRAIL)
    way.run("STOP REPLICAT rep1")
    way.start("ext1")
    third, fourth = way.csns(4)[2:]
    way.start("rep1")
    skipped(way, third)
    way.insert(5)
    way.arrives(3)
    assert way.ids() == [1, 2, 5]
    fifth = way.csns(5)[-1]
    assert f"was reached at CSN {fifth}: 2 transactions (CSN {third} to {fourth})" in report(way)
    way.run("STOP REPLICAT rep1")
    kept = checkpoints.load(way.home.checkpoint(*REP1))
    assert not kept.options.start
    told = way.run("START REPLICAT rep1, DRYRUN", "START REPLICAT rep1", "INFO REPLICAT rep1")
    assert BEYOND_TRAIL not in told + report(way)
