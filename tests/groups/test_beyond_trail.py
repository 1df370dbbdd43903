"""START REPLICAT with a CSN past the end of the trail: reported, counted, and undone by the commands that it suggests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pipelines import REP1, Pipeline
from processes import until

from ggshell.groups.start_position import BEYOND_TRAIL
from ggshell.home import checkpoint as checkpoints

FAR = "00000000/FFFFFFF0"
KINDS = pytest.mark.parametrize("kind", ["", "PARALLEL, "])


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    pipeline.add()
    pipeline.start("ext1")
    yield pipeline
    pipeline.close()


def report(pipeline: Pipeline) -> str:
    return pipeline.home.report("REP1").read_text()


def stopped_after_two(pipeline: Pipeline, kind: str) -> str:
    """A stopped Replicat that has applied two transactions and has its checkpoint row; returns the last CSN."""
    pipeline.run(
        "DBLOGIN USERIDALIAS south",
        "DELETE REPLICAT rep1",
        f"ADD REPLICAT rep1, {kind}EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks",
    )
    pipeline.insert(1, 2)
    pipeline.start("rep1")
    pipeline.wait_for_rows(2)
    pipeline.run("STOP REPLICAT rep1")
    return pipeline.csns(2)[-1]


def wait_for_report(pipeline: Pipeline, text: str) -> None:
    """Wait for a text in the report: the process opens its target after START has returned."""
    until(f"the report has: {text}", lambda: text in report(pipeline))


def wait_for_skipped(pipeline: Pipeline, csn: str) -> None:
    until(
        "the skipped transaction is reported", lambda: f"The transaction with CSN {csn} is skipped" in report(pipeline)
    )


@KINDS
def test_a_mistyped_csn_is_reported_at_each_start_until_it_is_undone(pipeline: Pipeline, kind: str) -> None:
    last = stopped_after_two(pipeline, kind)
    beyond = f"AFTERCSN {FAR} specifies a CSN past the end of the trail: the last CSN of ./dirdat/ea is {{}}"
    output = pipeline.run(f"START REPLICAT rep1, AFTERCSN {FAR}, DRYRUN")
    assert beyond.format(last) in output
    assert "No transaction would be skipped" not in output
    assert BEYOND_TRAIL not in pipeline.run("INFO REPLICAT rep1, DETAIL")
    output = pipeline.run(f"START REPLICAT rep1, AFTERCSN {FAR}")
    assert f"{BEYOND_TRAIL}" in output
    assert beyond.format(last) in output
    wait_for_report(pipeline, f"{BEYOND_TRAIL}  START … {beyond.format(last)}")
    assert "including those captured later" in report(pipeline)
    until("the event is logged", lambda: BEYOND_TRAIL in pipeline.home.event_log.read_text())
    pipeline.insert(3)
    third = pipeline.csns(3)[-1]
    wait_for_skipped(pipeline, third)
    output = pipeline.run("INFO REPLICAT rep1, DETAIL", "STOP REPLICAT rep1", "START REPLICAT rep1")
    assert output.count(beyond.format(third)) == 2
    assert "START REPLICAT REP1, AFTERCSN the correct CSN" in output
    wait_for_report(pipeline, f"{BEYOND_TRAIL}  START … {beyond.format(third)}")
    wait_for_skipped(pipeline, third)
    pipeline.insert(4)
    fourth = pipeline.csns(4)[-1]
    output = pipeline.run("STOP REPLICAT rep1", "START REPLICAT rep1, DRYRUN")
    assert beyond.format(fourth) in output
    assert "2 transactions with 2 rows of the trail would be skipped" in output
    assert pipeline.ids() == [1, 2]
    output = pipeline.run(f"START REPLICAT rep1, AFTERCSN {last}")
    assert BEYOND_TRAIL not in output
    pipeline.wait_for_rows(4)
    pipeline.insert(5)
    pipeline.wait_for_rows(5)
    output = pipeline.run("STOP REPLICAT rep1", "START REPLICAT rep1", "INFO REPLICAT rep1, DETAIL")
    assert BEYOND_TRAIL not in output + report(pipeline)


@KINDS
def test_a_mistyped_csn_without_a_checkpoint_row_is_reported_and_undone(pipeline: Pipeline, kind: str) -> None:
    last = stopped_after_two(pipeline, kind)
    pipeline.in_south("DELETE FROM b.checks")
    assert BEYOND_TRAIL in pipeline.run(f"START REPLICAT rep1, AFTERCSN {FAR}")
    wait_for_report(pipeline, "EXTRBA 0, then START REPLICAT REP1, AFTERCSN the correct CSN, NOFILTERDUPTRANSACTIONS")
    pipeline.insert(3)
    wait_for_skipped(pipeline, pipeline.csns(3)[-1])
    output = pipeline.run("STOP REPLICAT rep1", "INFO REPLICAT rep1, DETAIL", "START REPLICAT rep1")
    assert output.count(BEYOND_TRAIL) == 2
    wait_for_report(pipeline, BEYOND_TRAIL)
    assert pipeline.ids() == [1, 2]
    pipeline.run(
        "STOP REPLICAT rep1",
        "DBLOGIN USERIDALIAS south",
        "ALTER REPLICAT rep1, EXTSEQNO 0, EXTRBA 0",
        f"START REPLICAT rep1, AFTERCSN {last}, NOFILTERDUPTRANSACTIONS",
    )
    pipeline.wait_for_rows(3)
    pipeline.insert(4)
    pipeline.wait_for_rows(4)
    assert pipeline.ids() == [1, 2, 3, 4]
    assert BEYOND_TRAIL not in pipeline.run("INFO REPLICAT rep1, DETAIL")


@KINDS
def test_transactions_skipped_after_the_former_end_of_the_trail_are_counted_over_several_runs(
    pipeline: Pipeline, kind: str
) -> None:
    stopped_after_two(pipeline, kind)
    pipeline.run("STOP EXTRACT ext1")
    pipeline.insert(3, 4)
    (loaded,) = pipeline.in_north("SELECT pg_current_wal_lsn()::text")[0]
    assert BEYOND_TRAIL in pipeline.run(f"START REPLICAT rep1, AFTERCSN {loaded}")
    wait_for_report(pipeline, BEYOND_TRAIL)
    pipeline.run("STOP REPLICAT rep1")
    pipeline.start("ext1")
    third, fourth = pipeline.csns(4)[2:]
    pipeline.start("rep1")
    wait_for_skipped(pipeline, third)
    pipeline.insert(5)
    pipeline.wait_for_rows(3)
    assert pipeline.ids() == [1, 2, 5]
    fifth = pipeline.csns(5)[-1]
    assert f"was reached at CSN {fifth}: 2 transactions (CSN {third} to {fourth})" in report(pipeline)
    pipeline.run("STOP REPLICAT rep1")
    kept = checkpoints.load(pipeline.home.checkpoint(*REP1))
    assert not kept.options.start
    output = pipeline.run("START REPLICAT rep1, DRYRUN", "START REPLICAT rep1", "INFO REPLICAT rep1")
    assert BEYOND_TRAIL not in output + report(pipeline)
