"""Syncs in the background: rows become visible only when they are durable, and nothing is lost if a sync fails."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from trail_kit import open_writer, read_all, small

from ggshell.errors import DiskError
from ggshell.trail.blocks import PIECE, write_all
from ggshell.trail.name import TrailName


def test_rows_become_visible_only_when_their_sync_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, may_sync, sync_began = TrailName(tmp_path, "ea"), threading.Event(), threading.Event()

    def slow_sync(descriptor: int) -> None:
        sync_began.set()
        assert may_sync.wait(20)
        os.fsync(descriptor)

    trail = open_writer(name)
    monkeypatch.setattr(os, "fdatasync", slow_sync)
    trail.write(small(1))
    trail.flush_behind()
    assert sync_began.wait(20)
    trail.write(small(2))
    trail.flush_behind()
    assert read_all(name) == []
    assert trail.last_csn is None
    may_sync.set()
    trail.flush()
    assert [row[0] for row in read_all(name)] == [1, 1, 2, 2]
    trail.close()


def test_a_writer_closed_during_a_sync_leaves_a_trail_that_can_be_continued(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    trail = open_writer(name)
    for csn in (1, 2, 3):
        trail.write(small(csn))
        trail.flush_behind()
    trail.close()  # Waits for the running sync; the source sends everything else again.
    shown = [row[0] for row in read_all(name)]
    again = open_writer(name)
    assert again.last_csn is not None
    whole = again.last_csn.value
    assert max(shown, default=0) <= whole <= 3
    for csn in range(whole + 1, 5):
        again.write(small(csn))
    again.flush()
    assert [row[0] for row in read_all(name)] == [1, 1, 2, 2, 3, 3, 4, 4]
    again.close()


def test_a_failed_background_sync_stops_the_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing_sync(_: int) -> None:
        raise OSError(5, "Input/output error")

    name = TrailName(tmp_path, "ea")
    trail = open_writer(name)
    trail.write(small(1))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", failing_sync)
        trail.flush_behind()
        with pytest.raises(DiskError, match="Input/output"):
            trail.flush()
    with pytest.raises(DiskError):
        trail.flush_behind()
    assert read_all(name) == []
    trail.close()


def test_a_block_is_written_completely_in_calls_that_the_system_caches_in_small_units(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, write = [], os.write

    def counted(descriptor: int, data: memoryview) -> int:
        sizes.append(len(data))
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", counted)
    block = os.urandom(3 * PIECE + 17)
    with (tmp_path / "file").open("wb", buffering=0) as file:
        write_all(file.fileno(), block)
    assert (tmp_path / "file").read_bytes() == block
    assert sizes == [PIECE, PIECE, PIECE, 17]
