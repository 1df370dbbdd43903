"""GGS tokens: the sequence of (id, info, length, value) in a record's T token, which identifies the transaction."""

from __future__ import annotations

import contextlib

import numpy as np
from numpy.typing import NDArray

from ggshell.clock import JULIAN_EPOCH_MICROSECONDS
from ggshell.record.transaction import TransactionHeader
from ggshell.trail import layout
from ggshell.types import Csn, CsnForm

_SLASH = 0x2F
_LSN_TEXT = 17
_SHORT = 0xFF
_LSN_TOKEN = layout.TOKEN.pack(layout.LOGCSN, 0, _LSN_TEXT)
_BSN_TOKEN = layout.TOKEN.pack(layout.LOGBSN, 0, _LSN_TEXT)
_FEW = 16
_HEX = np.full(256, 0xFF, dtype=np.uint8)
_HEX[np.frombuffer(b"0123456789ABCDEF", dtype=np.uint8)] = np.arange(16, dtype=np.uint8)
_DIGITS = np.array([*range(8), *range(9, 17)], dtype=np.int64)
_FOUR = np.arange(4, dtype=np.int64)


def transaction_tokens(header: TransactionHeader) -> bytes:
    """Encode the GGS tokens of a transaction's first record: LOGCSN, TRANID, and LOGBSN if the source gave one."""
    csn, xid = header.csn, header.xid.encode()
    if (
        csn.form == CsnForm.LSN and len(xid) <= _SHORT
    ):  # the usual case in one step: one-row transactions call this for every row
        tokens = b"L\0\x11\0%08X/%08X6\0%c\0%b" % (csn.value >> 32, csn.value & 0xFFFFFFFF, len(xid), xid)
        if header.restart:
            tokens += b"B\0\x11\0%08X/%08X" % (header.restart >> 32, header.restart & 0xFFFFFFFF)
        return tokens
    tokens = layout.token(layout.LOGCSN, str(csn).encode()) + layout.token(layout.TRANID, xid)
    if header.restart:
        tokens += layout.token(layout.LOGBSN, str(Csn(header.restart, csn.form)).encode())
    return tokens


def split_tokens(chunk: bytes | memoryview, first: int, end: int) -> dict[str, bytes]:
    """Return the tokens between two places by their one-letter ids. Raises ValueError if one extends past the end."""
    found: dict[str, bytes] = {}
    while first < end:
        if first + 4 > end:
            raise ValueError("an incomplete token")
        length = chunk[first + 2] | chunk[first + 3] << 8
        value = first + 4
        if value + length > end:
            raise ValueError(f"token {chunk[first]:#x} points past the end of its record")
        found[chr(chunk[first])] = bytes(chunk[value : value + length])
        first = value + length
    return found


def transaction_header(chunk: bytes | memoryview, first: int, end: int, io_time: int) -> TransactionHeader:
    """Return the transaction that a record's GGS tokens identify; ``io_time`` is in Julian microseconds.

    Raises ValueError if they do not identify one.
    """
    usual = _usual_tokens(chunk, first, end)
    if usual is not None:
        csn, xid, restart = usual
        return TransactionHeader(xid, csn, io_time - JULIAN_EPOCH_MICROSECONDS, restart)
    found = split_tokens(chunk, first, end)
    if "L" not in found or "6" not in found:
        raise ValueError("the first record of a transaction without LOGCSN and TRANID")
    value, form = _csn(found["L"])
    restart = _csn(found["B"])[0] if "B" in found else 0
    return TransactionHeader(found["6"].decode(), Csn(value, form), io_time - JULIAN_EPOCH_MICROSECONDS, restart)


