"""GETTRUNCATES decides whether TRUNCATE is passed on."""

from __future__ import annotations

import pytest
from batches import Row, Tx, make_batch, read_rows

from ggshell.pipeline.transform.selection import Selection
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.types import TableName

T = TableDefinition(TableName("s", "t"), (Column("a", "integer"),), (0,))


@pytest.mark.parametrize(("wanted", "left"), [(True, [5, 100, 100]), (False, [5])])
def test_truncate_is_passed_on_only_if_requested(wanted: bool, left: list[int]) -> None:
    truncate = Row(T, IoType.PURGE_DATA, b"")
    batch = make_batch([Tx(1, [Row(T, IoType.INSERT, b"x"), truncate]), Tx(2, [truncate])])
    parts = list(Selection(lambda _: True, truncates=wanted).select(batch))
    assert [row[2] for part in parts for row in read_rows(part)] == left
    assert all(part.pieces[-1].ends for part in parts)
