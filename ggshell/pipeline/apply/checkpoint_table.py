"""Convert checkpoint rows to and from the columns of a checkpoint table.

LOG_CSN is the upper bound: nothing above it was processed. LOG_CMPLT_CSN is the lower bound: everything below it is
applied, and of the transactions with this CSN those in LOG_CMPLT_XIDS. They differ only if MAXTRANSOPS has split a
transaction: then LOG_CSN is its CSN, and LOG_CMPLT_XIDS ends with its id, ``+`` and the number of its applied operations.
If the ids do not fit, consecutive ones are written as ranges (``packed``).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from ggshell.clock import from_datetime, to_datetime
from ggshell.errors import ApplyError, RowGoneError, StateError
from ggshell.pipeline.apply.target import CheckpointRow, Split
from ggshell.types import Csn, TableName, TrailPosition

VERSION = 6
"""The version of the table's layout, which its rows record."""
CREATED = "ggshell checkpoint table, created "
"""The beginning of a table's comment; the creation time follows."""

LONGEST_IDS = 2000
"""The maximum length of a list of transaction ids in characters."""
LONGEST_ID = 128


class Columns(NamedTuple):
    """The columns of the main table that change as a Replicat advances; None for NULL."""

    seqno: int
    rba: int
    audit_ts: str | None
    log_bsn: str | None
    log_csn: str | None
    log_xid: str | None
    log_cmplt_csn: str | None
    log_cmplt_xids: str | None


def transaction_table(table: TableName) -> TableName:
    """Return the name of the second table, which holds the completed transactions that do not fit into the main row."""
    return TableName(table.owner, f"{table.name}_lox")


def group_key(group: str, keys: str) -> int:
    """Return a number that distinguishes groups of the same name in different homes; ``keys``: ``row_keys`` in home.json."""
    return zlib.crc32(f"{keys}\0{group.upper()}".encode())


def row_gone(group: str, table: TableName | None, known: CheckpointRow | None = None) -> RowGoneError:
    """Return the error for a group that has run but no longer has a row; ``known``: the row in its checkpoint file."""
    text = f"REPLICAT {group.upper()} has no row in checkpoint table {table}, although it has run before"
    if known is not None:
        said = f"applied up to CSN {known.csn}" if known.csn is not None else "nothing applied"
        text += f"; its checkpoint file is at {said}, and the target may hold more"
    return RowGoneError(
        text,
        hint="restore the row; or find the last transaction that the target holds;"
        f" START REPLICAT {group.upper()}, AFTERCSN csn creates a row that continues after it (0: from the beginning)",
    )


def names_gone(group: str, what: str, low: Csn | None) -> RowGoneError:
    """Return the error for a group that has its row, but has lost the ids of the transactions applied above it."""
    return RowGoneError(f"REPLICAT {group.upper()} has run before, but {what} is missing", low=str(low or ""))


def applied_by_appliers(count: int, group: str, kind: str, table: TableName | None) -> StateError:
    """Return the error for applied transactions of a parallel Replicat that another kind of Replicat would repeat."""
    return StateError(
        f"a parallel Replicat that did not stop cleanly has applied {count} transaction{'s'[: count != 1]} above the low"
        f" watermark of {group}: a {kind.lower()} Replicat would apply them again",
        code="GGS-00564",
        where=f"checkpoint table {table}",
        hint="ADD the group as PARALLEL again, START it, and STOP it (not KILL); then ADD it as the other kind: HELP"
        " GGS-00564",
    )


def applied_by_threads(threads: Sequence[str], group: str, kind: str, table: TableName | None) -> StateError:
    """Return the error for transactions of a coordinated Replicat that another kind of Replicat would repeat."""
    return StateError(
        f"a coordinated Replicat that did not stop cleanly has applied transactions above the row of {group}, by the"
        f" row{'s'[: len(threads) != 1]} of {', '.join(threads)}: a {kind.lower()} Replicat would apply them again",
        code="GGS-00564",
        where=f"checkpoint table {table}",
        hint="ADD the group as COORDINATED again, START it, and STOP it (not KILL); then ADD it as the other kind: HELP"
        " GGS-00564",
    )


