"""Converting a checkpoint row to columns and back."""

from __future__ import annotations

import pytest

from ggshell.errors import ApplyError
from ggshell.pipeline.apply.checkpoint_table import from_columns, to_columns
from ggshell.pipeline.apply.target import CheckpointRow, Split
from ggshell.types import Csn, CsnForm, TrailPosition

PLACE = TrailPosition(3, 4711)
TIME = 1_700_000_000_123_456


@pytest.mark.parametrize(
    "row",
    [
        CheckpointRow(PLACE, None),
        CheckpointRow(PLACE, Csn(1 << 40), "77", TIME, 99, ("77",)),
        CheckpointRow(PLACE, Csn(12, CsnForm.NUMBER), "5.1.9", TIME, 0, ("4.1.9", "5.1.9")),
        CheckpointRow(PLACE, Csn(5), "77", TIME, 99, ("77",), Split(Csn(6), "78", 1000)),
        CheckpointRow(PLACE, None, split=Split(Csn(6), "78", 1000)),
    ],
)
def test_a_row_is_read_back_from_its_columns(row: CheckpointRow) -> None:
    assert from_columns(to_columns(row)) == row


def test_the_columns_contain_what_other_tools_expect() -> None:
    columns = to_columns(CheckpointRow(PLACE, Csn(0x50056B8), "77", TIME, 0x5005000, ("77",)))
    assert columns.log_csn == columns.log_cmplt_csn == "00000000/050056B8"
    assert columns.log_bsn == "00000000/05005000"
    assert columns.log_cmplt_xids == columns.log_xid == "77"
    assert columns.audit_ts == "2023-11-14 22:13:20.123456"


def test_the_low_and_high_positions_differ_within_a_split_transaction() -> None:
    columns = to_columns(CheckpointRow(PLACE, Csn(5), "77", TIME, 0, ("77",), Split(Csn(6), "78", 10)))
    assert (columns.log_csn, columns.log_cmplt_csn) == (str(Csn(6)), str(Csn(5)))
    assert columns.log_cmplt_xids == "77,78+10"


def test_a_damaged_row_is_an_error_with_a_hint() -> None:
    columns = to_columns(CheckpointRow(PLACE, Csn(5), "77", TIME))._replace(log_csn="nonsense", log_cmplt_csn="x/y")
    with pytest.raises(ApplyError, match="cannot be read"):
        from_columns(columns)


def test_too_many_transactions_with_one_csn_are_refused_not_forgotten() -> None:
    with pytest.raises(ApplyError, match="share CSN"):
        to_columns(CheckpointRow(PLACE, Csn(5), "1", TIME, 0, tuple(str(n) for n in range(0, 4000, 2))))
