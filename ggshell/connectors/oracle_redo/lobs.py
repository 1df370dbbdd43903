"""Applies the LOB pieces that follow a row: which column of which row they change, and to what.

Pieces of the row that they follow become part of that row. Pieces of another row become an update of that column alone.
A column whose value the pieces do not produce is left out of its row and reported; it is never written as empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from ggshell.connectors.oracle_redo.definitions import folded
from ggshell.connectors.oracle_redo.literals import UNSUPPORTED, Value, any_value, value_end
from ggshell.connectors.oracle_redo.messages import CachedRow
from ggshell.connectors.oracle_redo.rows import Operation
from ggshell.connectors.oracle_redo.sql import ROWID, Pairs, parse_conditions, parse_insert, parse_update, unquoted
from ggshell.errors import CaptureError

Assigned = Mapping[bytes, Value]
NOTHING: Assigned = MappingProxyType({})
_XML = frozenset({Operation.XML_BEGIN, Operation.XML_WRITE, Operation.XML_END})
_Key = tuple[bytes, bytes, bytes, frozenset[tuple[bytes, Value]] | None]
"""Owner, table, column, and the conditions that find the row (None for the row that the pieces follow)."""


class OtherLob(NamedTuple):
    """A LOB of a row other than the one before its pieces."""

    locator: Locator
    piece: CachedRow
    assigned: Assigned


class _Target(NamedTuple):
    locator: Locator
    piece: CachedRow
    content: LobContent


class LobPieces:
    """The LOB pieces after one row, applied.

    ``of_row`` contains the columns of that row that the pieces change, with UNSUPPORTED for a column to be left out.
    """

    def __init__(
        self, row: CachedRow | None, pieces: list[CachedRow], problem: Callable[[str, str, str, str], None]
    ) -> None:
        self._row = row
        self._problem = problem
        self._values, self._assigned = _values_of(row) if row is not None and pieces else ({}, {})
        self._targets: dict[_Key, _Target] = {}
        self._active: _Target | None = None
        self._orphaned = False
        for piece in pieces:
            self._take(piece)
        self.of_row: Assigned = self._of_row() if pieces else NOTHING
        self.of_others: list[OtherLob] = self._of_others()

    def _take(self, piece: CachedRow) -> None:
        if piece.operation in _XML:
            self._orphan(piece, "XML that is logged in pieces is not supported")
            return
        try:
            steps = parse_lob(piece.redo)
        except CaptureError as error:
            reason = f"the SQL_REDO of operation {Operation(piece.operation).name} cannot be read"
            self._orphan(piece, reason, f" ({error.message})")
            return
        for step in steps:
            if isinstance(step, Locator):
                self._active = self._target(step, piece)
            elif self._active is None:
                self._orphan(piece, f"operation {Operation(piece.operation).name} does not name its column")
            else:
                self._active.content.apply(step)

    def _orphan(self, piece: CachedRow, reason: str, detail: str = "") -> None:
        """Report a lost piece. It belongs to the current column, or to any column that the row leaves empty."""
        self._problem(piece.owner, piece.table, reason, detail)
        if self._active is not None:
            self._active.content.lose()
        else:
            self._orphaned = True

    def _target(self, locator: Locator, piece: CachedRow) -> _Target:
        own = self._is_own(locator)
        key = (locator.owner, locator.table, locator.column, None if own else frozenset(locator.where))
        found = self._targets.get(key)
        if found is None:
            base = self._base(locator.column) if own else UNSUPPORTED
            found = self._targets[key] = _Target(locator, piece, LobContent(base))
        return found

    def _is_own(self, locator: Locator) -> bool:
        """Whether a locator refers to the row that the pieces follow."""
        row = self._row
        if row is None or (locator.owner.decode(), locator.table.decode()) != (row.owner, row.table):
            return False
        named = [(name, value) for name, value in locator.where if name != ROWID]
        compared = [(value, self._values[name]) for name, value in named if name in self._values]
        if any(value != held for value, held in compared):
            return False
        address = dict(locator.where).get(ROWID)
        return bool(compared) or address is None or address.decode() == row.row_id

    def _base(self, column: bytes) -> Value:
        """The value of a column before the pieces: empty for a new row, what the change assigned for a changed row."""
        unset = b"" if self._row is not None and self._row.operation == Operation.INSERT else UNSUPPORTED
        return self._assigned.get(column, unset)

    def _of_row(self) -> Assigned:
        found: dict[bytes, Value] = {}
        if self._orphaned:
            for column in [name for name, value in self._assigned.items() if value == b""]:
                found[column] = self._left_out(column)
        for (*_, column, where), target in self._targets.items():
            if where is None:
                value = target.content.value()
                found[column] = self._left_out(column) if value == UNSUPPORTED else value
        return found

    def _of_others(self) -> list[OtherLob]:
        found: list[OtherLob] = []
        for (*_, column, where), (locator, piece, content) in self._targets.items():
            if where is None:
                continue
            value = content.value()
            if value == UNSUPPORTED:
                self._left_out(column, piece)
            else:
                found.append(OtherLob(locator, piece, {column: value}))
        return found

    def _left_out(self, column: bytes, piece: CachedRow | None = None) -> Value:
        row = piece or self._row
        if row is not None:
            name = folded(column.decode("utf-8", "replace"))
            reason = f"LOB column {name} is omitted: the log does not contain its complete value"
            self._problem(row.owner, row.table, reason, "")
        return UNSUPPORTED


def _values_of(row: CachedRow) -> tuple[dict[bytes, Value], dict[bytes, Value]]:
    """The values of a row that are known after a change, and those that it assigned.

    Both are empty if the change cannot be read, which is reported elsewhere.
    """
    try:
        statement = parse_insert(row.redo) if row.operation == Operation.INSERT else parse_update(row.redo)
    except CaptureError:
        return {}, {}
    assigned = dict(statement.assigned)
    return {**dict(statement.where), **assigned}, assigned


# The value of a LOB, assembled from its pieces, and whether the log contains all of it.
#
# Offsets count UTF-16 code units of a text and bytes of a binary value. A value is known if it was known before the
# first piece (a new row's is empty), or if a trim sets its end and everything before that was written.


_LARGEST_GAP = 64 << 20
_BINARY, _TEXT = 1, 2
"""Bytes per unit."""


class LobContent:
    """The content of one LOB. ``base`` is its value before the first piece; UNSUPPORTED if that is not in the log."""

    def __init__(self, base: Value) -> None:
        self._base = base if base and base != UNSUPPORTED else b""
        self._unit = 0
        self._data = bytearray()
        self._spans: list[tuple[int, int]] = []
        self._length: int | None = None if base == UNSUPPORTED else 0
        self._lost = False
        if self._length is not None and self._base:
            self._open(_BINARY if self._base.startswith(b"\\x") else _TEXT)

    def lose(self) -> None:
        """Mark the value as unknown, because a piece cannot be read."""
        self._lost = True

    def apply(self, step: Write | Trim | Erase) -> None:
        """Apply the next piece."""
        if self._lost:
            return
        if isinstance(step, Write):
            self._write(step)
        elif isinstance(step, Trim):
            self._trim(step.length)
        else:
            self._erase(max(step.offset, 1) - 1, step.amount)

    def value(self) -> Value:
        """The whole value as in a trail; UNSUPPORTED if the pieces do not produce it."""
        if self._lost or self._length is None or not self._covered(self._length):
            return UNSUPPORTED
        data = bytes(self._data[: self._length * self._unit])
        if self._unit == _BINARY:
            return b"\\x" + data.hex().encode() if data else b""
        try:
            return data.decode("utf-16-be").encode()
        except UnicodeDecodeError:
            return UNSUPPORTED

    def _open(self, unit: int) -> None:
        """Set the kind of the value, which the first piece determines."""
        self._unit = unit
        if self._length is not None and self._base:
            try:
                self._data[:] = bytes.fromhex(self._base[2:].decode()) if unit == _BINARY else _units(self._base)
            except ValueError:
                self._lost = True
            self._length = len(self._data) // unit
            self._spans = [(0, self._length)]

    def _write(self, step: Write) -> None:
        unit = _BINARY if step.binary else _TEXT
        if not self._unit:
            self._open(unit)
        try:
            data = bytes.fromhex(step.data[2:].decode()) if step.binary else _units(step.data)
        except ValueError:
            data = b""
        if unit != self._unit or step.data == UNSUPPORTED or len(data) != step.amount * unit or not data:
            self._lost = True
            return
        self._put(max(step.offset, 1) - 1, data)

    def _put(self, start: int, data: bytes) -> None:
        unit, end = self._unit, start + len(data) // self._unit
        if start * unit > len(self._data) + _LARGEST_GAP:
            self._lost = True
            return
        if self._length is not None and start > self._length:
            self._spans.append((self._length, start))  # the database fills the gap
        self._reach(start)
        self._data[start * unit : end * unit] = data
        self._spans.append((start, end))
        if self._length is not None:
            self._length = max(self._length, end)

    def _reach(self, end: int) -> None:
        """Extend the data to an offset, filled as the database fills what was not written."""
        missing = end * self._unit - len(self._data)
        if missing > 0:
            self._data += bytes(missing) if self._unit == _BINARY else b"\0 " * (missing // _TEXT)

    def _trim(self, length: int) -> None:
        if self._length is not None and length > self._length:
            self._lost = True  # the database refuses that, so something before it is missing
            return
        self._length = length
        self._spans = [(first, min(end, length)) for first, end in self._spans if first < length]
        del self._data[length * (self._unit or 1) :]

    def _erase(self, start: int, amount: int) -> None:
        """Blank a range. Only existing data is blanked.

        If the end of the value is not known, it is known to reach at least to the last written unit.
        """
        least = max((end for _, end in self._spans), default=0)
        end = min(start + amount, self._length) if self._length is not None else start + amount
        if end <= start:
            return
        if not self._unit or (self._length is None and end > least):
            self._lost = True
        else:
            self._put(start, bytes(end - start) if self._unit == _BINARY else b"\0 " * (end - start))

    def _covered(self, length: int) -> bool:
        place = 0
        for first, end in sorted(self._spans):
            if first > place:
                return False
            place = max(place, end)
        return place >= length


def _units(text: bytes) -> bytes:
    return text.decode().encode("utf-16-be")


# The SQL_REDO of LOB pieces: PL/SQL that selects a locator, then writes, trims or erases.
#
# A row contains a whole block (``DECLARE … BEGIN select "C" into loc_c from "S"."T" where … for update; … END;``) or
# a part of one: one row has the locator (SELECT_LOB_LOCATOR), and the following rows have the operations on it, such
# as ``buf_c := 'text'; dbms_lob.write(loc_c, 4, 1, buf_c);``.


_NAME = rb'"((?:[^"]|"")*)"'
_DECLARE = re.compile(rb"\s*DECLARE\b[^'\"]*?\bBEGIN\b", re.IGNORECASE)
_SELECT = re.compile(
    rb"\s*select\s+(?:\w+\.)?"
    + _NAME
    + rb"\s+into\s+\w+\s+from\s+"
    + _NAME
    + rb"\s*\.\s*"
    + _NAME
    + rb"(?:\s+(?!where\b|for\b)\w+)?",
    re.IGNORECASE,
)
_WHERE = re.compile(rb"\s+where\s+", re.IGNORECASE)
_FOR_UPDATE = re.compile(rb"\s+for\s+update\s*;", re.IGNORECASE)
_ASSIGN = re.compile(rb"\s*(\w+)\s*:=\s*", re.IGNORECASE)
_SEMICOLON = re.compile(rb"\s*;")
_CALL = re.compile(rb"\s*dbms_lob\s*\.\s*(write|trim|erase)\s*\(([^()'\"]*)\)\s*;", re.IGNORECASE)
_OTHER = re.compile(
    rb"\s*(?![^;]*dbms_lob\s*\.\s*(?!(?:open|close|isopen|lob_read\w+)\b))(?:[^;'\"]*;|END\b\s*;?)", re.IGNORECASE
)
_REST = re.compile(rb"\s*\Z")


class Locator(NamedTuple):
    """The LOB of one row: its table and column by Oracle's names, and the conditions that find the row."""

    owner: bytes
    table: bytes
    column: bytes
    where: Pairs


