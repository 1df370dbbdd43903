"""The durable mark is deleted or replaced while a writer and a reader have it open."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from batches import read_rows
from trail_kit import mark_file, open_writer, small

from ggshell.errors import DiskError
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader


def _rename_older(mark: Path, older: Path) -> None:
    shutil.copyfile(older, mark.with_name("copy"))
    mark.with_name("copy").replace(mark)


def _rename_older_and_keep(mark: Path, older: Path) -> None:
    """As a backup that uses hard links does: the file that writer and reader have open still has a name."""
    os.link(mark, mark.with_name("kept"))
    _rename_older(mark, older)


def _delete(mark: Path, _older: Path) -> None:
    mark.unlink()


def _write_over(mark: Path, older: Path) -> None:
    shutil.copyfile(older, mark)


@pytest.mark.parametrize("damage", [_rename_older, _rename_older_and_keep, _delete, _write_over])
def test_a_mark_that_is_replaced_while_open_is_written_again(
    tmp_path: Path, damage: Callable[[Path, Path], None]
) -> None:
    """Finding: the reader waited at the older mark, RUNNING with lag 0, while the writer updated a mark that nobody read."""
    name, older = TrailName(tmp_path, "ea"), tmp_path / "older"
    with contextlib.closing(open_writer(name)) as writer, contextlib.closing(TrailReader(name)) as reader:
        shutil.copyfile(mark_file(name), older)
        writer.write(small(1))
        writer.flush()
        rows = _read(reader)
        damage(mark_file(name), older)
        rows += _read(reader)
        for csn in (2, 3):
            writer.write(small(csn))
            writer.flush()
            rows += _read(reader)
        assert reader.end() == writer.position
        with contextlib.closing(TrailReader(name)) as later:
            assert _read(later) == rows
    assert rows == [row for csn in (1, 2, 3) for row in read_rows(small(csn))]


def test_a_folder_in_place_of_the_mark_stops_the_writer_with_a_hint(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    with contextlib.closing(open_writer(name)) as writer:
        mark_file(name).unlink()
        mark_file(name).mkdir()
        writer.write(small(1))
        with pytest.raises(DiskError) as raised:
            writer.flush()
        assert "or remove it" in raised.value.hint
        with pytest.raises(DiskError):
            writer.flush()
    mark_file(name).rmdir()
    with contextlib.closing(open_writer(name)) as writer, contextlib.closing(TrailReader(name)) as reader:
        assert _read(reader) == read_rows(small(1))


def _read(reader: TrailReader) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    while (batch := reader.read()) is not None:
        rows += read_rows(batch)
    return rows
