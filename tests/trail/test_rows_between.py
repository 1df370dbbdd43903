"""Records without rows between two positions of a trail."""

from __future__ import annotations

from pathlib import Path

from batches import Row, Tx, make_batch

from ggshell.clock import FakeClock
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image import encode_image
from ggshell.record.operation import IoType
from ggshell.trail.fileheader import Producer
from ggshell.trail.name import TrailName
from ggshell.trail.rows_between import has_rows
from ggshell.trail.writer import TrailWriter
from ggshell.types import TableName, TrailPosition

ITEMS = TableDefinition(TableName("s", "items"), (Column("id", "integer", 23),), (0,))


def written(trail: TrailName, *numbers: int) -> TrailPosition:
    """A writer starts, writes transactions with a row each, and ends. Returns the end of the trail."""
    writer = TrailWriter.open(trail, clock=FakeClock(), producer=Producer("EXT1", "Extract"), max_bytes=1 << 20)
    for number in numbers:
        writer.write(make_batch([Tx(number, [Row(ITEMS, IoType.INSERT, encode_image([(0, b"1")]))])]))
    end = writer.flush()
    writer.close()
    return end


def test_a_restart_of_the_writer_adds_no_row(tmp_path: Path) -> None:
    (tmp_path / "dirdat").mkdir()
    trail = TrailName.parse("./dirdat/ea", tmp_path)
    begin = written(trail)
    first = written(trail, 1)
    assert has_rows(trail, begin, first)
    restarted = written(trail)
    assert restarted > first
    assert not has_rows(trail, first, restarted)
    assert not has_rows(trail, restarted, restarted)
    assert has_rows(trail, first, written(trail, 2))
    assert has_rows(trail, TrailPosition(0, 0), restarted)