class Write(NamedTuple):
    """Writes data. ``offset`` (from 1) and ``amount`` count characters of a text and bytes of a binary value."""

    data: bytes
    binary: bool
    amount: int
    offset: int


class Trim(NamedTuple):
    """Cuts the value after ``length``."""

    length: int


class Erase(NamedTuple):
    """Overwrites with blanks, or with zeros in a binary value, from ``offset`` on."""

    amount: int
    offset: int


Step = Locator | Write | Trim | Erase


def parse_lob(sql: bytes) -> list[Step]:
    """The steps of a LOB piece, in order. Raises CaptureError if it is not valid."""
    return list(_steps(sql))


def _steps(sql: bytes) -> Iterator[Step]:
    place = 0
    values: dict[bytes, tuple[bytes, bool]] = {}
    while _REST.match(sql, place) is None:
        if (match := _DECLARE.match(sql, place)) is not None:
            place = match.end()
        elif (match := _SELECT.match(sql, place)) is not None:
            locator, place = _locator(sql, match)
            yield locator
        elif (match := _CALL.match(sql, place)) is not None:
            yield _call(sql, match, values)
            place = match.end()
        elif (match := _ASSIGN.match(sql, place)) is not None and (end := _assigned(sql, match, values)) >= 0:
            place = end
        elif (match := _OTHER.match(sql, place)) is not None:
            place = match.end()
        else:
            raise unreadable(sql, place)


