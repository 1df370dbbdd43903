"""Deduplication: which transactions have been applied already."""

from __future__ import annotations

import pytest

from ggshell.pipeline.apply.deduplication import AcceptedTransactions
from ggshell.pipeline.apply.target import CheckpointRow, Split
from ggshell.record.transaction import TransactionHeader, TransactionPiece
from ggshell.types import Csn, TrailPosition

HERE = TrailPosition(0, 0)


def piece(csn: int, count: int = 1, xid: str = "", *, begins: bool = True, ends: bool = True) -> TransactionPiece:
    return TransactionPiece(TransactionHeader(xid or str(csn), Csn(csn), 0), 0, count, begins, ends)


def csns(pieces: list[TransactionPiece]) -> list[int]:
    return [found.header.csn.value for found in pieces]


def test_without_a_checkpoint_row_every_transaction_is_new_once() -> None:
    accepted = AcceptedTransactions(None)
    assert csns(accepted.fresh([piece(1), piece(2)])) == [1, 2]
    assert csns(accepted.fresh([piece(2), piece(3)])) == [3]


def test_a_checkpoint_row_covers_everything_up_to_its_csn() -> None:
    accepted = AcceptedTransactions(CheckpointRow(HERE, Csn(5), "5", same_csn=("5",)))
    assert csns(accepted.fresh([piece(4), piece(5), piece(6)])) == [6]


def test_transactions_with_the_same_csn_are_distinguished_by_xid() -> None:
    accepted = AcceptedTransactions(CheckpointRow(HERE, Csn(5), "b", same_csn=("a", "b")))
    fresh = accepted.fresh([piece(5, xid="a"), piece(5, xid="b"), piece(5, xid="c"), piece(5, xid="c")])
    assert [found.header.xid for found in fresh] == ["c"]


def test_a_checkpoint_row_without_xids_covers_its_whole_csn() -> None:
    assert AcceptedTransactions(CheckpointRow(HERE, Csn(5))).fresh([piece(5, xid="z")]) == []


def test_pieces_of_an_unfinished_transaction_stay_new() -> None:
    accepted = AcceptedTransactions(CheckpointRow(HERE, Csn(1), "1", same_csn=("1",)))
    assert len(accepted.fresh([piece(2, ends=False)])) == 1
    assert len(accepted.fresh([piece(2, begins=False, ends=False)])) == 1
    assert len(accepted.fresh([piece(2, begins=False)])) == 1
    assert accepted.fresh([piece(2)]) == []


@pytest.mark.parametrize("done", [1, 4, 5, 9])
def test_only_the_rest_of_a_split_transaction_is_new(done: int) -> None:
    accepted = AcceptedTransactions(CheckpointRow(HERE, Csn(1), "1", same_csn=("1",), split=Split(Csn(2), "2", done)))
    pieces = [piece(2, 5, ends=False), piece(2, 5, begins=False), piece(3)]
    fresh = accepted.fresh([piece(1), *pieces])
    assert sum(found.count for found in fresh if found.header.xid == "2") == 10 - done
    assert fresh[-1].header.xid == "3"
    assert not any(found.begins for found in fresh[:-1])
