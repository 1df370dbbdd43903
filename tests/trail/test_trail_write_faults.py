"""A disk that fails at the n-th call, for every n: the writer ends, and the next one resumes without loss or repetition."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from batches import read_rows
from trail_kit import open_writer, read_all, small

from ggshell.errors import DiskError, TrailError
from ggshell.trail.name import TrailName

CALLS = ("write", "pwrite", "fdatasync", "fsync")
TRANSACTIONS = range(1, 13)
MAX_BYTES = 900
"""Small enough to roll files every few transactions, sometimes within one."""
EXPECTED = [row for csn in TRANSACTIONS for row in read_rows(small(csn, rows=1 + csn % 4))]


class FailingDisk:
    """Fails at one call that writes or syncs: before it does anything, or, for a write, after half of the bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, place: int, *, half: bool) -> None:
        self._left = place
        self._half = half
        self.failed = False
        self.short = False
        for name in CALLS:
            monkeypatch.setattr(os, name, self._failing(name, getattr(os, name)))

    def _failing(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(descriptor: int, *arguments: Any) -> Any:
            self._left -= 1
            if self._left >= 0 or self.failed:
                if name == "write" and self.short:
                    return original(descriptor, bytes(arguments[0])[: max(1, len(arguments[0]) // 3)])
                return original(descriptor, *arguments)
            self.failed = True
            if self._half and name == "write":
                original(descriptor, bytes(arguments[0])[: len(arguments[0]) // 2])
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        return call


def write_the_rest(name: TrailName) -> None:
    """A writer resumes after the last transaction in the trail and writes the others, flushing after some of them."""
    writer = open_writer(name, MAX_BYTES)
    try:
        last_csn = writer.last_csn.value if writer.last_csn is not None else 0
        for csn in TRANSACTIONS[last_csn:]:
            writer.write(small(csn, rows=1 + csn % 4))
            if csn % 3:
                writer.flush()
        writer.flush()
    finally:
        writer.close()


@pytest.mark.slow
@pytest.mark.parametrize("half", [False, True], ids=["nothing written", "half written"])
def test_an_error_at_any_call_ends_the_writer_and_the_next_one_resumes(tmp_path: Path, half: bool) -> None:
    for place in range(200):
        name = TrailName(tmp_path / f"at{place}", "ea")
        name.folder.mkdir()
        with pytest.MonkeyPatch.context() as monkeypatch:
            disk = FailingDisk(monkeypatch, place, half=half)
            try:
                write_the_rest(name)
            except DiskError:
                assert disk.failed
            else:
                assert not disk.failed, f"call {place} failed without an error"
        before = read_all(name) if name.sequences() else []
        assert before == EXPECTED[: len(before)]
        write_the_rest(name)
        assert read_all(name) == EXPECTED, f"call {place}"
        if not disk.failed:
            assert place > 40, "all calls were tried"
            assert len(name.sequences()) > 2
            return
    raise AssertionError("the writer calls the disk too often")


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = TrailName(tmp_path, "ea")
    disk = FailingDisk(monkeypatch, 1 << 30, half=False)
    disk.short = True
    write_the_rest(name)
    monkeypatch.undo()
    assert read_all(name) == EXPECTED


def test_a_file_rolls_over_exactly_at_its_size(tmp_path: Path) -> None:
    """A file that reaches its size to the byte is full; one byte less is not."""
    # The header contains the path, which must have the same length.
    names = [TrailName(tmp_path / f"at{number}", "ea") for number in range(4)]
    for name in names:
        name.folder.mkdir()
    places = []
    with contextlib.closing(open_writer(names[0])) as first:
        for csn in (1, 2, 3):
            first.write(small(csn))
            places.append(first.flush().rba)
    for name, more, in_first in zip(names[1:], (0, -1, 1), (2, 2, 3), strict=True):
        with contextlib.closing(open_writer(name, places[1] + more)) as writer:
            for csn in (1, 2, 3):
                writer.write(small(csn))
                writer.flush()
        assert len(name.sequences()) == (1 if in_first == 3 else 2)
        assert name.file(0).stat().st_size == places[in_first - 1]
        assert read_all(name) == [row for csn in (1, 2, 3) for row in read_rows(small(csn))]


@pytest.mark.parametrize("how", ["deleted", "moved", "replaced", "emptied"])
def test_deleting_a_file_while_it_is_written_stops_its_writer(tmp_path: Path, how: str) -> None:
    """Otherwise rows would be written to a file without a name while their source is confirmed."""
    name = TrailName(tmp_path, "ea")
    with contextlib.closing(open_writer(name)) as writer:
        writer.write(small(1))
        held = writer.flush()
        path = name.file(0)
        content = path.read_bytes()
        if how == "moved":
            path.rename(tmp_path / "elsewhere")
        elif how == "emptied":
            os.truncate(path, 0)
        else:
            path.unlink()
        if how == "replaced":
            path.write_bytes(content)
        writer.write(small(2))
        for _ in range(2):
            with pytest.raises(TrailError, match=str(path)) as error:
                writer.flush()
            assert error.value.code == "OGG-01332"
        assert writer.position == held
        with pytest.raises(TrailError):
            writer.write(small(3))
