"""Compressed transactions of MySQL: one event whose payload has all other events of a transaction.

The events of the payload have neither a position nor a checksum. Source: ``libs/mysql/binlog/event/codecs`` of MySQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ggshell.connectors.mysql.binlog.events import DAMAGED, HEADER_SIZE, UNSUPPORTED, EventHeader, packed
from ggshell.errors import CaptureError

_END, _SIZE, _COMPRESSION, _WHOLE_SIZE = range(4)
_ZSTD, _NONE = 0, 255
_LARGEST: Final = 1 << 32
"""No transaction is larger: MySQL compresses only what fits into max_allowed_packet."""


class _Payload(NamedTuple):
    """``place``: where the data begins in the event; ``size`` and ``whole_size``: its bytes there, and decompressed."""

    place: int
    size: int
    compression: int
    whole_size: int


def payload_events(event: bytes, head: EventHeader) -> Iterator[bytes]:
    """The events of a compressed transaction, each with the position of the event that contains them.

    Raises CaptureError if they are damaged, or compressed in another way than MySQL's.
    """
    data, place = _decompressed(event, _payload(event)), 0
    while place < len(data):
        size = int.from_bytes(data[place + 9 : place + 13], "little")
        if size < HEADER_SIZE or place + size > len(data):
            raise CaptureError("the events of a compressed transaction in the binary log are damaged", code=DAMAGED)
        ends = (head.start + size).to_bytes(4, "little")
        yield data[place : place + 13] + ends + data[place + 17 : place + size]
        place += size


def _payload(event: bytes) -> _Payload:
    fields: dict[int, int] = {_COMPRESSION: _NONE}
    place = HEADER_SIZE
    while place < len(event):
        kind, place = packed(event, place)
        if kind == _END:
            size = fields.get(_SIZE, len(event) - place)
            return _Payload(place, size, fields[_COMPRESSION], fields.get(_WHOLE_SIZE, size))
        length, place = packed(event, place)
        fields[kind] = packed(event, place)[0]
        place += length
    raise CaptureError("a compressed transaction in the binary log has no payload", code=DAMAGED)


def _decompressed(event: bytes, payload: _Payload) -> bytes:
    data = event[payload.place : payload.place + payload.size]
    if payload.compression == _NONE:
        return data
    if payload.compression != _ZSTD:
        raise CaptureError(
            f"the compression {payload.compression} of a transaction in the binary log is not supported",
            code=UNSUPPORTED,
            hint="SET GLOBAL binlog_transaction_compression = OFF",
        )
    import pyarrow as pa

    try:
        found: bytes = pa.decompress(data, min(payload.whole_size, _LARGEST), codec="zstd", asbytes=True)
    except OSError as error:
        raise CaptureError(f"a compressed transaction in the binary log is damaged: {error}", code=DAMAGED) from error
    return found
