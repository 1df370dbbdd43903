"""One way through a trail file: record after record, forwards or backwards, past whatever damage there is."""

from __future__ import annotations

from collections.abc import Iterator

from ggshell.logdump.filters import Candidate
from ggshell.record import IoType, TransInd
from ggshell.trail.look import LookedFile, Seen, Table
from ggshell.trail.markers import table_index
from ggshell.trail.record import Record

_ROWS_BEGIN = frozenset({int(TransInd.BEGIN), int(TransInd.SOLE)})
_NO_ROWS = frozenset({int(IoType.METADATA), int(IoType.RESTART_OK), int(IoType.RESTART_ABEND)})


class Walk:
    """Where reading stands.  ``place`` is where the next record begins (of a walk backwards: ends)."""

    def __init__(self, file: LookedFile, place: int = 0, *, backwards: bool = False) -> None:
        self.file = file
        self.place = place
        self.backwards = backwards
        self.xid = self.csn = ""

    def step(self) -> Seen | None:
        """The next record; None at the end.  Where no record stands it says so, and the place stays."""
        seen = self._before() if self.backwards else self.file.at(self.place)
        if seen is None or not seen.size:
            return seen
        self.place = seen.rba if self.backwards else seen.rba + seen.size
        if not self.backwards:
            self.file.step_tables(seen)
        if seen.record is not None:
            self._note_transaction(seen.record)
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
        return Candidate(seen.rba, seen.record, self.table_name(seen), self.xid, self.csn)

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

    def _note_transaction(self, record: Record) -> None:
        if is_row(record) and record.trans_ind in _ROWS_BEGIN:
            self.xid = record.tokens.get("6", b"").decode(errors="replace")
            self.csn = record.tokens.get("L", b"").decode(errors="replace")


def is_row(record: Record) -> bool:
    """Whether a record belongs to a transaction."""
    return record.io_type not in _NO_ROWS


def metadata_index(record: Record) -> int:
    """The table index that a metadata record announces, 0 for one of a database."""
    return table_index(record.audit_rba)
