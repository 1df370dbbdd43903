"""Readers that start just when a trail file is created wait for its header."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pipelines import Pipeline
from processes import until

from ggshell.trail.name import TrailName

PUMP = "EXTRACT pump1\nRMTTRAIL ./dirdat/pa\nTABLE a.*;\n"


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    yield pipeline
    pipeline.close()


def test_a_pump_and_a_replicat_wait_for_the_header_of_a_new_file(pipeline: Pipeline) -> None:
    """Regression: they abended with OGG-01028 at RBA 0 of a file that Extract had just created."""
    pipeline.add()
    pipeline.start("ext1", "rep1")
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'before', 1)")
    pipeline.wait_for_rows(1)
    pipeline.run("STOP ext1", "STOP rep1")
    name = TrailName.parse("./dirdat/ea", pipeline.home.root)
    following = name.sequences()[-1] + 1
    name.file(following).write_bytes(name.file(0).read_bytes()[:100])
    pipeline.write("pump1", PUMP)
    pipeline.run(
        f"ADD EXTRACT pump1, EXTTRAILSOURCE ./dirdat/ea, EXTSEQNO {following}, EXTRBA 0",
        "ADD RMTTRAIL ./dirdat/pa, EXTRACT pump1",
        "DBLOGIN USERIDALIAS south",
        f"ALTER REPLICAT rep1, EXTSEQNO {following}, EXTRBA 0",
    )
    pipeline.start("pump1", "rep1")
    assert "00:00:00" in pipeline.run("LAG EXTRACT pump1", "LAG REPLICAT rep1", "INFO ALL")
    pipeline.start("ext1")
    pipeline.run("SEND EXTRACT ext1, ROLLOVER")
    pipeline.in_north("INSERT INTO a.items VALUES (2, 'after', 2)")
    pipeline.wait_for_rows(2)
    pipeline.assert_same_rows()
    until("the pump forwards the row", lambda: b"after" in content(pipeline, "pa"))


def content(pipeline: Pipeline, name: str) -> bytes:
    return b"".join(path.read_bytes() for path in pipeline.home.root.glob(f"dirdat/{name}0*"))
