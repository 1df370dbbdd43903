"""What a Replicat's options change about what arrives, with real processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import until, until_state
from ways import REP1, Way

from ggshell.groups.state import ProcessState, read_process_file


@pytest.fixture
def way(tmp_path: Path, north: str, south: str) -> Iterator[Way]:
    way = Way(tmp_path / "home", north, south)
    yield way
    way.close()


def replicat(way: Way, *lines: str) -> None:
    way.write("rep1", "\n".join(["REPLICAT rep1", "USERIDALIAS south", *lines, "MAP a.*, TARGET b.*;", ""]))


def test_reperror_lets_replicat_go_on_and_the_discard_file_has_the_row(way: Way) -> None:
    replicat(way, "REPERROR (DEFAULT, DISCARD)", "DISCARDFILE ./dirrpt/rep1.dsc, APPEND")
    way.in_south("INSERT INTO b.items VALUES (2, 'in the way', 0)")
    way.add()
    way.start()
    way.in_north("INSERT INTO a.items VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 3)")
    way.arrives(3)
    assert way.in_south("SELECT name FROM b.items ORDER BY id") == [("one",), ("in the way",), ("three",)]
    assert "name = two" in (way.home.root / "dirrpt" / "rep1.dsc").read_text()
    assert "Total discards                                     1.00" in way.run("STATS REPLICAT rep1, TOTAL")


def test_batchsql_limits_and_transdiscard_in_a_file(way: Way) -> None:
    replicat(way, "BATCHSQL OPSPERBATCH 25, OPSPERQUEUE 40", "REPERROR (DEFAULT, TRANSDISCARD)")
    way.in_south("INSERT INTO b.items VALUES (150, 'in the way', 0)")
    way.add()
    way.in_north(
        "INSERT INTO a.items SELECT n, 'one', n FROM generate_series(1, 100) n",
        "INSERT INTO a.items SELECT n, 'two', n FROM generate_series(101, 200) n",
        "INSERT INTO a.items SELECT n, 'three', n FROM generate_series(201, 300) n",
    )
    way.start()
    way.arrives(201)
    assert way.in_south("SELECT name, count(*) FROM b.items GROUP BY 1 ORDER BY 1") == [
        ("in the way", 1),
        ("one", 100),
        ("three", 100),
    ]
    assert "Total discards                                   100.00" in way.run("STATS REPLICAT rep1, TOTAL")


def test_collisions_are_handled_until_they_are_switched_off(way: Way) -> None:
    replicat(way, "HANDLECOLLISIONS")
    way.in_south("INSERT INTO b.items VALUES (1, 'copied', 0), (2, 'copied', 0)")
    way.add()
    way.start()
    way.in_north("INSERT INTO a.items VALUES (1, 'one', 1)", "INSERT INTO a.items VALUES (3, 'three', 3)")
    way.arrives(3)
    assert way.in_south("SELECT name FROM b.items WHERE id = 1") == [("one",)]
    way.run("SEND REPLICAT rep1, NOHANDLECOLLISIONS", "SEND REPLICAT rep1, HANDLECOLLISIONS b.other")
    way.run("SEND REPLICAT rep1, REPORT HANDLECOLLISIONS")
    assert "HANDLECOLLISIONS is off, on for b.other." in way.home.report("REP1").read_text()
    told = way.run("SEND REPLICAT rep1, GETPARAMINFO")
    assert "useridalias             : south" in told
    assert "map                     : a.*, TARGET b.*" in told
    assert "handlecollisions        : <enabled>" in way.run("SEND rep1, GETPARAMINFO HANDLECOLLISIONS")
    assert way.run("SEND REPLICAT rep1, LOGEND").splitlines()[-1] in ("YES", "NO")
    way.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    assert "duplicate key" in way.ends(REP1)


def test_without_a_checkpoint_table_the_file_alone_says_where_to_go_on(way: Way) -> None:
    way.add()
    way.run("DELETE REPLICAT rep1 !", "ADD REPLICAT rep1, EXTTRAIL ./dirdat/ea, NODBCHECKPOINT")
    way.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    way.start()
    way.arrives(1)
    assert "HANDLECOLLISIONS" in way.home.report("REP1").read_text()
    way.run("STOP REPLICAT rep1", "START REPLICAT rep1")
    way.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    way.arrives(2)
    way.same()


def test_a_replicat_killed_between_commit_and_file_applies_nothing_twice(way: Way) -> None:
    """The checkpoint table wins over the file."""
    way.add()
    way.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    way.start()
    way.arrives(1)
    file = way.home.checkpoint(*REP1)
    before = file.read_bytes()
    way.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    way.arrives(2)
    entry = read_process_file(way.home.process(*REP1))
    assert entry is not None
    os.kill(entry.pid, signal.SIGKILL)
    until_state(way.home, *REP1, ProcessState.ABENDED)
    file.write_bytes(before)
    way.start("rep1")
    way.in_north("INSERT INTO a.items VALUES (3, 'three', 3)")
    way.arrives(3)
    way.same()


def test_a_target_restored_from_a_backup_is_caught_up_from_its_row(way: Way) -> None:
    way.add()
    way.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    way.start()
    way.arrives(1)
    way.run("STOP REPLICAT rep1")
    way.in_south(
        "CREATE TABLE b.backup AS SELECT * FROM b.items", "CREATE TABLE b.checks_backup AS SELECT * FROM b.checks"
    )
    way.start("rep1")
    way.in_north("INSERT INTO a.items VALUES (2, 'two', 2)", "UPDATE a.items SET price = 9")
    way.arrives(2)
    way.run("STOP REPLICAT rep1")
    until_state(way.home, *REP1, ProcessState.STOPPED)
    way.in_south(
        "TRUNCATE b.items, b.checks",
        "INSERT INTO b.items SELECT * FROM b.backup",
        "INSERT INTO b.checks SELECT * FROM b.checks_backup",
    )
    way.start("rep1")
    way.arrives(2)
    until("the update is there again", lambda: way.in_south("SELECT DISTINCT price FROM b.items") == [(9,)])
    way.same()
    assert "OGG-30200" in way.home.report("REP1").read_text()


def test_reperror_within_a_map_holds_for_its_rows_alone(way: Way) -> None:
    way.in_north("CREATE TABLE a.others (id int PRIMARY KEY)")
    way.in_south(
        "CREATE TABLE b.others (id int PRIMARY KEY)",
        "INSERT INTO b.others VALUES (1)",
        "INSERT INTO b.items VALUES (2, 'in the way', 0)",
    )
    lines = (
        "REPERROR (DEFAULT, ABEND)",
        "MAP a.items, TARGET b.items, REPERROR (23505, IGNORE);",
        "MAP a.*, TARGET b.*;",
    )
    way.write("rep1", "\n".join(["REPLICAT rep1", "USERIDALIAS south", *lines, ""]))
    way.add()
    way.run("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.others")
    way.start()
    way.in_north("INSERT INTO a.items VALUES (1, 'one', 1), (2, 'two', 2)")
    way.arrives(2)
    way.in_north("INSERT INTO a.others VALUES (1)")
    assert "b.others (id = 1) failed" in way.ends(REP1)
