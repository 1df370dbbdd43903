"""PURGEOLDEXTRACTS in the file of a Replicat: it purges its source trail, and no reader loses a file that it needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pipelines import Pipeline
from processes import until

from ggshell.trail.name import TrailName


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    """A pipeline whose Replicat purges its trail, and a second reader of the trail, which does not run."""
    pipeline = Pipeline(tmp_path / "home", north, south)
    pipeline.write("rep1", "REPLICAT rep1\nUSERIDALIAS south\nPURGEOLDEXTRACTS\nMAP a.*, TARGET b.*;\n")
    pipeline.add()
    pipeline.run("ADD EXTRACT pump1, EXTTRAILSOURCE ./dirdat/ea", "ADD RMTTRAIL ./dirdat/pa, EXTRACT pump1")
    pipeline.start()
    yield pipeline
    pipeline.close()


@pytest.mark.slow
def test_files_are_removed_when_the_last_reader_has_left_them(pipeline: Pipeline) -> None:
    trail = TrailName.parse("./dirdat/ea", pipeline.home.root)

    def next_file(number: int) -> None:
        pipeline.run("SEND EXTRACT ext1, ROLLOVER")
        pipeline.insert(number)
        pipeline.wait_for_rows(number)

    for number in (1, 2):
        next_file(number)
    assert trail.sequences()[0] == 0  # PUMP1 has not read it
    pipeline.run(f"ALTER EXTRACT pump1, EXTSEQNO {trail.sequences()[-1]}, EXTRBA 0")
    next_file(3)
    until("the old files are removed", lambda: trail.sequences()[0] == 2)
    assert "OGG-00957" in pipeline.home.event_log.read_text()
    assert "OGG-00957" in pipeline.home.report("REP1").read_text()
