"""REPERROR's answers about whole transactions in Replicats of every kind, with real processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import until, until_state
from ways import REP1, Way

from ggshell.groups.state import ProcessState

KINDS = {
    "classic": ("", "", ""),
    "parallel": ("PARALLEL,", "APPLY_PARALLELISM 2", ""),
    "parallel in order": ("PARALLEL,", "APPLY_PARALLELISM 2\nCOMMIT_SERIALIZATION FULL", ""),
    "coordinated": ("COORDINATED MAXTHREADS 3,", "", ", THREAD (2)"),
}
LARGE = "INSERT INTO a.items SELECT n, repeat('x', 1000000), n FROM generate_series({}, {}) n"
"""Rows of 1 MB: five of them are more than is held back until the end comes."""


@pytest.fixture
def way(tmp_path: Path, north: str, south: str) -> Iterator[Way]:
    way = Way(tmp_path / "home", north, south)
    yield way
    way.close()


def prepare(way: Way, kind: str, rule: str, *maps: str) -> None:
    added, parameters, thread = KINDS[kind]
    lines = maps or (f"MAP a.items, TARGET b.items{thread};",)
    way.write("rep1", "\n".join(["REPLICAT rep1", "USERIDALIAS south", parameters, f"REPERROR {rule}", *lines, ""]))
    way.add()
    way.run(
        "DBLOGIN USERIDALIAS south",
        "DELETE REPLICAT rep1 !",
        f"ADD REPLICAT rep1, {added} EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks",
    )


def told(way: Way, text: str) -> int:
    return way.home.report("REP1").read_text().count(text)


def ids(way: Way) -> list[int]:
    return [row[0] for row in way.in_south("SELECT id FROM b.items ORDER BY id")]


@pytest.mark.parametrize("kind", KINDS)
def test_transabort_tries_a_transaction_again(way: Way, kind: str) -> None:
    prepare(way, kind, "(23505, TRANSABORT, DELAYCSECS 5)")
    way.in_south("INSERT INTO b.items VALUES (2, 'in the way', 0)")
    way.start()
    way.in_north(
        "INSERT INTO a.items VALUES (1, 'one', 1)", "INSERT INTO a.items VALUES (2, 'two', 2), (3, 'three', 3)"
    )
    until("it is tried a third time", lambda: told(way, "GGS-00563") >= 3)
    assert ids(way) == [1, 2]
    way.in_south("DELETE FROM b.items WHERE id = 2")
    way.arrives(3)
    way.same()
    way.in_north("INSERT INTO a.items VALUES (4, 'four', 4)")
    way.arrives(4)


@pytest.mark.parametrize("kind", KINDS)
def test_transabort_ends_behind_its_tries(way: Way, kind: str) -> None:
    prepare(way, kind, "(23505, TRANSABORT, MAXRETRIES 2, DELAYCSECS 1)")
    way.in_south("INSERT INTO b.items VALUES (2, 'in the way', 0)")
    way.start()
    way.in_north("INSERT INTO a.items VALUES (1, 'one', 1), (2, 'two', 2)")
    report = way.ends(REP1)
    assert report.count("GGS-00563") == 2
    assert "(try 2 of 2)" in report
    assert "b.items (id = 2) failed" in report
    assert ids(way) == [2]


def test_a_stop_does_not_wait_for_the_delay(way: Way) -> None:
    prepare(way, "classic", "(23505, TRANSABORT)")
    way.in_south("INSERT INTO b.items VALUES (2, 'in the way', 0)")
    way.start()
    way.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    until("it waits", lambda: told(way, "tried again in 60 seconds (try 1)") == 1)
    way.run("STOP REPLICAT rep1")
    until_state(way.home, *REP1, ProcessState.STOPPED)
    way.in_south("DELETE FROM b.items")
    way.start("rep1")
    way.arrives(1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_transaction_is_tried_again(way: Way, kind: str) -> None:
    prepare(way, kind, "(DEFAULT, TRANSABORT, DELAYCSECS 5)")
    way.in_south("INSERT INTO b.items VALUES (7, 'in the way', 0)")
    way.in_north(
        "INSERT INTO a.items VALUES (1, 'one', 1)", LARGE.format(2, 7), "INSERT INTO a.items VALUES (8, 'x', 8)"
    )
    way.start()
    until("it is tried again", lambda: told(way, "GGS-00563") >= 2)
    assert ids(way) == [1, 7]
    way.in_south("DELETE FROM b.items WHERE id = 7")
    way.arrives(8)
    way.same()


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_transaction_is_discarded_whole(way: Way, kind: str) -> None:
    prepare(way, kind, "(DEFAULT, TRANSDISCARD)")
    way.in_south("INSERT INTO b.items VALUES (7, 'in the way', 0)")
    way.in_north(
        "INSERT INTO a.items VALUES (1, 'one', 1)", LARGE.format(2, 7), "INSERT INTO a.items VALUES (8, 'x', 8)"
    )
    way.start()
    way.arrives(3)
    discards = "Total discards                                     6.00"
    until("the discards are counted", lambda: discards in way.run("STATS REPLICAT rep1, TOTAL"))
    assert ids(way) == [1, 7, 8]
    assert way.home.discard("rep1").read_text().count("Operation failed") == 6


@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize("kind", KINDS)
def test_transexception_tells_every_operation(way: Way, kind: str, size: str) -> None:
    way.in_north("CREATE TABLE a.plain (id int PRIMARY KEY)")
    way.in_south(
        "CREATE TABLE b.plain (id int PRIMARY KEY)",
        "CREATE TABLE b.refused (id int PRIMARY KEY, code text, operation text)",
        "INSERT INTO b.items VALUES (9, 'in the way', 0)",
    )
    thread = KINDS[kind][2]
    prepare(
        way,
        kind,
        "(23505, TRANSEXCEPTION)",
        f"MAP a.items, TARGET b.items{thread}, MAPEXCEPTION (TARGET b.refused, INSERTALLRECORDS, COLMAP (id = id,",
        "  code = @GETENV ('LASTERR', 'DBERRNUM'), operation = @GETENV ('LASTERR', 'OPTYPE')));",
        f"MAP a.plain, TARGET b.plain{thread};",
    )
    way.run("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.plain")
    many = LARGE.format(2, 8) if size == "large" else "INSERT INTO a.items VALUES (2, 'two', 2), (8, 'x', 8)"
    way.in_north(
        "INSERT INTO a.items VALUES (1, 'one', 1)",
        f"BEGIN; INSERT INTO a.plain VALUES (1); {many}; INSERT INTO a.items VALUES (9, 'nine', 9); COMMIT",
        "INSERT INTO a.items VALUES (10, 'ten', 10)",
    )
    way.start()
    way.arrives(3)
    expected = range(2, 10) if size == "large" else (2, 8, 9)
    refused = "SELECT id, code, operation FROM b.refused ORDER BY id"
    until("the refused rows are told", lambda: len(way.in_south(refused)) == len(expected))
    assert way.in_south(refused) == [(number, "23505", "INSERT") for number in expected]
    assert ids(way) == [1, 9, 10]
    assert way.in_south("SELECT count(*) FROM b.plain") == [(0,)]
    assert way.home.discard("rep1").read_text().count("Operation failed") == 1, "the table without an exceptions MAP"
