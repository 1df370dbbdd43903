"""One way through a trail file: record after record, forwards or backwards, past whatever damage there is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ggshell.logdump.filters import Candidate, Identity
from ggshell.record.operation import IoType, TransInd
from ggshell.trail.fileheader import decode_header
from ggshell.trail.look import LookedFile, Seen, Table
from ggshell.trail.markers import table_index
from ggshell.trail.record import Record

_ROWS_BEGIN = frozenset({int(TransInd.BEGIN), int(TransInd.SOLE)})
_RESTARTS = frozenset({int(IoType.RESTART_OK), int(IoType.RESTART_ABEND)})
_NO_ROWS = _RESTARTS | {int(IoType.METADATA)}
_NOBODY: Final = Identity("", "")
_HEADER_BYTES: Final = 40
_IO_TYPE_AT, _TRANS_IND_AT = 8 + 6, 8 + 28
"""Where a record's bytes hold these fields: behind the tokens G and H."""


class _Span(NamedTuple):
    """The part of a transaction that was walked through: from its first record to ``end``; ``open``: its end was not met."""

    begin: int
    end: int
    identity: Identity
    open: bool


class Walk:
    """Where reading stands.  ``place`` is where the next record begins (of a walk backwards: ends)."""

    def __init__(self, file: LookedFile, place: int = 0, *, backwards: bool = False) -> None:
        self.file = file
        self.place = place
        self.backwards = backwards
        self._span = _Span(0, 0, _NOBODY, open=False)

    def step(self) -> Seen | None:
        """The next record; None at the end.  Where no record stands it says so, and the place stays."""
        seen = self._before() if self.backwards else self.file.at(self.place)
        if seen is None or not seen.size:
            return seen
        self.place = seen.rba if self.backwards else seen.rba + seen.size
        if not self.backwards:
            self.file.step_tables(seen)
            self._note_transaction(seen)
        return seen

    def records(self) -> Iterator[Seen]:
        """Record after record, to the end or to the first place where none stands (which comes too)."""
        while (seen := self.step()) is not None:
            yield seen
            if not seen.size:
                return

    def candidate(self, seen: Seen) -> Candidate | None:
        """What filters are asked about; None for the file header and for bytes that cannot be taken apart."""
        if seen.record is None:
            return None
        return Candidate(seen.rba, seen.record, self.table_name(seen), lambda: self.identity(seen))

    def identity(self, seen: Seen) -> Identity:
        """Whose transaction a record is part of, which only the first record of it tells; empty where that is not known."""
        record = seen.record
        if record is None or not is_row(record):
            return _NOBODY
        if record.trans_ind in _ROWS_BEGIN:
            return _told(record)
        if not self._span.begin <= seen.rba < self._span.end:
            self._span = self._searched(seen)
        return self._span.identity

    def table(self, seen: Seen) -> Table | None:
        """What the file says of the record's table before the record."""
        if seen.record is None:
            return None
        index = seen.record.table_index
        return self.file.table(index, seen.rba) if index is not None else None

    def table_name(self, seen: Seen) -> str:
        record = seen.record
        if record is None:
            return ""
        found = self.table(seen)
        return found.name if found is not None else record.name

    def is_boundary(self, seen: Seen) -> bool:
        """Whether a record ends its transaction."""
        record = seen.record
        return record is not None and is_row(record) and record.trans_ind in (TransInd.END, TransInd.SOLE)

    def _before(self) -> Seen | None:
        begin = self.file.before(self.place)
        if begin is not None:
            return self.file.at(begin)
        return (
            Seen(self.place, b"", fault="the end of a record before this place")
            if self.place > self.file.first
            else None
        )

    def _note_transaction(self, seen: Seen) -> None:
        record, span = seen.record, self._span
        if record is None:
            return
        end = seen.rba + seen.size
        is_open = not is_row(record) or record.trans_ind not in (TransInd.END, TransInd.SOLE)
        if is_row(record) and record.trans_ind in _ROWS_BEGIN:
            self._span = _Span(seen.rba, end, _told(record), open=is_open)
        elif span.open and span.end == seen.rba and record.io_type not in _RESTARTS:
            self._span = span._replace(end=end, open=is_open)

    def _searched(self, seen: Seen) -> _Span:
        """The transaction of a record from its first record on, which stands somewhere before it."""
        place, file = seen.rba, self.file
        unknown = _Span(seen.rba, seen.rba + seen.size, _NOBODY, open=False)
        while (begin := file.before(place)) is not None and begin >= file.first:
            head = file.read(_HEADER_BYTES, begin)
            place = begin
            if head[_IO_TYPE_AT] in _NO_ROWS:
                if head[_IO_TYPE_AT] in _RESTARTS:
                    return unknown
            elif head[_TRANS_IND_AT] == TransInd.BEGIN:
                first = file.at(begin)
                told = _told(first.record) if first is not None and first.record is not None else _NOBODY
                return unknown._replace(begin=begin, identity=told)
            elif head[_TRANS_IND_AT] != TransInd.MIDDLE:
                return unknown
        return unknown._replace(begin=place, identity=_of_header(file)) if place == file.first else unknown


def _told(record: Record) -> Identity:
    tokens = record.tokens
    return Identity(tokens.get("6", b"").decode(errors="replace"), tokens.get("L", b"").decode(errors="replace"))


def _of_header(file: LookedFile) -> Identity:
    """The transaction that a file begins within, which its header names."""
    try:
        inside = decode_header(file.header).inside
    except ValueError:
        return _NOBODY
    return Identity(inside.xid, str(inside.csn)) if inside is not None else _NOBODY


def is_row(record: Record) -> bool:
    """Whether a record belongs to a transaction."""
    return record.io_type not in _NO_ROWS


def metadata_index(record: Record) -> int:
    """The table index that a metadata record announces, 0 for one of a database."""
    return table_index(record.audit_rba)
