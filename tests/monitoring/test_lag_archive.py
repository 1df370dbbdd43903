"""The lag archive returns what was written, each row once, also after a crash; its percentiles are exact."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ggshell.monitoring import lag_archive
from ggshell.monitoring.lag_archive import ArchiveRow
from ggshell.monitoring.spreads import spreads
from ggshell.pipeline.heartbeat.row import Beat

SECOND = 1_000_000
DAY = 86_400 * SECOND
NOON = 1_700_000_000 * SECOND // DAY * DAY + DAY // 2


def row(received: int, lag: float = 1.0, remote: str = "north", path: str | None = None) -> ArchiveRow:
    sent = received - round(lag * SECOND)
    beat = Beat("south", sent, remote, "EXT1", path, "REP1", sent, sent + 1000, None, received - 2000)
    return ArchiveRow(beat, received)


def test_rows_are_read_by_time_and_remote_database(tmp_path: Path) -> None:
    rows = [row(NOON), row(NOON + DAY), row(NOON + DAY + 1, remote="east")]
    files = lag_archive.write(tmp_path, "REP1", rows)
    assert sorted(file.parent.name for file in files) == ["day=2023-11-14", "day=2023-11-15"]
    assert [each.received for each in lag_archive.read_arrivals(tmp_path, 0)] == [each.received for each in rows]
    assert len(lag_archive.read_arrivals(tmp_path, NOON + 1)) == 2
    (east,) = lag_archive.read_arrivals(tmp_path, 0, "EAST")
    assert east.parts.total == 1
    assert east.parts.routing is None
    assert east.path == "==> EXT1 ==> REP1 ==>"


def test_files_of_past_days_are_merged_and_no_row_counts_twice(tmp_path: Path) -> None:
    for number in range(5):
        lag_archive.write(tmp_path, "REP1", [row(NOON + number * SECOND)])
    lag_archive.write(tmp_path, "REP2", [row(NOON, path="DP")])
    kept = lag_archive.write(tmp_path, "REP1", [row(NOON + 9 * SECOND)])[0].read_bytes()
    (whole,) = lag_archive.gather(tmp_path, "REP1", "2023-11-15")
    assert len(list(tmp_path.rglob("*.parquet"))) == 2
    (whole.parent / "REP1-left.parquet").write_bytes(kept)
    assert len(lag_archive.read_arrivals(tmp_path, 0)) == 7
    assert lag_archive.gather(tmp_path, "REP1", "2023-11-14") == []


def test_a_heartbeat_that_was_applied_twice_counts_as_it_first_arrived(tmp_path: Path) -> None:
    """Regression: one of the two was taken at random, so two answers about the same archive could differ."""
    first = row(NOON, 1.0)
    for minutes in (7, 0, 3):
        later = first.beat._replace(incoming_replicat_ts=NOON + minutes * 60 * SECOND)
        lag_archive.write(tmp_path, "REP1", [ArchiveRow(later, NOON + minutes * 60 * SECOND)])
    (arrival,) = lag_archive.read_arrivals(tmp_path, 0)
    assert (arrival.received, arrival.parts.total) == (NOON, 1.0)
    (total,) = [each for each in lag_archive.spreads(tmp_path, "DAY", 0) if each.hop == "total"]
    assert (total.beats, total.longest) == (1, 1.0)
    assert lag_archive.read_arrivals(tmp_path, NOON + 60 * SECOND) == []


def test_the_newest_heartbeat_is_of_today_after_the_files_of_yesterday_were_merged(tmp_path: Path) -> None:
    for received in (NOON, NOON + SECOND):
        lag_archive.write(tmp_path, "REP1", [row(received)])
    lag_archive.write(tmp_path, "REP1", [row(NOON + DAY)])
    lag_archive.gather(tmp_path, "REP1", "2023-11-15")
    assert lag_archive.newest(tmp_path, NOON) == {"REP1": NOON + DAY}


def test_a_missing_archive_is_empty(tmp_path: Path) -> None:
    assert lag_archive.read_arrivals(tmp_path / "none", 0) == []
    assert lag_archive.spreads(tmp_path / "none", "DAY", 0) == []


@pytest.mark.slow
@settings(max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 3 * 86_400), st.floats(-5, 500)), min_size=1, max_size=40, unique=True))
def test_percentiles_of_the_archive_are_those_of_its_rows(
    tmp_path_factory: object, written: list[tuple[int, float]]
) -> None:
    folder: Path = tmp_path_factory.mktemp("lag")  # type: ignore[attr-defined]
    lag_archive.write(
        folder, "REP1", [row(NOON + seconds * SECOND + place, lag) for place, (seconds, lag) in enumerate(written)]
    )
    arrivals = lag_archive.read_arrivals(folder, 0)
    assert len(arrivals) == len(written)
    expected, actual = spreads(arrivals, "HOUR"), lag_archive.spreads(folder, "HOUR", 0)
    assert [each[:5] for each in actual] == [each[:5] for each in expected]
    for actual_row, expected_row in zip(actual, expected, strict=True):
        assert all(abs(a - b) < 1e-6 for a, b in zip(actual_row[5:], expected_row[5:], strict=True))
