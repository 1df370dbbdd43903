"""Grouping transactions for apply, and the checkpoints between groups."""

from __future__ import annotations

from batches import Tx
from pipeline.apply.hand_made import FIRST_RBA, T, delete, insert, trail

from ggshell.pipeline.apply.groups import (
    BatchSpan,
    TransactionGroup,
    begin_of,
    boundary,
    contiguous,
    split_boundary,
    transactions,
)
from ggshell.pipeline.apply.target import CheckpointRow, Split, TableMapping, TargetTable
from ggshell.record.operation import IoType
from ggshell.types import Csn, TableName, TrailPosition

BATCHES = trail([Tx(1, [insert(1)]), Tx(2, [insert(2), insert(3), delete(1)]), Tx(3, [insert(4)])], rows_a_batch=3)
SPANS = [BatchSpan(batch, batch.pieces, {}) for batch in BATCHES]


def test_transactions_across_batches_are_grouped_into_spans() -> None:
    found = [[span.last - span.first for span in parts] for parts in transactions(SPANS)]
    assert found == [[1], [2, 1], [1]]
    assert [[span.last - span.first for span in parts] for parts in transactions(SPANS[:1])] == [[1], [2]]


def test_the_boundary_is_the_begin_of_the_next_row_or_the_end_of_the_batch() -> None:
    within = BatchSpan(BATCHES[0], BATCHES[0].pieces[:1], {})
    assert boundary([within], None).position == TrailPosition(0, FIRST_RBA + 1)
    after_all = boundary(SPANS, None)
    assert after_all.position == TrailPosition(0, FIRST_RBA + 5)
    assert (after_all.csn, after_all.xid, after_all.same_csn) == (Csn(3), "703", ("703",))


def test_all_transactions_with_the_same_csn_are_named() -> None:
    batches = trail([Tx(1, [insert(1)]), Tx(2, [insert(2)])])
    same = CheckpointRow(TrailPosition(0, 0), Csn(2), "600", same_csn=("600",))
    later = BatchSpan(batches[0], batches[0].pieces[1:], {})
    assert boundary([later], same).same_csn == ("600", "702")
    assert boundary([BatchSpan(batches[0], batches[0].pieces, {})], same).same_csn == ("702",)


def test_the_boundary_of_a_split_transaction_keeps_complete_ones_and_points_to_its_begin() -> None:
    before = boundary([BatchSpan(BATCHES[0], BATCHES[0].pieces[:1], {})], None)
    piece = BATCHES[0].pieces[1]
    row = split_boundary(begin_of(BATCHES[0], piece), piece, 2, before)
    assert row.position == TrailPosition(0, FIRST_RBA + 1)
    assert row.csn == Csn(1)
    assert row.split == Split(Csn(2), "702", 2)


def test_pieces_that_are_skipped_split_a_span() -> None:
    pieces = [*BATCHES[0].pieces[:1], *BATCHES[0].pieces[1:]]
    assert len(list(contiguous(BATCHES[0], pieces, {}))) == 1
    three = trail([Tx(n, [insert(n)]) for n in range(1, 4)])[0]
    assert len(list(contiguous(three, [three.pieces[0], three.pieces[2]], {}))) == 2
    assert list(contiguous(three, [], {})) == []


def test_a_group_counts_rows_by_table_and_operation() -> None:
    mapping = TableMapping(T, TargetTable(TableName("x", "t"), ()), (), (0,), True)
    group = TransactionGroup()
    for span in SPANS:
        group.add(span._replace(mappings={0: mapping}))
    assert group.operations == 5
    assert group.counts == {
        (T.name, TableName("x", "t"), IoType.INSERT): 4,
        (T.name, TableName("x", "t"), IoType.DELETE): 1,
    }
    assert group.whole
