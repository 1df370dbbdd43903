"""START REPLICAT ATCSN, AFTERCSN, SKIPTRANSACTION and DRYRUN, with real processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from batches import Row, Tx, make_batch
from pipelines import REP1, Pipeline
from processes import until
from trail_kit import A, cut_records, write_trail

from ggshell.groups.start_position import StartPosition, from_csn
from ggshell.home.checkpoint import GroupKind, GroupOptions
from ggshell.home.process_file import read_process_file
from ggshell.record.operation import IoType
from ggshell.trail.name import TrailName
from ggshell.trail.positions import TransactionSpan, after_transaction, span_between
from ggshell.trail.record import decode_record
from ggshell.types import Csn, TrailPosition


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    pipeline.add()
    pipeline.start("ext1")
    yield pipeline
    pipeline.close()


def add_again(pipeline: Pipeline, kind: str) -> None:
    """Delete REP1 and add it again as another kind."""
    pipeline.run(
        "DBLOGIN USERIDALIAS south",
        "DELETE REPLICAT rep1",
        f"ADD REPLICAT rep1, {kind}EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks",
    )


def test_a_new_replicat_starts_at_or_after_a_csn_and_resumes_from_there(pipeline: Pipeline) -> None:
    pipeline.insert(1, 2, 3, 4)
    csns = pipeline.csns(4)
    output = pipeline.run(f"START REPLICAT rep1, ATCSN {csns[2]}, DRYRUN")
    assert "2 transactions with 2 rows would be skipped: CSN" in output
    assert csns[1] in output
    assert pipeline.ids() == []
    pipeline.run(f"START REPLICAT rep1, AFTERCSN {csns[1]}")
    pipeline.wait_for_rows(2)
    assert pipeline.ids() == [3, 4]
    assert "GGS-00518" in pipeline.home.report("REP1").read_text()
    pipeline.insert(5)
    pipeline.wait_for_rows(3)
    pipeline.run("STOP REPLICAT rep1", "START REPLICAT rep1")
    pipeline.insert(6)
    pipeline.wait_for_rows(4)
    assert pipeline.ids() == [3, 4, 5, 6]
    assert pipeline.home.report("REP1").read_text().count("GGS-00518") == 0


def test_a_transaction_that_cannot_be_applied_is_skipped_once(pipeline: Pipeline) -> None:
    pipeline.in_south("INSERT INTO b.items VALUES (2, 'in the way', 0)")
    pipeline.start("rep1")
    pipeline.insert(1)
    pipeline.wait_for_rows(2)
    pipeline.run("STOP REPLICAT rep1")
    pipeline.insert(2, 3)
    pipeline.csns(3)
    assert "1 transaction with 1 row would be skipped" in pipeline.run("START REPLICAT rep1, SKIPTRANSACTION, DRYRUN")
    pipeline.run("START REPLICAT rep1, SKIPTRANSACTION")
    pipeline.wait_for_rows(3)
    pipeline.run("STOP REPLICAT rep1", "START REPLICAT rep1")
    pipeline.insert(4)
    pipeline.wait_for_rows(4)
    assert pipeline.in_south("SELECT name FROM b.items ORDER BY id") == [
        ("row 1",),
        ("in the way",),
        ("row 3",),
        ("row 4",),
    ]


def test_a_transaction_that_abended_the_run_is_skipped_when_the_checkpoint_file_is_earlier(
    pipeline: Pipeline,
) -> None:
    pipeline.in_south("INSERT INTO b.items VALUES (3, 'in the way', 0)")
    pipeline.insert(1, 2, 3, 4)
    pipeline.csns(4)
    pipeline.start("rep1")
    pipeline.abended_report(REP1)
    pipeline.run("START REPLICAT rep1, SKIPTRANSACTION")
    pipeline.wait_for_rows(4)
    assert pipeline.in_south("SELECT name FROM b.items WHERE id = 3") == [("in the way",)]


@pytest.mark.parametrize("kind", ["PARALLEL, ", "COORDINATED MAXTHREADS 2, "])
def test_a_transaction_that_abended_the_run_is_skipped_when_later_ones_are_applied(
    pipeline: Pipeline, kind: str
) -> None:
    add_again(pipeline, kind)
    pipeline.in_south("INSERT INTO b.items VALUES (3, 'in the way', 0), (6, 'in the way', 0)")
    pipeline.insert(*range(1, 9))
    pipeline.csns(8)
    pipeline.start("rep1")
    for _ in range(2):
        pipeline.abended_report(REP1)
        assert "would be skipped: the last run stopped there" in pipeline.run(
            "START REPLICAT rep1, SKIPTRANSACTION, DRYRUN"
        )
        pipeline.run("START REPLICAT rep1, SKIPTRANSACTION")
    pipeline.wait_for_rows(8)
    pipeline.run("STOP REPLICAT rep1", "START REPLICAT rep1")
    pipeline.insert(9)
    pipeline.wait_for_rows(9)
    kept = pipeline.in_south("SELECT id FROM b.items WHERE name = 'in the way' ORDER BY id")
    assert kept == [(3,), (6,)]


def test_a_transaction_before_the_csn_is_skipped_when_it_reaches_the_trail_later(pipeline: Pipeline) -> None:
    pipeline.insert(1)
    pipeline.csns(1)
    pipeline.run("STOP EXTRACT ext1")
    pipeline.insert(2, 3)
    (loaded,) = pipeline.in_north("SELECT pg_current_wal_lsn()::text")[0]
    pipeline.insert(4)
    pipeline.run(f"START REPLICAT rep1, AFTERCSN {loaded}")
    pipeline.start("ext1")
    until("row 4 arrives", lambda: 4 in pipeline.ids())
    assert pipeline.ids() == [4]


def test_applied_transactions_are_not_repeated_and_wildcards_are_refused(pipeline: Pipeline) -> None:
    pipeline.insert(1, 2)
    csns = pipeline.csns(2)
    pipeline.start("rep1")
    pipeline.wait_for_rows(2)
    pipeline.run("STOP REPLICAT rep1")
    assert "No transaction would be skipped" in pipeline.run(f"START REPLICAT rep1, ATCSN {csns[0]}, DRYRUN")
    pipeline.run(f"START REPLICAT rep1, ATCSN {csns[0]}")
    pipeline.insert(3)
    pipeline.wait_for_rows(3)
    assert "are for one group" in pipeline.run("START REPLICAT *, SKIPTRANSACTION", fails=True)
    assert "is running" in pipeline.run("START REPLICAT rep1, SKIPTRANSACTION", fails=True)
    pipeline.run("STOP REPLICAT rep1")
    output = pipeline.run("ALTER REPLICAT rep1, EXTSEQNO 0, EXTRBA 0, DRYRUN")
    assert "3 transactions with 3 rows would be applied again" in output
    pipeline.start("rep1")
    pipeline.insert(4)
    pipeline.wait_for_rows(4)


@pytest.mark.parametrize("kind", ["", "PARALLEL, ", "COORDINATED MAXTHREADS 2, "])
def test_applied_transactions_are_repeated_only_on_request(pipeline: Pipeline, kind: str) -> None:
    add_again(pipeline, kind)
    pipeline.insert(1, 2)
    pipeline.start("rep1")
    pipeline.wait_for_rows(2)
    pipeline.run("STOP REPLICAT rep1")
    again = "UPDATE b.checks SET seqno = 0, rba = 0"  # the trail is read again, as if it had been rewritten
    pipeline.in_south("DELETE FROM b.items", again)
    pipeline.run("START REPLICAT rep1, FILTERDUPTRANSACTIONS")
    pipeline.insert(3)
    pipeline.wait_for_rows(1)
    pipeline.run("STOP REPLICAT rep1")
    pipeline.in_south("DELETE FROM b.items", again)
    assert "you are not logged in to a database" in pipeline.run(
        "START REPLICAT rep1, NOFILTERDUPTRANSACTIONS", fails=True
    )
    pipeline.run("DBLOGIN USERIDALIAS south", "START REPLICAT rep1, NOFILTERDUPTRANSACTIONS")
    pipeline.wait_for_rows(3)
    assert pipeline.ids() == [1, 2, 3]


def test_restart_stops_and_starts_running_groups_only(pipeline: Pipeline) -> None:
    def pids() -> list[int]:
        files = (pipeline.home.process("EXT1", GroupKind.EXTRACT), pipeline.home.process("REP1", GroupKind.REPLICAT))
        return [entry.pid if (entry := read_process_file(file)) is not None else 0 for file in files]

    first = pids()
    assert "REP1 starting" not in pipeline.run("RESTART ER *")  # it did not run
    second = pids()
    assert second[0] not in (0, first[0])
    pipeline.run("RESTART REPLICAT rep1", "RESTART ER *")
    assert 0 not in pids()
    pipeline.insert(1, 2)
    csns = pipeline.csns(2)
    pipeline.wait_for_rows(2)
    pipeline.run(f"RESTART REPLICAT rep1, ATCSN {csns[0]}")  # applied transactions are skipped
    pipeline.insert(3)
    pipeline.wait_for_rows(3)


def test_from_csn_keeps_the_transactions_of_a_batch_from_a_csn_on() -> None:
    batch = make_batch([Tx(csn, [Row(A, IoType.INSERT, b"%d" % csn)] * 2) for csn in (10, 20, 30)])
    for least, left in ((5, batch.pieces), (20, batch.pieces[1:]), (21, batch.pieces[2:])):
        found = from_csn(batch, Csn(least))
        assert found is not None
        assert [each.header for each in found.pieces] == [each.header for each in left]
        assert [found.data(each.first) for each in found.pieces] == [b"%d" % each.header.csn.value for each in left]
        assert len(found) == 2 * len(left)
    assert from_csn(batch, Csn(31)) is None


def test_start_positions_and_the_span_between_two_of_them(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    changes = [Row(A, IoType.INSERT, b"x" * 40)] * 2
    write_trail(name, [make_batch([Tx(csn, changes)]) for csn in (10, 20, 30)])
    begins = [place for place, data in cut_records(name.file(0).read_bytes()) if "L" in decode_record(data).tokens]
    first, second, third = (TrailPosition(0, place) for place in begins)
    assert StartPosition(str(Csn(20))).position(name, first) == second
    assert StartPosition(str(Csn(20)), after=True).position(name, first) == third
    assert StartPosition(str(Csn(10))).position(name, second) == second
    assert StartPosition(str(Csn(99))).position(name, first) > third
    assert StartPosition(skip=True, base=first).position(name, first) == second
    assert StartPosition(skip=True, base=first).position(name, second) == second
    assert StartPosition.of(GroupOptions(start=StartPosition(skip=True, base=first).as_option())) == StartPosition(
        skip=True, base=first
    )
    assert after_transaction(name, third) > third
    found = span_between(name, first, third)
    assert (found.transactions, found.rows, found.first_csn, found.last_csn) == (2, 4, Csn(10), Csn(20))
    assert span_between(name, third, third) == TransactionSpan()
