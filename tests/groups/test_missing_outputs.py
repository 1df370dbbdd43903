"""An Extract or a pump without a trail to write abends and confirms nothing to its source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pipelines import EXT1, Pipeline
from processes import until

from ggshell.home.checkpoint import GroupKind

PUMP = ("PMP1", GroupKind.EXTRACT)


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    yield pipeline
    pipeline.close()


def test_an_extract_captures_nothing_until_its_trail_is_added(pipeline: Pipeline) -> None:
    pipeline.run(
        *("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.items", "REGISTER EXTRACT ext1"),
        "ADD EXTRACT ext1, TRANLOG, BEGIN NOW",
    )
    pipeline.start("ext1")
    pipeline.in_north("INSERT INTO a.items SELECT n, 'x', 1 FROM generate_series(1, 100) n")
    assert "OGG-01044  The trail './dirdat/ea' is not assigned to extract 'EXT1'." in pipeline.abended_report(EXT1)
    pipeline.run("ADD EXTTRAIL ./dirdat/zz, EXTRACT ext1", "START EXTRACT ext1")
    assert "OGG-01044" in pipeline.abended_report(EXT1)
    pipeline.run(
        *("DELETE EXTTRAIL ./dirdat/zz", "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1", "START EXTRACT ext1"),
        *("DBLOGIN USERIDALIAS south", "ADD CHECKPOINTTABLE b.checks"),
        *("ADD REPLICAT rep1, EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks", "START REPLICAT rep1"),
    )
    pipeline.wait_for_rows(100)
    pipeline.assert_same_rows()


def test_a_pump_without_a_trail_reads_nothing(pipeline: Pipeline) -> None:
    pipeline.write("pmp1", "EXTRACT pmp1\nPASSTHRU\nTABLE a.*;\n")
    pipeline.add()
    pipeline.run("ADD EXTRACT pmp1, EXTTRAILSOURCE ./dirdat/ea", "START EXTRACT pmp1")
    until("the pump abends", lambda: "PMP1 has no trail to write" in pipeline.abended_report(PUMP))


def test_extract_abends_without_confirming_if_its_trail_file_is_deleted(
    pipeline: Pipeline,
) -> None:
    pipeline.add()
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    pipeline.wait_for_rows(1)
    pipeline.run("STOP REPLICAT rep1")
    pipeline.home.resolve("./dirdat/ea000000000").unlink()
    pipeline.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    assert "was deleted or replaced while it was being written" in pipeline.abended_report(EXT1)
    confirmed = (
        "SELECT confirmed_flush_lsn < pg_current_wal_lsn() FROM pg_replication_slots WHERE slot_name = 'ggs_ext1'"
    )
    assert pipeline.in_north(confirmed) == [(True,)]
