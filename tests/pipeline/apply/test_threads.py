"""The threads of a coordinated Replicat that rows are assigned to."""

from __future__ import annotations

import pytest
from batches import Row, Tx, make_batch

from ggshell.pipeline.apply.threads import ALL, Router, ThreadRule
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image import encode_image, join_key_update
from ggshell.record.operation import IoType
from ggshell.types import TableName

ORDERS = TableDefinition(
    TableName("a", "orders"), (Column("id", "int4"), Column("region", "text"), Column("n", "int4")), (0,)
)
BY_KEY, BY_REGION = ThreadRule(1, 4), ThreadRule(1, 4, ("region",))


def threads(row: Row, rule: ThreadRule) -> set[int]:
    batch = make_batch([Tx(1, [row])])
    return Router(lambda _: rule).route(batch, batch.pieces)[0]


def image(**values: str) -> bytes:
    names = [column.name for column in ORDERS.columns]
    return encode_image((names.index(name), value.encode()) for name, value in values.items())


def test_the_operations_on_a_row_have_one_thread() -> None:
    rows = [
        Row(ORDERS, IoType.INSERT, image(id="7", region="north", n="1")),
        Row(ORDERS, IoType.FIELD_COMP, image(id="7", n="2")),
        Row(ORDERS, IoType.DELETE, image(id="7")),
    ]
    first, *others = (threads(row, BY_KEY) for row in rows)
    assert len(first) == 1
    assert all(each == first for each in others)


@pytest.mark.parametrize("after", [image(id="7", region="south", n="2"), image(id="7", n="2")])
def test_an_update_that_may_move_a_row_to_another_thread_waits_for_all_threads(after: bytes) -> None:
    """A record without the old values does not show whether the columns of THREADRANGE have changed."""
    assert threads(Row(ORDERS, IoType.FIELD_COMP, after), BY_REGION) == {ALL}


def test_old_values_show_whether_an_update_moves_a_row_to_another_thread() -> None:
    old = image(id="7", region="north")
    stays = Row(ORDERS, IoType.UNIFIED_UPDATE, join_key_update(old, image(id="7", region="north", n="2")))
    moves = Row(ORDERS, IoType.UNIFIED_UPDATE, join_key_update(old, image(id="7", region="south", n="2")))
    inserted = threads(Row(ORDERS, IoType.INSERT, image(id="7", region="north", n="1")), BY_REGION)
    assert threads(stays, BY_REGION) == inserted
    assert threads(moves, BY_REGION) == {ALL}
