"""A cached row: the form of a row in an open transaction's messages.

The head contains the row's number in its transaction (4 bytes; a statement rollback refers to it), the operation, the
redo address, and the lengths of owner, table, row id and SQL_REDO. These texts follow, and the rest is SQL_UNDO. Rows
are self-contained: they need no definitions and can be kept over a restart.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import NamedTuple

from ggshell.connectors.oracle_redo.rows import Operation, RedoRow

_HEAD = struct.Struct("<IBQHHHI")
ID_OFFSET = 0
"""The offset of the row's number."""
_ROWID_ONLY = " where ROWID = '"
_WHERE = " where "
_INSERT = int(Operation.INSERT)


class CachedRow(NamedTuple):
    """One row, unpacked from its message."""

    number: int
    operation: int
    place: int
    owner: str
    table: str
    row_id: str
    redo: bytes
    undo: bytes


def pack_row(row: RedoRow, number: int) -> bytes:
    """Pack a row. SQL_UNDO is kept only if SQL_REDO identifies the row by its address alone, or not at all."""
    owner, table, row_id = row.owner.encode(), row.table.encode(), row.row_id.encode()
    redo = row.redo.encode()
    named = _ROWID_ONLY not in row.redo and (row.operation == _INSERT or _WHERE in row.redo)
    undo = b"" if named else row.undo.encode()
    head = _HEAD.pack(number, row.operation, row.place, len(owner), len(table), len(row_id), len(redo))
    return b"".join((head, owner, table, row_id, redo, undo))


def unpack_row(message: bytes) -> CachedRow:
    """Unpack a row that ``pack_row`` packed."""
    number, operation, place, owner, table, row_id, redo = _HEAD.unpack_from(message)
    first = _HEAD.size
    second = first + owner
    third = second + table
    fourth = third + row_id
    end = fourth + redo
    return CachedRow(
        number,
        operation,
        place,
        _name(message[first:second]),
        _name(message[second:third]),
        message[third:fourth].decode(),
        message[fourth:end],
        message[end:],
    )


@lru_cache(maxsize=1 << 12)
def _name(text: bytes) -> str:
    return text.decode()


def message_id(number: int) -> bytes:
    """A row's number as in its message."""
    return number.to_bytes(4, "little")
