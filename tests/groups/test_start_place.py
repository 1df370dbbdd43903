"""START REPLICAT ATCSN, AFTERCSN, SKIPTRANSACTION and DRYRUN, with real processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from batches import Row, Tx, make_batch
from processes import until
from trail.trail_kit import A, cut_records, write_trail
from ways import REP1, Way

from ggshell.groups.start_position import StartPlace, from_csn
from ggshell.groups.state import read_process_file
from ggshell.home.checkpoint import GroupKind, GroupOptions
from ggshell.record.operation import IoType
from ggshell.trail.name import TrailName
from ggshell.trail.positions import TransactionSpan, after_transaction, span_between
from ggshell.trail.record import decode_record
from ggshell.types import Csn, TrailPosition


@pytest.fixture
def way(tmp_path: Path, north: str, south: str) -> Iterator[Way]:
    way = Way(tmp_path / "home", north, south)
    way.add()
    way.start("ext1")
    yield way
    way.close()


def added_again(way: Way, kind: str) -> None:
    """Replicat as another kind."""
    way.run(
        "DBLOGIN USERIDALIAS south",
        "DELETE REPLICAT rep1",
        f"ADD REPLICAT rep1, {kind}EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks",
    )


def test_a_new_replicat_begins_at_or_after_a_csn_and_goes_on_from_there(way: Way) -> None:
    way.insert(1, 2, 3, 4)
    csns = way.csns(4)
    told = way.run(f"START REPLICAT rep1, ATCSN {csns[2]}, DRYRUN")
    assert "2 transactions with 2 rows would be skipped: CSN" in told
    assert csns[1] in told
    assert way.ids() == []
    way.run(f"START REPLICAT rep1, AFTERCSN {csns[1]}")
    way.arrives(2)
    assert way.ids() == [3, 4]
    assert "GGS-00518" in way.home.report("REP1").read_text()
    way.insert(5)
    way.arrives(3)
    way.run("STOP REPLICAT rep1", "START REPLICAT rep1")
    way.insert(6)
    way.arrives(4)
    assert way.ids() == [3, 4, 5, 6]
    assert way.home.report("REP1").read_text().count("GGS-00518") == 0


def test_a_transaction_that_cannot_be_applied_is_skipped_once(way: Way) -> None:
    way.in_south("INSERT INTO b.items VALUES (2, 'in the way', 0)")
    way.start("rep1")
    way.insert(1)
    way.arrives(2)
    way.run("STOP REPLICAT rep1")
    way.insert(2, 3)
    way.csns(3)
    assert "1 transaction with 1 row would be skipped" in way.run("START REPLICAT rep1, SKIPTRANSACTION, DRYRUN")
    way.run("START REPLICAT rep1, SKIPTRANSACTION")
    way.arrives(3)
    way.run("STOP REPLICAT rep1", "START REPLICAT rep1")
    way.insert(4)
    way.arrives(4)
    assert way.in_south("SELECT name FROM b.items ORDER BY id") == [("row 1",), ("in the way",), ("row 3",), ("row 4",)]


def test_a_transaction_that_ended_the_run_is_skipped_though_the_checkpoint_file_stands_before_it(way: Way) -> None:
    way.in_south("INSERT INTO b.items VALUES (3, 'in the way', 0)")
    way.insert(1, 2, 3, 4)
    way.csns(4)
    way.start("rep1")
    way.ends(REP1)
    way.run("START REPLICAT rep1, SKIPTRANSACTION")
    way.arrives(4)
    assert way.in_south("SELECT name FROM b.items WHERE id = 3") == [("in the way",)]


@pytest.mark.parametrize("kind", ["PARALLEL, ", "COORDINATED MAXTHREADS 2, "])
def test_the_transaction_that_ended_a_run_is_skipped_where_others_behind_it_are_applied(way: Way, kind: str) -> None:
    added_again(way, kind)
    way.in_south("INSERT INTO b.items VALUES (3, 'in the way', 0), (6, 'in the way', 0)")
    way.insert(*range(1, 9))
    way.csns(8)
    way.start("rep1")
    for _ in range(2):
        way.ends(REP1)
        assert "would be skipped: the last run stopped there" in way.run("START REPLICAT rep1, SKIPTRANSACTION, DRYRUN")
        way.run("START REPLICAT rep1, SKIPTRANSACTION")
    way.arrives(8)
    way.run("STOP REPLICAT rep1", "START REPLICAT rep1")
    way.insert(9)
    way.arrives(9)
    kept = way.in_south("SELECT id FROM b.items WHERE name = 'in the way' ORDER BY id")
    assert kept == [(3,), (6,)]


def test_what_comes_into_the_trail_later_but_stands_before_the_csn_is_left_out(way: Way) -> None:
    way.insert(1)
    way.csns(1)
    way.run("STOP EXTRACT ext1")
    way.insert(2, 3)
    (loaded,) = way.in_north("SELECT pg_current_wal_lsn()::text")[0]
    way.insert(4)
    way.run(f"START REPLICAT rep1, AFTERCSN {loaded}")
    way.start("ext1")
    until("row 4 arrives", lambda: 4 in way.ids())
    assert way.ids() == [4]


def test_what_was_applied_is_never_applied_again_and_wildcards_are_refused(way: Way) -> None:
    way.insert(1, 2)
    csns = way.csns(2)
    way.start("rep1")
    way.arrives(2)
    way.run("STOP REPLICAT rep1")
    assert "No transaction would be skipped" in way.run(f"START REPLICAT rep1, ATCSN {csns[0]}, DRYRUN")
    way.run(f"START REPLICAT rep1, ATCSN {csns[0]}")
    way.insert(3)
    way.arrives(3)
    assert "are for one group" in way.run("START REPLICAT *, SKIPTRANSACTION", fails=True)
    assert "is running" in way.run("START REPLICAT rep1, SKIPTRANSACTION", fails=True)
    way.run("STOP REPLICAT rep1")
    told = way.run("ALTER REPLICAT rep1, EXTSEQNO 0, EXTRBA 0, DRYRUN")
    assert "3 transactions with 3 rows would be applied again" in told
    way.start("rep1")
    way.insert(4)
    way.arrives(4)


@pytest.mark.parametrize("kind", ["", "PARALLEL, ", "COORDINATED MAXTHREADS 2, "])
def test_what_was_applied_is_applied_again_only_when_start_says_so(way: Way, kind: str) -> None:
    added_again(way, kind)
    way.insert(1, 2)
    way.start("rep1")
    way.arrives(2)
    way.run("STOP REPLICAT rep1")
    again = "UPDATE b.checks SET seqno = 0, rba = 0"  # the trail brings it again, as one that was written anew would
    way.in_south("DELETE FROM b.items", again)
    way.run("START REPLICAT rep1, FILTERDUPTRANSACTIONS")
    way.insert(3)
    way.arrives(1)
    way.run("STOP REPLICAT rep1")
    way.in_south("DELETE FROM b.items", again)
    assert "you are not logged in to a database" in way.run("START REPLICAT rep1, NOFILTERDUPTRANSACTIONS", fails=True)
    way.run("DBLOGIN USERIDALIAS south", "START REPLICAT rep1, NOFILTERDUPTRANSACTIONS")
    way.arrives(3)
    assert way.ids() == [1, 2, 3]


def test_restart_ends_and_starts_what_runs(way: Way) -> None:
    def pids() -> list[int]:
        files = (way.home.process("EXT1", GroupKind.EXTRACT), way.home.process("REP1", GroupKind.REPLICAT))
        return [entry.pid if (entry := read_process_file(file)) is not None else 0 for file in files]

    first = pids()
    assert "REP1 starting" not in way.run("RESTART ER *")  # it did not run
    second = pids()
    assert second[0] not in (0, first[0])
    way.run("RESTART REPLICAT rep1", "RESTART ER *")
    assert 0 not in pids()
    way.insert(1, 2)
    csns = way.csns(2)
    way.arrives(2)
    way.run(f"RESTART REPLICAT rep1, ATCSN {csns[0]}")  # what was applied is left out
    way.insert(3)
    way.arrives(3)


def test_of_a_batch_the_transactions_from_a_csn_on_are_left() -> None:
    batch = make_batch([Tx(csn, [Row(A, IoType.INSERT, b"%d" % csn)] * 2) for csn in (10, 20, 30)])
    for least, left in ((5, batch.pieces), (20, batch.pieces[1:]), (21, batch.pieces[2:])):
        found = from_csn(batch, Csn(least))
        assert found is not None
        assert [each.header for each in found.pieces] == [each.header for each in left]
        assert [found.data(each.first) for each in found.pieces] == [b"%d" % each.header.csn.value for each in left]
        assert len(found) == 2 * len(left)
    assert from_csn(batch, Csn(31)) is None


def test_places_and_what_lies_between_them(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    changes = [Row(A, IoType.INSERT, b"x" * 40)] * 2
    write_trail(name, [make_batch([Tx(csn, changes)]) for csn in (10, 20, 30)])
    begins = [place for place, data in cut_records(name.file(0).read_bytes()) if "L" in decode_record(data).tokens]
    first, second, third = (TrailPosition(0, place) for place in begins)
    assert StartPlace(str(Csn(20))).position(name, first) == second
    assert StartPlace(str(Csn(20)), after=True).position(name, first) == third
    assert StartPlace(str(Csn(10))).position(name, second) == second
    assert StartPlace(str(Csn(99))).position(name, first) > third
    assert StartPlace(skip=True, base=first).position(name, first) == second
    assert StartPlace(skip=True, base=first).position(name, second) == second
    assert StartPlace.of(GroupOptions(start=StartPlace(skip=True, base=first).as_option())) == StartPlace(
        skip=True, base=first
    )
    assert after_transaction(name, third) > third
    found = span_between(name, first, third)
    assert (found.transactions, found.rows, found.first_csn, found.last_csn) == (2, 4, Csn(10), Csn(20))
    assert span_between(name, third, third) == TransactionSpan()
