"""Walk through a trail file record by record, forwards or backwards, and identify each record's transaction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ggshell.logdump.filters import FilterCandidate, Identity
from ggshell.record.operation import IoType, TransInd
from ggshell.trail.fileheader import decode_header
from ggshell.trail.inspection import InspectedFile, InspectedRecord, InspectedTable
from ggshell.trail.markers import table_index
from ggshell.trail.record import Record

BEGINNINGS: Final = frozenset({int(TransInd.BEGIN), int(TransInd.SOLE)})
"""The transaction indicators of a row that begins a transaction."""
_RESTARTS = frozenset({int(IoType.RESTART_OK), int(IoType.RESTART_ABEND)})
_NO_ROWS = _RESTARTS | {int(IoType.METADATA), int(IoType.COMMENT)}
_NOBODY: Final = Identity("", "")
_HEADER_BYTES: Final = 40
_IO_TYPE_AT, _TRANS_IND_AT = 8 + 6, 8 + 28
"""The offsets of these fields in a record, after the tokens G and H."""


class _Span(NamedTuple):
    """The part of a transaction that was read: from its first record to ``end``; ``open``: its end was not reached."""

    begin: int
    end: int
    identity: Identity
    open: bool


class Walk:
    """The state of a walk. ``place`` is where the next record begins; in a backward walk, where it ends."""

    def __init__(self, file: InspectedFile, place: int = 0, *, backwards: bool = False) -> None:
        self.file = file
        self.place = place
        self.backwards = backwards
        self._span = _Span(0, 0, _NOBODY, open=False)

    def step(self) -> InspectedRecord | None:
        """Return the next record; None at the end.

        At a place without a valid record, the result has size 0 and says what was expected; the place then stays the same."""
        seen = self._before() if self.backwards else self.file.at(self.place)
        if seen is None or not seen.size:
            return seen
        self.place = seen.rba if self.backwards else seen.rba + seen.size
        if not self.backwards:
            self.file.step_tables(seen)
            self._note_transaction(seen)
        return seen

    def records(self) -> Iterator[InspectedRecord]:
        """Yield the records up to the end, or up to and including the first place without a valid record."""
        while (seen := self.step()) is not None:
            yield seen
            if not seen.size:
                return

    def candidate(self, seen: InspectedRecord) -> FilterCandidate | None:
        """Return a record for the filters; None for the file header and for bytes that cannot be decoded."""
        if seen.record is None:
            return None
        return FilterCandidate(seen.rba, seen.record, self.table_name(seen), lambda: self.identity(seen))

    def identity(self, seen: InspectedRecord) -> Identity:
        """Return a record's transaction, which only its first record identifies; empty if not known."""
        record = seen.record
        if record is None or not is_row(record):
            return _NOBODY
        if record.trans_ind in BEGINNINGS:
            return _identity_of(record)
        if not self._span.begin <= seen.rba < self._span.end:
            self._span = self._searched(seen)
        return self._span.identity

    def table(self, seen: InspectedRecord) -> InspectedTable | None:
        """Return the record's table, as defined in the file before the record."""
        if seen.record is None:
            return None
        index = seen.record.table_index
        return self.file.table(index, seen.rba) if index is not None else None

    def table_name(self, seen: InspectedRecord) -> str:
        record = seen.record
        if record is None:
            return ""
        found = self.table(seen)
        return found.name if found is not None else record.name

    def is_boundary(self, seen: InspectedRecord) -> bool:
        """Whether a record ends its transaction."""
        record = seen.record
        return record is not None and is_row(record) and record.trans_ind in (TransInd.END, TransInd.SOLE)

    def _before(self) -> InspectedRecord | None:
        begin = self.file.before(self.place)
        if begin is not None:
            return self.file.at(begin)
        return (
            InspectedRecord(self.place, b"", fault="the end of a record before this position")
            if self.place > self.file.first
            else None
        )

    def _note_transaction(self, seen: InspectedRecord) -> None:
        record, span = seen.record, self._span
        if record is None:
            return
        end = seen.rba + seen.size
        is_open = not is_row(record) or record.trans_ind not in (TransInd.END, TransInd.SOLE)
        if is_row(record) and record.trans_ind in BEGINNINGS:
            self._span = _Span(seen.rba, end, _identity_of(record), open=is_open)
        elif span.open and span.end == seen.rba and record.io_type not in _RESTARTS:
            self._span = span._replace(end=end, open=is_open)

    def _searched(self, seen: InspectedRecord) -> _Span:
        """Search backwards for the first record of a record's transaction."""
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
                identity = _identity_of(first.record) if first is not None and first.record is not None else _NOBODY
                return unknown._replace(begin=begin, identity=identity)
            elif head[_TRANS_IND_AT] != TransInd.MIDDLE:
                return unknown
        return unknown._replace(begin=place, identity=_of_header(file)) if place == file.first else unknown


def _identity_of(record: Record) -> Identity:
    tokens = record.tokens
    return Identity(tokens.get("6", b"").decode(errors="replace"), tokens.get("L", b"").decode(errors="replace"))


def _of_header(file: InspectedFile) -> Identity:
    """Return the transaction that continues from the previous file, from the file's header."""
    try:
        inside = decode_header(file.header).inside
    except ValueError:
        return _NOBODY
    return Identity(inside.xid, str(inside.csn)) if inside is not None else _NOBODY


def is_row(record: Record) -> bool:
    """Whether a record is a row (or a fragment of one) and so belongs to a transaction."""
    return record.io_type not in _NO_ROWS


def metadata_index(record: Record) -> int:
    """Return the table index in a Metadata record; 0 for the record of a database."""
    return table_index(record.audit_rba)
