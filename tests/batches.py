"""Builds batches for tests of trail, pump and apply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ggshell.record.change import Areas, ChangeBatch
from ggshell.record.ddl import DdlColumn, DdlObject, DdlStatement, encode_ddl, object_definition
from ggshell.record.definition import TableDefinition
from ggshell.record.operation import IoType
from ggshell.record.transaction import TransactionHeader, TransactionPiece
from ggshell.types import Csn, TableName


class Row(NamedTuple):
    """One change: its table, operation type, data area, log position, whether it is the before image of an update, and the
    bytes of its user tokens."""

    table: TableDefinition
    io_type: int
    data: bytes
    position: int = 1
    before: bool = False
    user: bytes = b""


def ddl_statement(
    tag: str, text: str, owner: str = "hr", name: str = "employees", *, columns: Sequence[DdlColumn] = ()
) -> DdlStatement:
    """A DDL statement on one object; the second word of its tag is the object's type."""
    table = TableName(owner, name)
    kind = tag.partition(" ")[2]
    main = DdlObject(kind, table, table if kind == "TABLE" else None)
    return DdlStatement(tag, text, (main,), "postgres", (("search_path", "hr, public"),), "app", tuple(columns))


def ddl_row(statement: DdlStatement, position: int = 1) -> Row:
    """A DDL statement as a row of a batch."""
    return Row(object_definition(statement), IoType.DDL, encode_ddl(statement), position)


class Tx(NamedTuple):
    """One transaction, or a piece of one."""

    csn: int
    rows: Sequence[Row]
    begins: bool = True
    ends: bool = True


def make_batch(transactions: Sequence[Tx]) -> ChangeBatch:
    """A batch as capture creates it."""
    rows = [row for transaction in transactions for row in transaction.rows]
    tables = tuple(dict.fromkeys(row.table for row in rows))
    pieces, first = [], 0
    for csn, of_this, begins, ends in transactions:
        header = TransactionHeader(str(700 + csn), Csn(csn), 1_700_000_000_000_000 + csn * 1000, csn)
        pieces.append(TransactionPiece(header, first, len(of_this), begins, ends))
        first += len(of_this)
    lengths = np.array([len(row.data) for row in rows], dtype=np.int64)
    users = np.array([len(row.user) for row in rows], dtype=np.int64)
    return ChangeBatch(
        tables=tables,
        table=np.array([tables.index(row.table) for row in rows], dtype=np.uint16),
        io_type=np.array([row.io_type for row in rows], dtype=np.uint8),
        position=np.array([row.position for row in rows], dtype=np.uint64),
        buffer=b"".join([*(row.data for row in rows), *(row.user for row in rows)]),
        start=np.cumsum(lengths) - lengths,
        length=lengths,
        rba=np.zeros(len(rows), dtype=np.int64),
        pieces=tuple(pieces),
        befores=np.array([row.before for row in rows], dtype=bool) if any(row.before for row in rows) else None,
        user_tokens=Areas(lengths.sum() + np.cumsum(users) - users, users) if users.any() else None,
    )


def read_rows(batch: ChangeBatch) -> list[tuple[int, TableDefinition, int, bytes, int, bool, bool, bool, bytes]]:
    """Every row of a batch: CSN, table, operation, data, position, whether it begins and ends its transaction, whether it is a
    before image, its user tokens."""
    result = []
    tokens = batch.user_tokens
    for piece in batch.pieces:
        for row in range(piece.first, piece.first + piece.count):
            start = int(batch.start[row])
            first, size = (int(tokens.start[row]), int(tokens.length[row])) if tokens is not None else (0, 0)
            result.append(
                (
                    piece.header.csn.value,
                    batch.tables[int(batch.table[row])],
                    int(batch.io_type[row]),
                    bytes(batch.buffer[start : start + int(batch.length[row])]),
                    int(batch.position[row]),
                    piece.begins and row == piece.first,
                    piece.ends and row == piece.first + piece.count - 1,
                    batch.befores is not None and bool(batch.befores[row]),
                    bytes(batch.buffer[first : first + size]),
                )
            )
    return result
