"""Delivery of special transactions: large ones, foreign keys, cascades and truncates, omitted columns."""

from __future__ import annotations

from collections import Counter

import pytest
from batches import Row, Tx
from pipeline.apply.hand_made import (
    FIRST_RBA,
    Replicats,
    delete,
    image,
    insert,
    trail,
    truncate,
    update,
    update_a,
)

from ggshell.connectors.postgres import session
from ggshell.errors import ApplyError
from ggshell.pipeline.apply import delivery as delivery_module
from ggshell.pipeline.apply import groups
from ggshell.pipeline.apply.counters import OperationCounters
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.types import Csn, TableName, TrailPosition


def query(dsn: str, text: str) -> list[tuple[object, ...]]:
    with session.connect(dsn) as connection:
        return [(*row,) for row in connection.execute(text).fetchall()]


def identities(replicats: Replicats) -> list[object]:
    return [row[0] for row in query(replicats.dsn, "SELECT id FROM t ORDER BY id")]


def content(replicats: Replicats) -> dict[object, object]:
    return {row[0]: row[1] for row in query(replicats.dsn, "SELECT id, a FROM t")}


def test_a_large_transaction_is_applied_while_it_is_read(replicats: Replicats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "LARGE_BYTES", 2000)
    monkeypatch.setattr(delivery_module, "MARK_BYTES", 3000)
    rows = [insert(n) for n in range(900)] + [update(n, "y") for n in range(0, 900, 3)]
    replicat = replicats.start()
    batches = trail([Tx(1, [insert(1000)]), Tx(2, rows), Tx(3, [insert(1001)])], rows_a_batch=50)
    for batch in batches[:-3]:
        replicat.feed(batch)
        replicat.flush()
    assert replicat.large
    assert identities(replicats) == [1000]
    for batch in batches[-3:]:
        replicat.feed(batch)
    replicat.flush()
    assert len(identities(replicats)) == 902
    assert replicat.applied is not None
    assert replicat.applied.csn == Csn(3)


@pytest.mark.parametrize("place", [30, 400, 885])
def test_the_refused_row_of_a_large_transaction_is_named(
    replicats: Replicats, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    monkeypatch.setattr(groups, "LARGE_BYTES", 2000)
    monkeypatch.setattr(delivery_module, "MARK_BYTES", 3000)
    rows = [insert(n) for n in range(900)]
    rows[place] = insert(1000, "twice")
    replicat = replicats.start()
    with pytest.raises(ApplyError, match=r"id = 1000") as raised:
        for batch in trail([Tx(1, [insert(1000)]), Tx(2, rows)], rows_a_batch=50):
            replicat.feed(batch)
        replicat.flush()
    assert raised.value.where.endswith(str(FIRST_RBA + 1 + place))
    assert identities(replicats) == [1000]


def test_unmapped_tables_are_skipped_and_the_position_advances(replicats: Replicats) -> None:
    other = TableDefinition(TableName("elsewhere", "o"), (Column("id", "integer"),), (0,))
    replicat = replicats.start()
    replicat.feed(trail([Tx(1, [Row(other, 5, image("1"))] * 3), Tx(2, [insert(1)])])[0])
    replicat.flush()
    assert identities(replicats) == [1]
    assert replicat.applied is not None
    assert replicat.applied.position == TrailPosition(0, FIRST_RBA + 4)


def test_foreign_keys_hold_in_commit_order_and_tables_are_truncated_together(replicats: Replicats) -> None:
    with session.connect(replicats.dsn) as connection:
        connection.execute("CREATE TABLE child (id integer PRIMARY KEY, parent integer NOT NULL REFERENCES t)")
    child = TableDefinition(TableName("hr", "child"), (Column("id", "integer"), Column("parent", "integer")), (0,))
    replicat = replicats.start()
    transactions = []
    for n in range(1, 31):
        transactions.append(Tx(2 * n, [insert(n), Row(child, 5, image(str(n), str(n)))]))
        if n % 5 == 0:
            transactions.append(Tx(2 * n + 1, [Row(child, 3, image(str(n))), delete(n)]))
    transactions.append(Tx(99, [truncate(), truncate(child), insert(77)]))
    for batch in trail(transactions, rows_a_batch=9):
        replicat.feed(batch)
    replicat.flush()
    assert identities(replicats) == [77]
    assert query(replicats.dsn, "SELECT count(*) FROM child") == [(0,)]


def test_truncates_can_be_ignored(replicats: Replicats) -> None:
    counts: Counter[int] = Counter()
    counters = OperationCounters(applied=lambda _s, _t, io_type, number: counts.update({io_type: number}))
    replicat = replicats.start(truncates=False, counters=counters)
    replicat.feed(trail([Tx(1, [insert(1), truncate()]), Tx(2, [truncate(), insert(2)])])[0])
    replicat.flush()
    assert identities(replicats) == [1, 2]
    assert counts == {IoType.INSERT: 2}
    assert replicat.applied is not None
    assert replicat.applied.position == TrailPosition(0, FIRST_RBA + 4)


def test_rows_deleted_by_a_cascade_are_not_an_error(replicats: Replicats) -> None:
    with session.connect(replicats.dsn) as connection:
        connection.execute("CREATE TABLE child (id integer PRIMARY KEY, parent integer REFERENCES t ON DELETE CASCADE)")
    child = TableDefinition(TableName("hr", "child"), (Column("id", "integer"), Column("parent", "integer")), (0,))
    replicat = replicats.start()
    gone = [delete(1), *(Row(child, 3, image(str(n))) for n in range(40))]
    replicat.feed(trail([Tx(1, [insert(1), *(Row(child, 5, image(str(n), "1")) for n in range(40))]), Tx(2, gone)])[0])
    replicat.flush()
    assert query(replicats.dsn, "SELECT count(*) FROM child") == [(0,)]


def test_an_update_without_a_column_leaves_it_unchanged(replicats: Replicats) -> None:
    replicat = replicats.start()
    replicat.feed(
        trail([Tx(1, [insert(n, "old", "7") for n in range(30)]), Tx(2, [update_a(n, "new") for n in range(30)])])[0]
    )
    replicat.flush()
    assert set(query(replicats.dsn, "SELECT a, b::text FROM t")) == {("new", "7")}
