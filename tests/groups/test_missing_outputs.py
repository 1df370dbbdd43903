"""An Extract or a pump whose rows would go nowhere ends: it does not run, and confirms nothing to its source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import until
from ways import EXT1, Way

from ggshell.home.checkpoint import GroupKind

PUMP = ("PMP1", GroupKind.EXTRACT)


@pytest.fixture
def way(tmp_path: Path, north: str, south: str) -> Iterator[Way]:
    way = Way(tmp_path / "home", north, south)
    yield way
    way.close()


def test_an_extract_whose_trail_was_not_added_captures_nothing_until_it_is(way: Way) -> None:
    way.run(
        *("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.items", "REGISTER EXTRACT ext1"),
        "ADD EXTRACT ext1, TRANLOG, BEGIN NOW",
    )
    way.start("ext1")
    way.in_north("INSERT INTO a.items SELECT n, 'x', 1 FROM generate_series(1, 100) n")
    assert "OGG-01044  The trail './dirdat/ea' is not assigned to extract 'EXT1'." in way.ends(EXT1)
    way.run("ADD EXTTRAIL ./dirdat/zz, EXTRACT ext1", "START EXTRACT ext1")
    assert "OGG-01044" in way.ends(EXT1)
    way.run(
        *("DELETE EXTTRAIL ./dirdat/zz", "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1", "START EXTRACT ext1"),
        *("DBLOGIN USERIDALIAS south", "ADD CHECKPOINTTABLE b.checks"),
        *("ADD REPLICAT rep1, EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks", "START REPLICAT rep1"),
    )
    way.arrives(100)
    way.same()


def test_a_pump_without_a_trail_reads_nothing(way: Way) -> None:
    way.write("pmp1", "EXTRACT pmp1\nPASSTHRU\nTABLE a.*;\n")
    way.add()
    way.run("ADD EXTRACT pmp1, EXTTRAILSOURCE ./dirdat/ea", "START EXTRACT pmp1")
    until("it ends", lambda: "PMP1 has no trail to write" in way.ends(PUMP))


def test_a_trail_file_that_is_deleted_while_extract_writes_it_ends_extract_before_it_confirms(way: Way) -> None:
    way.add()
    way.start()
    way.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    way.arrives(1)
    way.run("STOP REPLICAT rep1")
    way.home.resolve("./dirdat/ea000000000").unlink()
    way.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    assert "was deleted or replaced while it was being written" in way.ends(EXT1)
    confirmed = (
        "SELECT confirmed_flush_lsn < pg_current_wal_lsn() FROM pg_replication_slots WHERE slot_name = 'ggs_ext1'"
    )
    assert way.in_north(confirmed) == [(True,)]
