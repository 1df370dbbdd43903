"""END: a run stops by itself before, in or at a transaction; the next run resumes there without loss or repetition."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pipelines import EXT1, REP1, Pipeline
from processes import until, until_state

from ggshell.clock import local_text
from ggshell.home.process_file import ProcessState
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


def commit_times(pipeline: Pipeline, trail: str = "./dirdat/ea") -> list[int]:
    """The commit times of the transactions in a trail."""
    reader = TrailReader(TrailName.parse(trail, pipeline.home.root))
    committed: list[int] = []
    try:
        while (batch := reader.read()) is not None:
            committed += [piece.header.commit_time for piece in batch.pieces if piece.begins]
    finally:
        reader.close()
    return committed


def insert(pipeline: Pipeline, *numbers: int) -> None:
    for number in numbers:
        pipeline.in_north(f"INSERT INTO a.items VALUES ({number}, 'row', 1), ({-number}, 'row', 1)")


def run_to_end(pipeline: Pipeline, group: tuple[str, object], parameters: str) -> None:
    """Run a group with an END parameter until it stops by itself."""
    pipeline.write(group[0].lower(), (EXTRACT if group == EXT1 else REPLICAT).format(parameters))
    pipeline.start(group[0])
    until_state(pipeline.home, *group, ProcessState.STOPPED)  # type: ignore[arg-type]
    assert "GGS-00513" in pipeline.home.report(group[0]).read_text()


def highest_id(pipeline: Pipeline) -> int:
    return int(pipeline.in_south("SELECT coalesce(max(id), 0) FROM b.items")[0][0])


@pytest.mark.parametrize("kind", KINDS)
def test_replicat_stops_before_in_and_at_a_transaction(pipeline: Pipeline, kind: str) -> None:
    add(pipeline, KINDS[kind])
    pipeline.start("ext1")
    insert(pipeline, 1, 2, 3, 4)
    until("the transactions are in the trail", lambda: len(commit_times(pipeline)) == 4)
    committed = commit_times(pipeline)
    for moment, arrived in ((committed[0], 0), (committed[0] + 1, 1), (committed[2], 2), (committed[2] + 1, 3)):
        run_to_end(pipeline, REP1, f"END {local_text(moment, EXACT)}\n")
        assert highest_id(pipeline) == arrived
    run_to_end(pipeline, REP1, "END RUNTIME\n")
    pipeline.assert_same_rows()
    insert(pipeline, 5)
    pipeline.write("rep1", REPLICAT.format(""))
    pipeline.start("rep1")
    pipeline.wait_for_rows(10)
    pipeline.assert_same_rows()


def test_extract_stops_at_a_time_and_the_next_run_resumes_there(pipeline: Pipeline) -> None:
    add(pipeline)
    insert(pipeline, 1)
    pipeline.in_north("BEGIN; INSERT INTO a.items VALUES (50, 'before', 1); SELECT pg_sleep(0.01); COMMIT")
    moment = int(pipeline.in_north("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")[0][0])
    insert(pipeline, 2, 3)
    for _ in range(2):
        run_to_end(pipeline, EXT1, f"END {local_text(moment, EXACT)}\n")
        assert len(commit_times(pipeline)) == 2
        assert max(commit_times(pipeline)) < moment
    pipeline.write("ext1", EXTRACT.format(""))
    pipeline.start()
    pipeline.wait_for_rows(7)
    pipeline.assert_same_rows()
    assert len(commit_times(pipeline)) == 4


def test_runs_with_end_runtime_forward_every_transaction_once(pipeline: Pipeline) -> None:
    """Extract and pump with END RUNTIME, repeatedly while the source changes all the time."""
    add(pipeline)
    pipeline.write("pmp1", "EXTRACT pmp1\nPASSTHRU\nEND RUNTIME\nEXTTRAIL ./dirdat/pa\nTABLE a.*;\n")
    pipeline.run(
        "ADD EXTRACT pmp1, EXTTRAILSOURCE ./dirdat/ea",
        "ADD EXTTRAIL ./dirdat/pa, EXTRACT pmp1, MEGABYTES 10",
    )
    stopped, chance = threading.Event(), random.Random(7)

    def insert_rows() -> None:
        number = 0
        while not stopped.is_set():
            number += 1
            insert(pipeline, number)
            stopped.wait(chance.uniform(0, 0.02))

    worker = threading.Thread(target=insert_rows)
    worker.start()
    try:
        for _ in range(3):
            run_to_end(pipeline, EXT1, "END RUNTIME\n")
    finally:
        stopped.set()
        worker.join()
    assert commit_times(pipeline)
    run_to_end(pipeline, EXT1, "END RUNTIME\n")
    pipeline.start("pmp1")
    until_state(pipeline.home, "PMP1", EXT1[1], ProcessState.STOPPED)
    assert commit_times(pipeline, "./dirdat/pa") == commit_times(pipeline)
    pipeline.start("rep1")
    pipeline.wait_for_rows(2 * len(commit_times(pipeline)))
    pipeline.assert_same_rows()


def test_an_invalid_time_is_refused_with_its_line(pipeline: Pipeline) -> None:
    pipeline.write("rep1", REPLICAT.format("END 2026-13-45 10:00:00\n"))
    add(pipeline)
    pipeline.start("rep1")
    report = pipeline.abended_report(REP1)
    assert "2026-13-45 10:00:00 is not a valid time" in report
    assert "rep1.prm:3" in report


def test_checkparams_ends_a_run_before_it_processes_data(pipeline: Pipeline) -> None:
    add(pipeline)
    pipeline.start("ext1")
    insert(pipeline, 1)
    until("the transaction is in the trail", lambda: len(commit_times(pipeline)) == 1)
    pipeline.write("rep1", REPLICAT.format("CHECKPARAMS\n"))
    pipeline.start("rep1")
    until_state(pipeline.home, *REP1, ProcessState.STOPPED)
    report = pipeline.home.report("rep1").read_text()
    assert "CHECKPARAMS: the parameters of rep1.prm are valid." in report
    assert highest_id(pipeline) == 0
    pipeline.write("rep1", REPLICAT.format("CHECKPARAMS\nGROUPTRANSOPS x\n"))
    pipeline.start("rep1")
    assert "GROUPTRANSOPS" in pipeline.abended_report(REP1)
    pipeline.write("rep1", REPLICAT.format(""))
    pipeline.start("rep1")
    pipeline.wait_for_rows(2)