def uncertain(group: str, error: RowGoneError, low: str, high: str) -> RowGoneError:
    """Return the error for a parallel group that lost its row: no single CSN in the range is a correct position."""
    reason = error.message.partition(";")[0]
    upper = f"up to CSN {high}" if high else "that its trail had"
    return RowGoneError(
        f"{reason}: everything up to CSN {low or 0} is applied, and any of the transactions above it {upper} may be,"
        " because the group applies them in parallel",
        hint="restore the rows of both checkpoint tables; or empty its tables, load them again, and START REPLICAT"
        f" {group.upper()}, AFTERCSN the CSN that the load reports",
    )


def to_columns(row: CheckpointRow) -> Columns:
    """Return the columns of a row. Raises ApplyError if more transactions share a CSN than the table can hold."""
    ids = list(row.same_csn) or ([row.xid] if row.xid else [])
    joined = listed(ids)
    if row.split is not None:
        joined = f"{joined}," * bool(joined) + f"{row.split.xid}+{row.split.operations}"
    if len(joined) > LONGEST_IDS:
        raise ApplyError(f"{len(ids)} transactions share CSN {row.csn}: LOG_CMPLT_XIDS cannot store their ids")
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
    """Return the row in the columns. Raises ApplyError if a CSN or a time in them is not valid."""
    try:
        upper, lower = (Csn.parse(text) if text else None for text in (columns.log_csn, columns.log_cmplt_csn))
        ids = unpacked(columns.log_cmplt_xids or "")
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


# Transaction ids in one column of a checkpoint table: consecutive ids are packed into a range.
#
# An initial load gives all its transactions one CSN and consecutive ids, so thousands of them fit into one range.


_MOST = 1_000_000
_FEW = 3
_ROOM = 150
"""Characters reserved for a transaction that MAXTRANSOPS has split."""
_COUNTED = re.compile(r"(|.*\D)(0|[1-9]\d{0,17})")
_RANGE = re.compile(r"(|.*\D)(0|[1-9]\d{0,17})~(\d{1,18})")


def listed(ids: Sequence[str]) -> str:
    """Return ids as stored in the column: one by one if they fit with the reserve, else with ranges."""
    plain = ",".join(ids)
    return plain if len(plain) <= LONGEST_IDS - _ROOM else packed(ids)


def packed(ids: Iterable[str]) -> str:
    """Pack ids in their order: ``7.1~300,9`` stands for 7.1, 7.2 and so on up to 7.300, then 9."""
    parts: list[str] = []
    run: list[str] = []
    follows: str | None = None
    for xid in ids:
        if xid != follows:
            parts += _part(run)
            run = []
        run.append(xid)
        match = _COUNTED.fullmatch(xid)
        follows = f"{match[1]}{int(match[2]) + 1}" if match else None
    return ",".join([*parts, *_part(run)])


def _part(run: list[str]) -> list[str]:
    if len(run) < _FEW:
        return run
    match = _COUNTED.fullmatch(run[-1])
    return [f"{run[0]}~{match[2]}"] if match else run


def unpacked(text: str) -> list[str]:
    """Unpack ids. Raises ValueError for a range that is not valid or is implausibly long."""
    ids: list[str] = []
    for part in text.split(",") if text else ():
        match = _RANGE.fullmatch(part)
        if match is None:
            ids.append(part)
            continue
        first, last = int(match[2]), int(match[3])
        if not first < last < first + _MOST:
            raise ValueError(f"{part} is not a range of transaction ids")
        ids += [f"{match[1]}{number}" for number in range(first, last + 1)]
    return ids


def id_parts(ids: Sequence[str]) -> Iterator[str]:
    """The ids as comma-separated texts, as few as the length of the column allows."""
    part: list[str] = []
    size = 0
    for xid in ids:
        if part and size + len(xid) + 1 > LONGEST_IDS:
            yield ",".join(part)
            part, size = [], 0
        part.append(xid)
        size += len(xid) + 1
    if part:
        yield ",".join(part)


def fitting_ids(low: Sequence[str], ids: Sequence[str]) -> tuple[str, ...]:
    """The ids that the checkpoint row names.

    All ids, if they fit; otherwise those at the low watermark, or more as far as they fit. The transaction table has
    all.
    """
    if len(packed(ids)) <= LONGEST_IDS:
        return tuple(ids)
    shown = next(id_parts(ids), "").split(",")
    return tuple(shown) if len(shown) >= len(low) else tuple(low)
