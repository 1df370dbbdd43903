"""END: a run ends by itself, before, inside or at a commit; the next one goes on there, nothing is lost or comes twice."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import until, until_state
from ways import EXT1, REP1, Way

from ggshell.clock import local_text
from ggshell.groups.state import ProcessState
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader

EXTRACT = "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\n{}TABLE a.*;\n"
REPLICAT = "REPLICAT rep1\nUSERIDALIAS south\n{}MAP a.*, TARGET b.*;\n"
EXACT = "%Y-%m-%d %H:%M:%S.%f"
KINDS = {"classic": "", "parallel": "PARALLEL, ", "coordinated": "COORDINATED MAXTHREADS 2, "}


@pytest.fixture
def way(tmp_path: Path, north: str, south: str) -> Iterator[Way]:
    way = Way(tmp_path / "home", north, south)
    yield way
    way.close()


def add(way: Way, kind: str = "") -> None:
    way.run(
        "DBLOGIN USERIDALIAS north",
        "ADD TRANDATA a.items",
        "REGISTER EXTRACT ext1",
        "ADD EXTRACT ext1, TRANLOG, BEGIN NOW",
        "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 10",
        "DBLOGIN USERIDALIAS south",
        "ADD CHECKPOINTTABLE b.checks",
        f"ADD REPLICAT rep1, {kind}EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks",
    )


def times(way: Way, trail: str = "./dirdat/ea") -> list[int]:
    """When the transactions of a trail committed."""
    reader = TrailReader(TrailName.parse(trail, way.home.root))
    found: list[int] = []
    try:
        while (batch := reader.read()) is not None:
            found += [piece.header.commit_time for piece in batch.pieces if piece.begins]
    finally:
        reader.close()
    return found


def insert(way: Way, *numbers: int) -> None:
    for number in numbers:
        way.in_north(f"INSERT INTO a.items VALUES ({number}, 'row', 1), ({-number}, 'row', 1)")


def ends(way: Way, group: tuple[str, object], parameters: str) -> None:
    """Run a group with END until it stops by itself."""
    way.write(group[0].lower(), (EXTRACT if group == EXT1 else REPLICAT).format(parameters))
    way.start(group[0])
    until_state(way.home, *group, ProcessState.STOPPED)  # type: ignore[arg-type]
    assert "GGS-00513" in way.home.report(group[0]).read_text()


def highest(way: Way) -> int:
    return int(way.in_south("SELECT coalesce(max(id), 0) FROM b.items")[0][0])


@pytest.mark.parametrize("kind", KINDS)
def test_a_replicat_ends_before_inside_and_at_a_commit(way: Way, kind: str) -> None:
    add(way, KINDS[kind])
    way.start("ext1")
    insert(way, 1, 2, 3, 4)
    until("they are in the trail", lambda: len(times(way)) == 4)
    found = times(way)
    for moment, arrived in ((found[0], 0), (found[0] + 1, 1), (found[2], 2), (found[2] + 1, 3)):
        ends(way, REP1, f"END {local_text(moment, EXACT)}\n")
        assert highest(way) == arrived
    ends(way, REP1, "END RUNTIME\n")
    way.same()
    insert(way, 5)
    way.write("rep1", REPLICAT.format(""))
    way.start("rep1")
    way.arrives(10)
    way.same()


def test_an_extract_ends_at_a_time_and_the_next_run_goes_on_there(way: Way) -> None:
    add(way)
    insert(way, 1)
    way.in_north("BEGIN; INSERT INTO a.items VALUES (50, 'before', 1); SELECT pg_sleep(0.01); COMMIT")
    moment = int(way.in_north("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")[0][0])
    insert(way, 2, 3)
    for _ in range(2):
        ends(way, EXT1, f"END {local_text(moment, EXACT)}\n")
        assert len(times(way)) == 2
        assert max(times(way)) < moment
    way.write("ext1", EXTRACT.format(""))
    way.start()
    way.arrives(7)
    way.same()
    assert len(times(way)) == 4


def test_runs_until_their_own_begin_carry_everything_on_once(way: Way) -> None:
    """Extract and pump with END RUNTIME, again and again beside a source that never rests."""
    add(way)
    way.write("pmp1", "EXTRACT pmp1\nPASSTHRU\nEND RUNTIME\nEXTTRAIL ./dirdat/pa\nTABLE a.*;\n")
    way.run(
        "ADD EXTRACT pmp1, EXTTRAILSOURCE ./dirdat/ea",
        "ADD EXTTRAIL ./dirdat/pa, EXTRACT pmp1, MEGABYTES 10",
    )
    rest, chance = threading.Event(), random.Random(7)

    def work() -> None:
        number = 0
        while not rest.is_set():
            number += 1
            insert(way, number)
            rest.wait(chance.uniform(0, 0.02))

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for _ in range(3):
            ends(way, EXT1, "END RUNTIME\n")
    finally:
        rest.set()
        worker.join()
    assert times(way)
    ends(way, EXT1, "END RUNTIME\n")
    way.start("pmp1")
    until_state(way.home, "PMP1", EXT1[1], ProcessState.STOPPED)
    assert times(way, "./dirdat/pa") == times(way)
    way.start("rep1")
    way.arrives(2 * len(times(way)))
    way.same()


def test_a_time_that_there_is_not_is_refused_at_its_line(way: Way) -> None:
    way.write("rep1", REPLICAT.format("END 2026-13-45 10:00:00\n"))
    add(way)
    way.start("rep1")
    report = way.ends(REP1)
    assert "2026-13-45 10:00:00 is not a valid time" in report
    assert "rep1.prm:3" in report
