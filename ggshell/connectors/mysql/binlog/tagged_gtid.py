"""GTID events with a tag, which MySQL writes since version 8.3 for ``gtid_next = 'AUTOMATIC:tag'``.

They are written in MySQL's serialization format: numbers have a variable length, which the lowest bits of the first byte say,
and each field has its number before it. Source: ``libs/mysql/serialization`` and ``Gtid_event::define_fields`` of MySQL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ggshell.connectors.mysql.binlog.events import (
    HEADER_SIZE,
    EventType,
    TransactionBegin,
    mariadb_gtid,
    mysql_gtid,
    uuid_text,
)

_UUID, _NUMBER, _TAG, _TIME = 1, 2, 3, 6
_UUID_BYTES: Final = 16


def tagged_gtid(event: bytes) -> TransactionBegin:
    """Read the event. Raises one of ``events.UNREADABLE`` if it is damaged."""
    place = HEADER_SIZE
    uuid, number, tag, time = b"", 0, "", 0
    for _ in range(3):  # the version, the size, and the last field that a reader must know
        _, place = variable_number(event, place)
    while place < len(event):
        field, place = variable_number(event, place)
        if field > _TIME:
            break
        if field == _UUID:
            uuid, place = _fixed(event, place, _UUID_BYTES)
        elif field == _TAG:
            size, place = variable_number(event, place)
            tag, place = event[place : place + size].decode(), place + size
        else:
            value, place = variable_number(event, place)
            if field == _NUMBER:
                number = value >> 1  # signed: the lowest bit is the sign
            elif field == _TIME:
                time = value
    domain = f"{uuid_text(uuid)}:{tag}" if tag else uuid_text(uuid)
    return TransactionBegin(f"{domain}:{number}", domain, number, commit_time=time)


BEGINS: Final[dict[int, Callable[[bytes], TransactionBegin]]] = {
    EventType.MARIADB_GTID: mariadb_gtid,
    EventType.GTID: mysql_gtid,
    EventType.ANONYMOUS_GTID: mysql_gtid,
    EventType.GTID_TAGGED: tagged_gtid,
}
"""What reads the events that begin a transaction, by their kinds."""


def variable_number(data: bytes, place: int) -> tuple[int, int]:
    """Read an unsigned number of 1 to 9 bytes; return it and the place after it. Raises IndexError past the end."""
    size = 1
    while size < 9 and data[place] & 1 << size - 1:
        size += 1
    if place + size > len(data):
        raise IndexError(f"a number of {size} bytes at {place}")
    if size == 9:
        return int.from_bytes(data[place + 1 : place + 9], "little"), place + 9
    return int.from_bytes(data[place : place + size], "little") >> size, place + size


def _fixed(data: bytes, place: int, count: int) -> tuple[bytes, int]:
    """Read bytes of which each is a variable number."""
    found = bytearray()
    for _ in range(count):
        value, place = variable_number(data, place)
        found.append(value & 0xFF)
    return bytes(found), place