def _locator(sql: bytes, head: re.Match[bytes]) -> tuple[Locator, int]:
    where: Pairs = []
    place = head.end()
    if (match := _WHERE.match(sql, place)) is not None:
        where, place = parse_conditions(sql, match.end())
    end = _FOR_UPDATE.match(sql, place)
    if end is None:
        raise unreadable(sql, place)
    column, owner, table = map(unquoted, head.groups())
    return Locator(owner, table, column, where), end.end()


def _assigned(sql: bytes, head: re.Match[bytes], values: dict[bytes, tuple[bytes, bool]]) -> int:
    """Record the value that a variable is set to. Returns the offset after it, or -1 if it is not a value."""
    end = value_end(sql, head.end())
    after = _SEMICOLON.match(sql, end) if end >= 0 else None
    if after is None:
        return -1
    token = sql[head.end() : end]
    values[head[1].lower()] = any_value(token) or b"", token.lstrip()[:8].upper() == b"HEXTORAW"
    return after.end()


def _call(sql: bytes, match: re.Match[bytes], values: dict[bytes, tuple[bytes, bool]]) -> Step:
    name, given = match[1].lower(), [part.strip() for part in match[2].split(b",")]
    try:
        if name == b"trim":
            return Trim(int(given[1]))
        if name == b"erase":
            return Erase(_number(given[1], values), int(given[2]))
        data, binary = values[given[3].lower()]
        return Write(data, binary, _number(given[1], values), int(given[2]))
    except (KeyError, IndexError, ValueError):
        raise unreadable(sql, match.start()) from None


def _number(text: bytes, values: dict[bytes, tuple[bytes, bool]]) -> int:
    return int(text if text.isdigit() else values[text.lower()][0])


def unreadable(sql: bytes, place: int) -> CaptureError:
    """The error for a statement that cannot be read from an offset on."""
    text = sql[:200].decode("utf-8", "replace")
    return CaptureError(f"SQL_REDO cannot be read at byte {place}: {text}", code="GGS-00521")
