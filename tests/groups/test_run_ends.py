"""END: a run ends by itself, before, inside or at a commit; the next one goes on there, nothing is lost or comes twice."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pipelines import EXT1, REP1, Pipeline
from processes import until, until_state

from ggshell.clock import local_text
from ggshell.groups.state import ProcessState
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader

EXTRACT = "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\n{}TABLE a.*;\n"
REPLICAT = "REPLICAT rep1\nUSERIDALIAS south\n{}MAP a.*, TARGET b.*;\n"
EXACT = "%Y-%m-%d %H:%M:%S.%f"
KINDS = {"classic": "", "parallel": "PARALLEL, ", "coordinated": "COORDINATED MAXTHREADS 2, "}


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    yield pipeline
    pipeline.close()


def add(pipeline: Pipeline, kind: str = "") -> None:
    pipeline.run(
        "DBLOGIN USERIDALIAS north",
        "ADD TRANDATA a.items",
        "REGISTER EXTRACT ext1",
        "ADD EXTRACT ext1, TRANLOG, BEGIN NOW",
        "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 10",
        "DBLOGIN USERIDALIAS south",
        "ADD CHECKPOINTTABLE b.checks",
        f"ADD REPLICAT rep1, {kind}EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks",
    )


def times(pipeline: Pipeline, trail: str = "./dirdat/ea") -> list[int]:
    """When the transactions of a trail committed."""
    reader = TrailReader(TrailName.parse(trail, pipeline.home.root))
    found: list[int] = []
    try:
        while (batch := reader.read()) is not None:
            found += [piece.header.commit_time for piece in batch.pieces if piece.begins]
    finally:
        reader.close()
    return found


def insert(pipeline: Pipeline, *numbers: int) -> None:
    for number in numbers:
        pipeline.in_north(f"INSERT INTO a.items VALUES ({number}, 'row', 1), ({-number}, 'row', 1)")


def ends(pipeline: Pipeline, group: tuple[str, object], parameters: str) -> None:
    """Run a group with END until it stops by itself."""
    pipeline.write(group[0].lower(), (EXTRACT if group == EXT1 else REPLICAT).format(parameters))
    pipeline.start(group[0])
    until_state(pipeline.home, *group, ProcessState.STOPPED)  # type: ignore[arg-type]
    assert "GGS-00513" in pipeline.home.report(group[0]).read_text()


def highest(pipeline: Pipeline) -> int:
    return int(pipeline.in_south("SELECT coalesce(max(id), 0) FROM b.items")[0][0])


@pytest.mark.parametrize("kind", KINDS)
def test_a_replicat_ends_before_inside_and_at_a_commit(pipeline: Pipeline, kind: str) -> None:
    add(pipeline, KINDS[kind])
    pipeline.start("ext1")
    insert(pipeline, 1, 2, 3, 4)
    until("they are in the trail", lambda: len(times(pipeline)) == 4)
    found = times(pipeline)
    for moment, arrived in ((found[0], 0), (found[0] + 1, 1), (found[2], 2), (found[2] + 1, 3)):
        ends(pipeline, REP1, f"END {local_text(moment, EXACT)}\n")
        assert highest(pipeline) == arrived
    ends(pipeline, REP1, "END RUNTIME\n")
    pipeline.assert_same_rows()
    insert(pipeline, 5)
    pipeline.write("rep1", REPLICAT.format(""))
    pipeline.start("rep1")
    pipeline.wait_for_rows(10)
    pipeline.assert_same_rows()


def test_an_extract_ends_at_a_time_and_the_next_run_goes_on_there(pipeline: Pipeline) -> None:
    add(pipeline)
    insert(pipeline, 1)
    pipeline.in_north("BEGIN; INSERT INTO a.items VALUES (50, 'before', 1); SELECT pg_sleep(0.01); COMMIT")
    moment = int(pipeline.in_north("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")[0][0])
    insert(pipeline, 2, 3)
    for _ in range(2):
        ends(pipeline, EXT1, f"END {local_text(moment, EXACT)}\n")
        assert len(times(pipeline)) == 2
        assert max(times(pipeline)) < moment
    pipeline.write("ext1", EXTRACT.format(""))
    pipeline.start()
    pipeline.wait_for_rows(7)
    pipeline.assert_same_rows()
    assert len(times(pipeline)) == 4


def test_runs_until_their_own_begin_carry_everything_on_once(pipeline: Pipeline) -> None:
    """Extract and pump with END RUNTIME, again and again beside a source that never rests."""
    add(pipeline)
    pipeline.write("pmp1", "EXTRACT pmp1\nPASSTHRU\nEND RUNTIME\nEXTTRAIL ./dirdat/pa\nTABLE a.*;\n")
    pipeline.run(
        "ADD EXTRACT pmp1, EXTTRAILSOURCE ./dirdat/ea",
        "ADD EXTTRAIL ./dirdat/pa, EXTRACT pmp1, MEGABYTES 10",
    )
    rest, chance = threading.Event(), random.Random(7)

    def work() -> None:
        number = 0
        while not rest.is_set():
            number += 1
            insert(pipeline, number)
            rest.wait(chance.uniform(0, 0.02))

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for _ in range(3):
            ends(pipeline, EXT1, "END RUNTIME\n")
    finally:
        rest.set()
        worker.join()
    assert times(pipeline)
    ends(pipeline, EXT1, "END RUNTIME\n")
    pipeline.start("pmp1")
    until_state(pipeline.home, "PMP1", EXT1[1], ProcessState.STOPPED)
    assert times(pipeline, "./dirdat/pa") == times(pipeline)
    pipeline.start("rep1")
    pipeline.wait_for_rows(2 * len(times(pipeline)))
    pipeline.assert_same_rows()


def test_a_time_that_there_is_not_is_refused_at_its_line(pipeline: Pipeline) -> None:
    pipeline.write("rep1", REPLICAT.format("END 2026-13-45 10:00:00\n"))
    add(pipeline)
    pipeline.start("rep1")
    report = pipeline.abended_report(REP1)
    assert "2026-13-45 10:00:00 is not a valid time" in report
    assert "rep1.prm:3" in report
