"""What the columns of a checkpoint table mean.

LOG_CSN is the upper bound: nothing above it was processed.  LOG_CMPLT_CSN is the lower: everything up to it is applied, of
the transactions at it those in LOG_CMPLT_XIDS.  Both are the same but for a transaction that MAXTRANSOPS has split: then
LOG_CSN is its own, and its id stands in LOG_CMPLT_XIDS with ``+`` and how many of its operations are applied.
"""

from __future__ import annotations

import zlib
from datetime import UTC, datetime
from typing import NamedTuple

from ggshell.apply.target import CheckpointRow, Split
from ggshell.clock import from_datetime, to_datetime
from ggshell.errors import ApplyError
from ggshell.types import Csn, TableName, TrailPosition

VERSION = 6
"""The form of the table, as its rows say it."""

LONGEST_IDS = 2000
LONGEST_ID = 128


class Columns(NamedTuple):
    """The columns of the main table that move with a Replicat, None for NULL."""

    seqno: int
    rba: int
    audit_ts: str | None
    log_bsn: str | None
    log_csn: str | None
    log_xid: str | None
    log_cmplt_csn: str | None
    log_cmplt_xids: str | None


def transaction_table(table: TableName) -> TableName:
    """The table beside the main one that takes the completed transactions which do not fit its row."""
    return TableName(table.owner, f"{table.name}_lox")


def group_key(group: str, home: str) -> int:
    """A number that tells groups of one name in different homes apart."""
    return zlib.crc32(f"{home}\0{group.upper()}".encode())


def to_columns(row: CheckpointRow) -> Columns:
    """Raises ApplyError when more transactions share a CSN than the table can name."""
    ids = list(row.same_csn) or ([row.xid] if row.xid else [])
    if row.split is not None:
        ids.append(f"{row.split.xid}+{row.split.operations}")
    joined = ",".join(ids)
    if len(joined) > LONGEST_IDS:
        raise ApplyError(f"{len(ids)} transactions share CSN {row.csn}: LOG_CMPLT_XIDS cannot hold their ids")
    upper, last = (row.split.csn, row.split.xid) if row.split is not None else (row.csn, row.xid)
    return Columns(
        row.position.seqno,
        row.position.rba,
        to_datetime(row.commit_time).replace(tzinfo=None).isoformat(" ", "microseconds") if row.commit_time else None,
        str(row.csn._replace(value=row.restart)) if row.csn is not None and row.restart else None,
        str(upper) if upper is not None else None,
        last[:LONGEST_ID] or None,
        str(row.csn) if row.csn is not None else None,
        joined or None,
    )


def from_columns(columns: Columns) -> CheckpointRow:
    """The row that the columns say.  Raises ApplyError when a CSN or a time in them cannot be read."""
    try:
        upper, lower = (Csn.parse(text) if text else None for text in (columns.log_csn, columns.log_cmplt_csn))
        ids = columns.log_cmplt_xids.split(",") if columns.log_cmplt_xids else []
        split: Split | None = None
        if ids and "+" in ids[-1] and upper is not None:
            xid, _, operations = ids.pop().rpartition("+")
            split = Split(upper, xid, int(operations))
        csn = lower if lower is not None or split is not None else upper
        return CheckpointRow(
            TrailPosition(columns.seqno, columns.rba),
            csn,
            ids[-1] if ids else "",
            _microseconds(columns.audit_ts),
            Csn.parse(columns.log_bsn).value if columns.log_bsn else 0,
            tuple(ids),
            split,
        )
    except ValueError as error:
        raise ApplyError(
            f"the checkpoint table's row cannot be read: {error}",
            code="GGS-00514",
            hint="INFO CHECKPOINTTABLE; restore the row",
        ) from error


def _microseconds(text: str | None) -> int:
    return from_datetime(datetime.fromisoformat(text).replace(tzinfo=UTC)) if text else 0
