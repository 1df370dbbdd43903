"""A sync behind the writer's back: nothing shows before it is durable, nothing is lost when it fails."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from trail_kit import open_writer, read_all, small

from ggshell.errors import DiskError
from ggshell.trail import writer
from ggshell.trail.name import TrailName


def test_rows_show_only_when_their_sync_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, go, begun = TrailName(tmp_path, "ea"), threading.Event(), threading.Event()

    def slowly(descriptor: int) -> None:
        begun.set()
        assert go.wait(20)
        os.fsync(descriptor)

    trail = open_writer(name)
    monkeypatch.setattr(writer.os, "fdatasync", slowly)
    trail.write(small(1))
    trail.flush_behind()
    assert begun.wait(20)
    trail.write(small(2))
    trail.flush_behind()
    assert read_all(name) == []
    assert trail.last_csn is None
    go.set()
    trail.flush()
    assert [row[0] for row in read_all(name)] == [1, 1, 2, 2]
    trail.close()


def test_a_writer_closed_meanwhile_leaves_a_trail_that_goes_on(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    trail = open_writer(name)
    for csn in (1, 2, 3):
        trail.write(small(csn))
        trail.flush_behind()
    trail.close()  # waits for the sync on its way; what was not synced is left for the source to send again
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


def test_a_sync_that_fails_behind_stops_the_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: int) -> None:
        raise OSError(5, "Input/output error")

    name = TrailName(tmp_path, "ea")
    trail = open_writer(name)
    trail.write(small(1))
    with monkeypatch.context() as patch:
        patch.setattr(writer.os, "fdatasync", fails)
        trail.flush_behind()
        with pytest.raises(DiskError, match="Input/output"):
            trail.flush()
    with pytest.raises(DiskError):
        trail.flush_behind()
    assert read_all(name) == []
    trail.close()
