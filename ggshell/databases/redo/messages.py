"""A cached row: what stands in a message of an open transaction.

Head: the row's number in its transaction (4 bytes, by which a statement's rollback names it), operation, redo address, the
lengths of owner, table, row id and SQL_REDO; then these texts, and SQL_UNDO for the rest.  Rows are self-contained: they need
no definitions beside them, and may be kept over a restart.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import NamedTuple

from ggshell.databases.redo.rows import RedoRow

_HEAD = struct.Struct("<IBQHHHI")
MARK = 0
"""Where the row's number stands."""
_ROWID_ONLY = " where ROWID = '"


class CachedRow(NamedTuple):
    """One row, taken out of its message."""

    mark: int
    operation: int
    place: int
    owner: str
    table: str
    row_id: str
    redo: bytes
    undo: bytes


def pack_row(row: RedoRow, mark: int) -> bytes:
    """A row's message.  SQL_UNDO is kept only where SQL_REDO names the row by its address alone."""
    owner, table, row_id = row.owner.encode(), row.table.encode(), row.row_id.encode()
    redo = row.redo.encode()
    undo = row.undo.encode() if _ROWID_ONLY in row.redo else b""
    head = _HEAD.pack(mark, row.operation, row.place, len(owner), len(table), len(row_id), len(redo))
    return b"".join((head, owner, table, row_id, redo, undo))


def unpack_row(message: bytes) -> CachedRow:
    """What ``pack_row`` made."""
    mark, operation, place, owner, table, row_id, redo = _HEAD.unpack_from(message)
    first = _HEAD.size
    second = first + owner
    third = second + table
    fourth = third + row_id
    end = fourth + redo
    return CachedRow(
        mark,
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


def mark_of(number: int) -> bytes:
    """A row's number as it stands in its message."""
    return number.to_bytes(4, "little")
