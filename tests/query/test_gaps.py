"""TRAIL GAPS: an intact trail is reported as such, and every kind of loss is reported with its position."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from batches import Tx, make_batch
from both_engines import local_engine, spark_engine
from trail_kit import cut_records
from trail_samples import EMPLOYEES, PRODUCER, insert, random_transactions, trail_in, write_trail

from ggshell.clock import FakeClock
from ggshell.errors import UsageError
from ggshell.query.queries import counts
from ggshell.query.queries.file_facts import FileFacts, unread_notes
from ggshell.query.queries.gaps import LISTED_PAUSES, Stand, TrailFinding, TrailState, _broken, _Row, gaps
from ggshell.query.queries.trails import QueriedTrails, trails
from ggshell.query.session import WarmSession
from ggshell.query.splits import cut_place
from ggshell.record.operation import TransInd
from ggshell.trail.columnar import read_columnar
from ggshell.trail.name import TrailName
from ggshell.trail.reach import unreachable
from ggshell.trail.writer import TrailWriter
from ggshell.types import Csn, TrailPosition

CHECKS = ("files", "damage", "continuity", "transactions", "csn", "restarts", "pauses")


def check(name: TrailName, pause: float = 3600) -> list[TrailFinding]:
    return gaps(trails([str(name)], name.folder, local_engine()), pause)


def gaps_of(found: list[TrailFinding]) -> list[tuple[str, int | None]]:
    return [(each.check, each.seqno) for each in found if each.state is TrailState.GAP]


@pytest.fixture
def name(tmp_path: Path) -> TrailName:
    found = trail_in(tmp_path)
    write_trail(found, random_transactions(7, 150), max_bytes=9000)
    assert len(found.sequences()) > 4
    return found


def test_an_intact_trail_has_no_gaps(name: TrailName) -> None:
    found = check(name)
    assert [(each.check, each.state) for each in found] == [(check, TrailState.GOOD) for check in CHECKS]
    assert next(each.detail for each in found if each.check == "transactions").startswith("150 transactions with ")


def test_a_single_file_transaction_and_record_are_singular(tmp_path: Path) -> None:
    name = trail_in(tmp_path)
    write_trail(name, [[insert(EMPLOYEES, id="1", name="x")]])
    details = {each.check: each.detail for each in check(name, 1)}
    assert details["files"].startswith("1 file, sequence 0 to 0, ")
    assert details["transactions"] == "1 transaction with 1 record; each one begins and ends"
    assert details["pauses"] == "no pause of 1 second or more between commits"


def test_a_missing_file_is_reported(name: TrailName) -> None:
    name.file(2).unlink()
    assert gaps_of(check(name)) == [("files", 2)]


def test_a_file_of_another_size_is_reported_from_the_next_files_header(name: TrailName) -> None:
    """Cut after a whole transaction: nothing in the file itself is wrong."""
    content = name.file(2).read_bytes()
    ends = [rba for rba, record in cut_records(content) if record[8 + 28] in (TransInd.BEGIN, TransInd.SOLE)]
    name.file(2).write_bytes(content[: ends[-1]])
    assert ("continuity", 3) in gaps_of(check(name))


def test_damage_is_reported_with_file_and_rba_and_the_rest_is_still_checked(name: TrailName) -> None:
    content = bytearray(name.file(1).read_bytes())
    place = len(content) // 2
    content[place] ^= 0xFF
    name.file(1).write_bytes(content)
    found = check(name)
    reported = next(each for each in found if each.check == "damage")
    assert reported.state is TrailState.GAP
    assert f"{name.file(1)}" in reported.detail
    assert ("files", TrailState.GOOD) in [(each.check, each.state) for each in found]


def test_nothing_that_damage_hides_is_reported_as_ok(name: TrailName) -> None:
    """Finding: it reported "ok" for positions in a trail that no group can read to its end."""
    content = bytearray(name.file(1).read_bytes())
    content[len(content) // 2] ^= 0xFF
    name.file(1).write_bytes(content)
    queried = trails([str(name)], name.folder, local_engine())
    found = gaps(queried, stands=[Stand(str(name), "REPLICAT REP1", unreachable(name, TrailPosition(0, 0)))])
    assert [each.check for each in found if each.state is TrailState.GOOD] == ["files"]
    (place,) = [each for each in found if each.check == "positions"]
    assert place.state is TrailState.NOTE
    assert "the rest is not checked" in place.detail


@pytest.fixture
def long_transaction(tmp_path: Path) -> TrailName:
    """A trail with a transaction in files 0 to 4 and more."""
    name = trail_in(tmp_path)
    writer = TrailWriter.open(name, clock=FakeClock(), producer=PRODUCER, max_bytes=3000)
    for csn, begins, ends in ((1, True, True), *((2, n == 0, n == 19) for n in range(20)), (3, True, True)):
        rows = [insert(EMPLOYEES, id=str(n), name="x" * 500) for n in range(3)]
        writer.write(make_batch([Tx(csn, rows, begins, ends)]))
    writer.flush()
    writer.close()
    assert len(name.sequences()) >= 5
    return name


def test_both_engines_report_the_same_damage(name: TrailName, warm: WarmSession) -> None:
    for seqno in (1, 3):
        content = bytearray(name.file(seqno).read_bytes())
        content[len(content) // 2] ^= 0xFF
        name.file(seqno).write_bytes(content)
    queried = trails([str(name)], name.folder, local_engine())
    on_duckdb = gaps(queried)
    assert gaps(QueriedTrails(queried.files, spark_engine(warm))) == on_duckdb
    assert [each.check for each in on_duckdb if each.state is TrailState.GAP].count("damage") == 2


def test_a_transaction_across_many_files_is_whole(long_transaction: TrailName) -> None:
    assert [each.state for each in check(long_transaction)] == [TrailState.GOOD] * len(CHECKS)


def test_a_transaction_that_does_not_end_before_the_next_one_is_named_by_its_id() -> None:
    """Regression: the detail had its CSN, where all others have the transaction ID."""
    file = FileFacts("./dirdat/ea", 0, 1000, None, 0, 0, ())
    before = {"earlier_csn": "5", "earlier_xid": "701", "earlier_commit": 0, "earlier_ind": TransInd.BEGIN}
    row = _Row(
        "./dirdat/ea",
        0,
        500,
        "6",
        "702",
        0,
        TransInd.SOLE,
        **before,
        is_last=True,
        records=2,
        transactions=1,
        fault=None,
    )
    [found] = _broken([file], {0: [row]})
    assert found.detail == "transaction 701 does not end before this one begins"


def test_a_transaction_without_its_middle_file_is_reported(long_transaction: TrailName) -> None:
    long_transaction.file(2).unlink()
    assert gaps_of(check(long_transaction)) == [("files", 2), ("transactions", 3)]


def test_purged_files_at_the_beginning_are_not_a_gap(long_transaction: TrailName) -> None:
    long_transaction.file(0).unlink()
    long_transaction.file(1).unlink()
    found = check(long_transaction)
    assert gaps_of(found) == []
    assert [(each.check, each.seqno) for each in found if each.state is TrailState.NOTE] == [("transactions", 2)]


def test_a_last_file_that_was_cut_is_read_up_to_the_cut_and_reported(name: TrailName) -> None:
    last = name.file(max(name.sequences()))
    size = last.stat().st_size
    os.truncate(last, size - 20)
    (found,) = [each for each in check(name) if each.state is TrailState.GAP]
    assert (found.check, found.seqno) == ("damage", max(name.sequences()))
    assert found.detail.startswith("20 bytes that were durable are missing")
    (note,) = unread_notes([str(last)])
    assert note.endswith(f"it is read up to RBA {found.rba:,}")
    queried = trails([str(name)], name.folder, local_engine())
    assert counts.count(queried, "OP").rows


def test_a_last_file_cut_at_any_length_is_read_up_to_its_last_whole_transaction(tmp_path: Path) -> None:
    """Its first records hold no rows: a cut after them leaves nothing to read, and that is not an error."""
    name = trail_in(tmp_path)
    write_trail(name, [[insert(EMPLOYEES, id=str(number))] for number in range(2)])
    last = name.file(0)
    content = last.read_bytes()
    rows = []
    for size in range(cut_records(content)[0][0], len(content) + 1):
        last.write_bytes(content[:size])
        rows.append(sum(len(batch) for batch in read_columnar(last, ["csn"], last=cut_place(last))))
    assert rows == sorted(rows)
    assert (rows[0], rows[-1], set(rows)) == (0, 2, {0, 1, 2})


def test_a_missing_last_file_is_reported_by_the_durable_mark(name: TrailName) -> None:
    last = max(name.sequences())
    name.file(last).unlink()
    assert gaps_of(check(name)) == [("files", last)]


def test_three_thousand_pauses_are_summarized(tmp_path: Path) -> None:
    name = trail_in(tmp_path)
    csns = [100_000 * number + 50_000 * (number > 9) for number in range(1, 41)]
    writer = TrailWriter.open(name, clock=FakeClock(), producer=PRODUCER, max_bytes=1 << 30)
    writer.write(make_batch([Tx(csn, [insert(EMPLOYEES, id=str(csn))]) for csn in csns]))
    writer.flush()
    writer.close()
    reported = [each.detail for each in check(name, 60) if each.check == "pauses"]
    assert len(reported) == LISTED_PAUSES + 1
    assert any("150 seconds" in each for each in reported)
    assert reported[-1].startswith("34 shorter pauses besides these")


def test_a_group_that_cannot_continue_from_its_position_is_reported_as_a_gap(name: TrailName) -> None:
    end = TrailPosition(max(name.sequences()), 1 << 20)
    positions = [
        Stand(str(name), "REPLICAT REP1", unreachable(name, TrailPosition(0, 0))),
        Stand(str(name), "EXTRACT PMP1", unreachable(name, end)),
    ]
    queried = trails([str(name)], name.folder, local_engine())
    (found,) = [each for each in gaps(queried, stands=positions) if each.check == "positions"]
    assert found.state is TrailState.GAP
    assert found.detail.startswith("EXTRACT PMP1 cannot continue")
    (whole,) = [each for each in gaps(queried, stands=positions[:1]) if each.check == "positions"]
    assert whole.state is TrailState.GOOD


def test_a_trail_without_a_mark_is_read_up_to_its_last_whole_transaction(name: TrailName) -> None:
    (name.folder / ".ea.durable").unlink()
    last = name.file(max(name.sequences()))
    end = last.stat().st_size
    with last.open("ab") as file:
        file.write(b"torn")
    found = check(name)
    assert gaps_of(found) == []
    assert [(each.check, each.rba) for each in found if each.state is TrailState.NOTE] == [("end", end)]


def test_a_file_of_another_kind_is_refused_and_an_incomplete_one_is_reported(name: TrailName) -> None:
    other = name.file(max(name.sequences()) + 1)
    other.write_text("hello")
    with pytest.raises(UsageError, match="has the name of a trail file but is not one"):
        check(name)
    other.write_bytes(b"")
    found = check(name)
    assert (gaps_of(found), [each.detail for each in found if each.state is TrailState.NOTE]) == (
        [],
        ["the file has only just been created"],
    )


def test_csns_that_do_not_rise_are_reported(tmp_path: Path) -> None:
    name = trail_in(tmp_path)
    writer = TrailWriter.open(name, clock=FakeClock(), producer=PRODUCER, max_bytes=1 << 30)
    for csn in (1, 2, 5, 4, 6):
        writer.write(make_batch([Tx(csn, [insert(EMPLOYEES, id="1")])]))
        writer.flush()
    writer.close()
    found = [each for each in check(name) if each.state is TrailState.GAP]
    assert [(each.check, each.csn) for each in found] == [("csn", str(Csn(4)))]


def test_a_repeated_transaction_is_reported_and_different_ones_with_the_same_csn_are_not(tmp_path: Path) -> None:
    """An initial load has one transaction for each table, all with the CSN of its snapshot."""
    name = trail_in(tmp_path)
    writer = TrailWriter.open(name, clock=FakeClock(), producer=PRODUCER, max_bytes=1 << 30)
    batch = make_batch([Tx(4, [insert(EMPLOYEES, id=str(number))]) for number in range(3)])
    own = [
        replace(piece, header=piece.header._replace(xid=f"704.{number}")) for number, piece in enumerate(batch.pieces)
    ]
    writer.write(replace(batch, pieces=tuple(own)))
    writer.flush()
    assert gaps_of(check(name)) == []
    writer.write(replace(batch, pieces=(*own[:2], replace(own[1], first=2))))
    writer.flush()
    writer.close()
    found = [each for each in check(name) if each.state is TrailState.GAP]
    assert [(each.check, each.csn) for each in found] == [("csn", str(Csn(4)))]


def test_restarts_pauses_and_bytes_past_the_durable_mark_are_reported_but_are_not_gaps(tmp_path: Path) -> None:
    name = trail_in(tmp_path)
    write_trail(name, random_transactions(8, 20))
    end = name.file(0).stat().st_size
    write_trail(name, random_transactions(9, 20), first_csn=500_000)  # One millisecond per CSN.
    size = name.file(0).stat().st_size
    with name.file(0).open("ab") as file:
        file.write(b"torn")
    found = check(name, pause=400)
    assert gaps_of(found) == []
    assert [(each.check, each.rba) for each in found if each.state is TrailState.NOTE][:2] == [
        ("restarts", end),
        ("end", size),
    ]
    assert "in the 500 seconds before" in next(each.detail for each in found if each.check == "pauses")


def test_every_query_reports_the_missing_files_of_a_trail(tmp_path: Path) -> None:
    name = trail_in(tmp_path)
    write_trail(name, random_transactions(3, 60), max_bytes=4_000)
    files = [str(name.file(seqno)) for seqno in name.sequences()]
    assert len(files) > 4
    assert unread_notes([files[0], files[-1]]) == []  # The other files exist, and were not queried.
    name.file(1).unlink()
    name.file(2).unlink()
    name.file(len(files) - 1).unlink()
    reported = unread_notes([file for file in files if Path(file).exists()])
    assert reported == [
        f"files 000000001 to 000000002 of {name} missing: the answer does not include their records",
        f"{name} reached to file {len(files) - 1:09d}, which does not exist",
    ]