def transaction_headers(
    chunk: bytes, first: NDArray[np.int64], end: NDArray[np.int64], io_times: NDArray[np.uint64]
) -> list[TransactionHeader]:
    """Return the transactions of many records of a chunk; the usual tokens of PostgreSQL are decoded for all at once.

    Raises ValueError, with the record's number as its second argument, if one does not identify a transaction.
    """
    bounds = zip(first.tolist(), end.tolist(), io_times.tolist(), strict=True)
    found: list[TransactionHeader | None] = [None] * len(first)
    if len(first) > _FEW:
        with contextlib.suppress(UnicodeDecodeError):  # then decode one by one, so that the error names its record
            found = _usual_headers(chunk, first, end, io_times)
    for number, (low, high, time) in enumerate(bounds):
        if found[number] is None:
            try:
                found[number] = transaction_header(chunk, low, high, time)
            except ValueError as error:
                raise ValueError(str(error), number) from None
    return [header for header in found if header is not None]


def _usual_headers(
    chunk: bytes, first: NDArray[np.int64], end: NDArray[np.int64], io_times: NDArray[np.uint64]
) -> list[TransactionHeader | None]:
    """Decode LOGCSN, TRANID and optionally LOGBSN, in this order; None for each record with any other tokens."""
    raw = np.frombuffer(chunk, dtype=np.uint8)
    usual = end - first >= 4 + _LSN_TEXT + 4
    at = np.where(usual, first, 0)
    csn, good = _numbers(raw, at, _LSN_TOKEN)
    xid = at + 4 + _LSN_TEXT + 4
    usual &= good & (raw[xid - 4] == layout.TRANID) & (raw[xid - 3] == 0) & (raw[xid - 1] == 0)
    after = np.where(usual, xid + raw[xid - 2], end)
    restarts = usual & (end - after == 4 + _LSN_TEXT)
    restart, good = _numbers(raw, np.where(restarts, after, 0), _BSN_TOKEN)
    restarts &= good
    usual &= restarts | (after == end)
    rows = zip(
        usual.tolist(), csn.tolist(), xid.tolist(), after.tolist(), np.where(restarts, restart, 0).tolist(),
        (io_times.astype(np.int64) - JULIAN_EPOCH_MICROSECONDS).tolist(), strict=True,
    )  # fmt: skip
    return [
        TransactionHeader(chunk[low:high].decode(), Csn(value), time, back) if good else None
        for good, value, low, high, back, time in rows
    ]


def _numbers(
    raw: NDArray[np.uint8], place: NDArray[np.int64], token: bytes
) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Return the LSNs of the tokens at these places, and which places hold this token with a valid LSN text."""
    place = np.minimum(place, max(0, len(raw) - 4 - _LSN_TEXT))
    digits = _HEX[raw[place[:, None] + 4 + _DIGITS]]
    value = (digits[:, ::2] << 4 | digits[:, 1::2]).view(">u8").ravel().astype(np.uint64)
    heads = raw[place[:, None] + _FOUR].view("<u4").ravel() == int.from_bytes(token, "little")
    return value, heads & (digits < 16).all(axis=1) & (raw[place + 4 + 8] == _SLASH)


def _usual_tokens(chunk: bytes | memoryview, first: int, end: int) -> tuple[Csn, str, int] | None:
    """Decode LOGCSN, TRANID and LOGBSN as ggshell writes them for PostgreSQL, without building a dictionary."""
    xid = first + 4 + _LSN_TEXT + 4
    if xid > end or chunk[first : first + 4] != _LSN_TOKEN or chunk[xid - 4] != layout.TRANID or chunk[xid - 1]:
        return None
    after = xid + chunk[xid - 2]
    if after + 4 + _LSN_TEXT == end and chunk[after : after + 4] == _BSN_TOKEN:
        restart = _csn(bytes(chunk[after + 4 : end]))[0]
    elif after == end:
        restart = 0
    else:
        return None
    return Csn(*_csn(bytes(chunk[first + 4 : xid - 4]))), bytes(chunk[xid:after]).decode(), restart


def _csn(text: bytes) -> tuple[int, CsnForm]:
    """Return a CSN's value and form; parses LSNs without a regular expression, for speed."""
    if len(text) == _LSN_TEXT and text[8] == _SLASH:
        return int(text[:8], 16) << 32 | int(text[9:], 16), CsnForm.LSN
    return Csn.parse(text.decode())
