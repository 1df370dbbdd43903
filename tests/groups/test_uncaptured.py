"""An Extract that is added over a slot with changes: what it would skip is named, with the statement that captures it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import until
from ways import EXT1, Way

NORTH = "DBLOGIN USERIDALIAS north"
ADDED = ("ADD EXTRACT ext1, TRANLOG, BEGIN NOW", "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 10")
HELD = re.compile(r"Slot ggs_ext1 holds changes .*: [1-9]\d* bytes of log from LSN (\S+)\. ")


@pytest.fixture
def way(tmp_path: Path, north: str, south: str) -> Iterator[Way]:
    """Two rows have arrived, two more are in the source only, and Extract's checkpoint file is lost."""
    way = Way(tmp_path / "home", north, south)
    way.add()
    way.start()
    way.in_north("INSERT INTO a.items VALUES (1, 'one', 1), (2, 'two', 2)")
    way.arrives(2)
    way.run("STOP EXTRACT ext1")
    way.in_north("INSERT INTO a.items VALUES (3, 'three', 3)", "INSERT INTO a.items VALUES (4, 'four', 4)")
    path = way.home.checkpoint(*EXT1)
    path.unlink()
    path.with_name(f"{path.name}.previous").unlink(missing_ok=True)
    yield way
    way.close()


def test_begin_now_over_a_slot_with_changes_names_the_statement_that_captures_them(way: Way) -> None:
    """Finding: ADD EXTRACT, BEGIN NOW after a lost checkpoint file skipped what the slot held, silently."""
    said = way.run(NORTH, *ADDED)
    found = HELD.search(said)
    assert found, said
    statement = f"ALTER EXTRACT EXT1, LSN {found[1]}"
    assert statement in said
    assert "Slot ggs_ext1" not in way.run(NORTH, statement)
    way.start("ext1")
    way.arrives(4)
    way.same()
    assert "Slot ggs_ext1" not in way.home.report("EXT1").read_text()


def test_a_start_that_skips_changes_of_the_slot_says_so(way: Way) -> None:
    way.run(NORTH, *ADDED)
    way.start("ext1")
    report = way.home.report("EXT1")
    until("the report says so", lambda: HELD.search(report.read_text()) is not None)
    assert HELD.search(way.home.event_log.read_text())


def test_a_slot_without_changes_is_not_warned_of(tmp_path: Path, north: str, south: str) -> None:
    way = Way(tmp_path / "home", north, south)
    try:
        said = way.run(NORTH, "ADD TRANDATA a.items", "REGISTER EXTRACT ext1")
        way.in_north("CREATE TABLE a.other AS SELECT 1 AS n")
        assert "Slot ggs_ext1" not in said + way.run(NORTH, *ADDED)
    finally:
        way.close()


def test_a_place_after_the_end_of_the_log_is_refused(tmp_path: Path, north: str, south: str) -> None:
    """Finding: ALTER EXTRACT with a mistyped LSN was taken, and Extract ended with words about a restored source."""
    way = Way(tmp_path / "home", north, south)
    past = "LSN 7F/50056B8 is past the end of the source's log, "
    try:
        way.add()
        way.start()
        way.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
        way.arrives(1)
        way.run("STOP EXTRACT ext1")
        ((kept,),) = way.in_north(
            "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = 'ggs_ext1'"
        )
        way.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
        statement = "ALTER EXTRACT ext1, LSN 7F/50056B8"
        said = way.run(NORTH, statement, fails=True)
        assert past in said
        assert past in way.run(NORTH, "ALTER EXTRACT ext1, EXTSEQNO 127, EXTRBA 83908280", fails=True)
        way.run(statement)
        way.start("ext1")
        report = way.ends(EXT1)
        assert "GGS-00546" in report
        assert "capture cannot begin at LSN 7F/50056B8: the source's log ends at " in report
        way.run(NORTH, f"ALTER EXTRACT ext1, LSN {kept}")
        way.start("ext1")
        way.arrives(2)
        way.same()
    finally:
        way.close()
