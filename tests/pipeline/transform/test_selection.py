"""Filtering rows never breaks a transaction: each transaction that leaves the stage begins once and ends once."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ggshell.pipeline.transform.selection import Selection
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.record.transaction import Completed, TransactionHeader, TransactionPiece
from ggshell.types import Csn, TableName

TABLES = tuple(TableDefinition(TableName("s", name), (Column("a", "integer"),), (0,)) for name in "xyz")


def batch(pieces: list[tuple[int, list[int], bool, bool]], times: dict[int, int] | None = None) -> ChangeBatch:
    """A batch of (csn, table number per row, begins, ends); the commit time is the CSN, unless ``times`` gives another."""
    tables = [table for _, rows, _, _ in pieces for table in rows]
    count = len(tables)
    made, first = [], 0
    for csn, rows, begins, ends in pieces:
        made.append(
            TransactionPiece(
                TransactionHeader(str(csn), Csn(csn), (times or {}).get(csn, csn)), first, len(rows), begins, ends
            )
        )
        first += len(rows)
    zeros = np.zeros(count, dtype=np.int64)
    return ChangeBatch(
        TABLES,
        np.array(tables, dtype=np.uint16),
        np.full(count, IoType.INSERT, dtype=np.uint8),
        zeros.astype(np.uint64),
        b"",
        zeros,
        zeros,
        zeros,
        tuple(made),
    )


def flat(batches: list[ChangeBatch]) -> list[tuple[int, int, bool, bool]]:
    """(csn, table, begins here, ends here) of every selected row."""
    rows = []
    for item in batches:
        for piece in item.pieces:
            for place in range(piece.count):
                begins = piece.begins and place == 0
                ends = piece.ends and place == piece.count - 1
                rows.append((piece.header.csn.value, int(item.table[piece.first + place]), begins, ends))
    return rows


transactions = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6), min_size=1, max_size=8)


@given(transactions, st.sets(st.integers(0, 2)), st.integers(0, 8), st.data())
def test_the_requested_rows_are_selected_and_each_transaction_begins_and_ends_once(
    rows: list[list[int]], wanted: set[int], after: int, data: st.DataObject
) -> None:
    selection = Selection(lambda name: "xyz".index(name.name) in wanted, Completed(Csn(after)))
    pieces = []
    for number, tables in enumerate(rows, 1):
        cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(tables) - 1))))) if len(tables) > 1 else []
        edges = [0, *[cut for cut in cuts if cut < len(tables)], len(tables)]
        for low, high in itertools.pairwise(edges):
            pieces.append((number, tables[low:high], low == 0, high == len(tables)))
    left: list[ChangeBatch] = []
    while pieces:
        size = data.draw(st.integers(1, len(pieces)))
        left += selection.select(batch(pieces[:size]))
        del pieces[:size]
    expected = []
    for number, tables in enumerate(rows, 1):
        kept = [table for table in tables if table in wanted and number > after]
        expected += [(number, table, at == 0, at == len(kept) - 1) for at, table in enumerate(kept)]
    assert flat(left) == expected


def test_a_batch_that_keeps_all_its_rows_is_passed_on_unchanged() -> None:
    given_batch = batch([(1, [0, 1], True, True)])
    assert next(Selection(lambda _: True).select(given_batch)) is given_batch


@given(transactions, st.lists(st.integers(0, 9), min_size=8, max_size=8), st.integers(0, 9), st.data())
def test_guarantee_5_all_rows_are_selected_from_the_first_transaction_at_the_requested_time(
    rows: list[list[int]], moments: list[int], since: int, data: st.DataObject
) -> None:
    times = dict(enumerate(moments, 1))
    selection = Selection(lambda name: name.name != "z", since=since)
    left: list[ChangeBatch] = []
    pieces = [(number, tables, True, True) for number, tables in enumerate(rows, 1)]
    while pieces:
        size = data.draw(st.integers(1, len(pieces)))
        left += selection.select(batch(pieces[:size], times))
        del pieces[:size]
    first = next((number for number in range(1, len(rows) + 1) if times[number] >= since), len(rows) + 1)
    kept = {number: [table for table in tables if table != 2] for number, tables in enumerate(rows, 1)}
    assert [(csn, table) for csn, table, _, _ in flat(left)] == [
        (number, table) for number in range(first, len(rows) + 1) for table in kept[number]
    ]
