"""Lag arithmetic: correct while idle, while busy, and while a stage is stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.errors import TrailError
from ggshell.home.checkpoint import Checkpoint, GroupKind, ReadCheckpoint, SourceType
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState
from ggshell.monitoring.group_lag import first_unprocessed, lag, since
from ggshell.types import TrailPosition

SECOND = 1_000_000
NOW = 5000 * SECOND
RUNNING, STOPPED, ABENDED = ProcessState.RUNNING, ProcessState.STOPPED, ProcessState.ABENDED


def checkpoint(source: SourceType = SourceType.LOG, **seconds: int) -> Checkpoint:
    facts = {name: value * SECOND for name, value in seconds.items()}
    return Checkpoint("G", GroupKind.EXTRACT, ReadCheckpoint(source), created=0, **facts)


@pytest.mark.parametrize(
    ("found", "state", "unprocessed", "expected"),
    [
        pytest.param(checkpoint(record_time=1000, caught_up=4990, updated=4990), RUNNING, None, 0, id="idle source"),
        pytest.param(checkpoint(record_time=4900, caught_up=4800, updated=4990), RUNNING, None, 90, id="busy"),
        pytest.param(checkpoint(record_time=1000, caught_up=4985, updated=4990), RUNNING, None, 5, id="a burst begins"),
        pytest.param(checkpoint(updated=4990), RUNNING, None, 0, id="nothing seen yet"),
        pytest.param(checkpoint(begin_time=4000, updated=4990), RUNNING, None, 990, id="nothing since the start point"),
        pytest.param(checkpoint(record_time=1000, caught_up=4000, updated=4000), STOPPED, None, 1000, id="log grows"),
        pytest.param(checkpoint(record_time=4500, caught_up=4000, updated=4500), ABENDED, None, 500, id="log abended"),
        pytest.param(checkpoint(begin_time=4400), STOPPED, None, 600, id="log, never started"),
        pytest.param(
            checkpoint(SourceType.TRAIL, record_time=1, caught_up=2, updated=3),
            STOPPED,
            None,
            0,
            id="trail, nothing waits",
        ),
        pytest.param(
            checkpoint(SourceType.TRAIL, record_time=1, updated=3),
            STOPPED,
            4700 * SECOND,
            300,
            id="trail, records wait",
        ),
        pytest.param(
            checkpoint(SourceType.TRAIL, record_time=4900, caught_up=4900, updated=4900),
            RUNNING,
            4910 * SECOND,
            90,
            id="trail, stuck",
        ),
        pytest.param(checkpoint(SourceType.TRAIL), RUNNING, 4700 * SECOND, 300, id="trail, nothing done yet"),
        pytest.param(checkpoint(record_time=4900, caught_up=4900, updated=4900), RUNNING, None, 100, id="log, stuck"),
        pytest.param(checkpoint(), RUNNING, None, 0, id="log, nothing done yet"),
        pytest.param(checkpoint(SourceType.TABLE, updated=3), STOPPED, None, None, id="a task has none"),
        pytest.param(checkpoint(record_time=9000, updated=4990), RUNNING, None, 0, id="the source's clock is ahead"),
    ],
)
def test_lag(found: Checkpoint, state: ProcessState, unprocessed: int | None, expected: int | None) -> None:
    value = lag(found, state, NOW, unprocessed)
    assert value == (None if expected is None else expected * SECOND)


def test_the_age_of_a_checkpoint_counts_from_its_creation_until_its_first_update() -> None:
    assert since(checkpoint()._replace(created=NOW - 7 * SECOND), NOW) == 7 * SECOND
    assert since(checkpoint(updated=4990), NOW) == 10 * SECOND


def test_the_end_of_a_trail_is_recognized_by_file_sizes(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.ensure()
    assert first_unprocessed(home, "./dirdat/ea", TrailPosition(0, 0)) is None
    (tmp_path / "dirdat" / "ea000000000").write_bytes(b"x" * 70)
    (tmp_path / "dirdat" / "ea000000001").write_bytes(b"x" * 50)
    assert first_unprocessed(home, "./dirdat/ea", TrailPosition(1, 50)) is None


@pytest.mark.parametrize(
    ("sizes", "position"),
    [
        pytest.param({}, TrailPosition(0, 100), id="all files are gone"),
        pytest.param({4: 70}, TrailPosition(3, 50), id="the file was purged"),
        pytest.param({2: 70}, TrailPosition(3, 50), id="the newest file is gone, and nothing seems to wait"),
        pytest.param({3: 40}, TrailPosition(3, 50), id="the file is shorter than what was read"),
    ],
)
def test_a_trail_that_lacks_the_read_position_has_no_lag(
    tmp_path: Path, sizes: dict[int, int], position: TrailPosition
) -> None:
    home = Home(tmp_path)
    home.ensure()
    for seqno, size in sizes.items():
        (tmp_path / "dirdat" / f"ea{seqno:09d}").write_bytes(b"x" * size)
    with pytest.raises(TrailError):
        first_unprocessed(home, "./dirdat/ea", position)
