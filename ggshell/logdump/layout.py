"""Format Logdump's results as text, in the layouts that public listings show."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ggshell.errors import TrailError
from ggshell.logdump.answers import (
    Answer,
    Counted,
    Differences,
    Dumped,
    Facts,
    FilterList,
    LargeTransactions,
    Lines,
    Lost,
    RecordTypes,
    Shown,
    Tally,
)
from ggshell.logdump.display import Display, Level
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.trail import iotypes
from ggshell.trail.header_tokens import HeaderGroup
from ggshell.trail.record import Columns, Record
from ggshell.types import quote

RULE = "_" * 67
ROW_BYTES = 20
_PLACES = "bmes"
_TOKEN_NAMES = {
    "L": "LOGCSN",
    "6": "TRANID",
    "B": "LOGBSN",
    "C": "CHECKSUM",
    "R": "ORAROWID",
    "t": "ORATAG",
    "D": "DDL",
}
_FILTER_TITLES = {"RECTYPE": "Rectypes", "HEX": "HEX", "CSN": "CSN"}
_OUTER = {
    0x47: "Record Header",
    0x48: "GHDR",
    0x44: "Data",
    0x54: "GGS Tokens",
    0x55: "User Tokens",
    0x5A: "Record Trailer",
}


def text(answer: Answer, display: Display) -> str:
    """Return a result as text."""
    return "".join(f"{line}\n" for line in _LAYOUTS[type(answer)](answer, display))


def _lines(answer: Lines, display: Display) -> Iterator[str]:
    yield from answer.lines


def _facts(answer: Facts, display: Display) -> Iterator[str]:
    width = max([24, *(len(name) + 1 for name, _ in answer.pairs)])
    yield from (f"{name:<{width}}: {value}" for name, value in answer.pairs)


def _lost(answer: Lost, display: Display) -> Iterator[str]:
    yield f"Bad record found at RBA {answer.rba} of {answer.file.path}: expected {answer.expected}"
    yield "SCANFORHEADER finds the next good record"


def _differences(answer: Differences, display: Display) -> Iterator[str]:
    if not answer.found:
        yield f"The records at RBA {answer.first} and {answer.second} are equal"
        return
    yield f"{'':<20}{f'RBA {answer.first}':<40}RBA {answer.second}"
    yield from (f"{name:<20}{left:<39} {right}" for name, left, right in answer.found)


def _large(answer: LargeTransactions, display: Display) -> Iterator[str]:
    yield f"{'XID':<34}{'Records':>12}{'Bytes':>16}{'RBA':>16}"
    yield from (f"{each.xid or '?':<34}{each.records:>12}{each.size:>16}{each.rba:>16}" for each in answer.transactions)


def _record_types(answer: RecordTypes, display: Display) -> Iterator[str]:
    yield from (f"{number:>4} - {name}" for number, name in answer.types)


def _filters(answer: FilterList, display: Display) -> Iterator[str]:
    filters = answer.filters
    yield f"Data filters are {'ENABLED' if filters.enabled else 'DISABLED'}"
    for name, side in (("Include", filters.include), ("Exclude", filters.exclude)):
        yield f"{name}  Match {'ALL' if side.match_all else 'ANY'}"
        met: Counter[str] = Counter()
        for each in side.filters:
            title = _FILTER_TITLES.get(each.subject, each.subject.capitalize())
            title = title if each.subject == "RECTYPE" else f"{title}-{met[each.subject]}"
            yield f"{title:<11}: {each.text}"
            if each.more:
                yield f" {each.more}"
            met[each.subject] += 1


def _dumped(answer: Dumped, display: Display) -> Iterator[str]:
    yield f"{len(answer.data)} bytes from RBA {answer.rba}"
    yield from hex_rows(answer.data, len(answer.data))


def hex_rows(data: bytes, limit: int) -> Iterator[str]:
    """Format bytes in rows of 20, in pairs, followed by their ASCII characters."""
    for start in range(0, min(len(data), limit), ROW_BYTES):
        row = data[start : min(start + ROW_BYTES, limit)]
        letters = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        yield f" {row.hex(' ', -2):<49} | {letters}"


def _shown(answer: Shown, display: Display) -> Iterator[str]:
    seen = answer.seen
    if seen.fault:
        yield f"*** Damaged record at RBA {seen.rba} of {answer.file.path}: expected {seen.fault} ***"
    if seen.is_header:
        yield from _header_record(answer, display)
        return
    record = seen.record
    if record is None:
        yield from hex_rows(seen.data, display.record_length)
        return
    if display.header_tokens is not Level.OFF:
        yield from _outer_tokens(seen.data, display)
    if display.ghdr:
        yield RULE
        yield from _ghdr(record, display)
        yield ""
    yield from _summary(answer, record, display)
    if display.ggs_tokens is not Level.OFF and record.tokens:
        yield from _tokens(record, display)
    if display.user_tokens is not Level.OFF:
        yield from _user_tokens(record, display)
    yield ""


def _summary(answer: Shown, record: Record, display: Display) -> Iterator[str]:
    kind = iotypes.io_type_name(record.io_type)
    yield f"{display.time(record.io_time)} {kind:<20} Len {len(record.data):>5} RBA {answer.seen.rba}"
    name, index = answer.table.name if answer.table is not None else record.name, record.table_index
    if record.io_type == IoType.METADATA:
        yield f"Table Name: {name}"
    else:
        yield f"Name: {name}" + (f"  (TDR Index: {index})" if index is not None else "")
    if record.io_type == IoType.METADATA:
        if answer.table is None and (display.metadata is Level.MORE or display.sql_format):
            yield from _definition(answer, display)
        yield from _bytes(record.data, display)
        return
    if record.io_type in (IoType.RESTART_OK, IoType.RESTART_ABEND):
        return
    if record.io_type == IoType.COMMENT:
        yield record.data.decode("utf-8", "replace")
        return
    place = f"G  {_PLACES[record.trans_ind]}" if record.trans_ind < len(_PLACES) else ""
    side = "Before" if record.before_after == "B" else "After "
    yield f"{f'{side} Image:':<56}  Partition x{record.partition:02x}   {place}"
    yield from _image(answer, record, display)


def _image(answer: Shown, record: Record, display: Display) -> Iterator[str]:
    try:
        if record.io_type == IoType.DDL:
            yield from _ddl(record, display)
            return
        before, after = record.before_columns(), record.columns()
    except TrailError:
        yield from _bytes(record.data, display)
        return
    if display.detail is Level.OFF:
        yield from _bytes(record.data, display)
        return
    if before:
        yield f"Before values: {len(before)} columns"
        yield from _columns(before, display)
        yield "After values:"
    yield from _columns(after, display)


def _ddl(record: Record, display: Display) -> Iterator[str]:
    """Return the pairs of a DDL record, each with its name; the statement comes last. Raises TrailError."""
    pairs = record.ddl()
    if display.detail is Level.OFF:
        yield from _bytes(record.data, display)
        return
    for name, value in pairs.items():
        first, *more = value.splitlines() or [""]
        yield f"{name:<10}: {first}"
        yield from (f"{'':<10}  {line}" for line in more)
    if display.detail is Level.MORE:
        yield from hex_rows(record.data, display.record_length)


def _columns(columns: Columns, display: Display) -> Iterator[str]:
    for index, value in columns:
        content = b"\xff\xff" if value is None else b"\0\0" + value
        yield f"Column {index} (0x{index:04x}), Length {len(content)} (0x{len(content):04x})."
        if display.detail is Level.MORE:
            yield from hex_rows(content, display.record_length)


def _bytes(data: bytes, display: Display) -> Iterator[str]:
    if display.dump:
        yield from hex_rows(data, display.record_length)


def _definition(answer: Shown, display: Display) -> Iterator[str]:
    from ggshell.trail.inspection import definition_of

    found = definition_of(answer.file, answer.seen)
    if found is None:
        return
    if display.sql_format:
        yield from _statement(found)
        return
    yield from definition_lines(found)


def _statement(table: TableDefinition) -> Iterator[str]:
    """Return a statement that creates the table (METADATA SQLFORMAT)."""
    yield f"CREATE TABLE {quote(table.name.owner)}.{quote(table.name.name)} ("
    parts = [f"{quote(column.name)} {column.type_name}" for column in table.columns]
    if table.key:
        parts.append(f"PRIMARY KEY ({', '.join(quote(table.columns[index].name) for index in table.key)})")
    yield from (f"    {part}{',' if number < len(parts) else ''}" for number, part in enumerate(parts, 1))
    yield ");"


def _ghdr(record: Record, display: Display) -> Iterator[str]:
    def letter(value: int | str) -> str:
        shown = value if isinstance(value, str) else chr(value)
        return shown if " " < shown <= "~" else "."

    def pair(left: tuple[str, str, str], right: tuple[str, str, str]) -> str:
        (one, first, one_hex), (two, second, two_hex) = left, right
        return f"{one:<11}: {first:>5}  {one_hex:<10}{two:<11}: {second:>5}  {two_hex}".rstrip()

    yield pair(
        ("Hdr-Ind", record.hdr_ind, f"(x{ord(record.hdr_ind):02x})"),
        ("Partition", letter(record.partition), f"(x{record.partition:02x})"),
    )
    yield pair(
        ("UndoFlag", letter(record.undo_flag), f"(x{record.undo_flag:02x})"),
        ("BeforeAfter", record.before_after, f"(x{ord(record.before_after):02x})"),
    )
    yield (
        f"{'RecLength':<11}: {record.rec_length:>5}  {f'(x{record.rec_length:04x})':<10}{'IO Time':<11}: "
        f"{display.time(record.io_time)}"
    )
    yield pair(
        ("IOType", str(record.io_type), f"(x{record.io_type:02x})"),
        ("OrigNode", str(record.orig_node), f"(x{record.orig_node:02x})"),
    )
    yield pair(
        ("TransInd", letter(record.trans_ind), f"(x{record.trans_ind:02x})"),
        ("FormatType", record.format_type, f"(x{ord(record.format_type):02x})"),
    )
    yield pair(
        ("SyskeyLen", str(record.syskey_len), f"(x{record.syskey_len:02x})"),
        ("Incomplete", letter(record.incomplete), f"(x{record.incomplete:02x})"),
    )
    if record.io_type == IoType.METADATA:
        indexes = f"({record.audit_rba & 0xFFFF:03d}, {record.audit_rba >> 16:03d})"
        yield f"DDR/TDR index:   {indexes}     AuditPos   : {record.audit_pos}"
    else:
        yield f"{'AuditRBA':<11}: {record.audit_rba:>10}       AuditPos   : {record.audit_pos}"
    yield pair(
        ("Continued", "Y" if record.continued else "N", f"(x{record.continued:02x})"),
        ("RecCount", str(record.rec_count), f"(x{record.rec_count:02x})"),
    )


def _token_line(identity: int, name: str, info: int, length: int) -> str:
    letter = chr(identity) if 0x20 < identity < 0x7F else "."
    return f"TokenID x{identity:02x} '{letter}' {name:<16} Info x{info:02x}  Length {length:>4}"


def _outer_tokens(data: bytes, display: Display) -> Iterator[str]:
    size = int.from_bytes(data[2:4], "little")
    order = "little" if size == len(data) else "big"
    yield _token_line(data[0], _OUTER[0x47], data[1], len(data))
    place = 4
    while place + 4 <= len(data) - 4:
        length = int.from_bytes(data[place + 2 : place + 4], order)  # type: ignore[arg-type]
        yield _token_line(data[place], _OUTER.get(data[place], ""), data[place + 1], length)
        if display.header_tokens is Level.MORE:
            yield from hex_rows(data[place + 4 : place + 4 + length], display.record_length)
        place += 4 + length
    yield _token_line(data[-4], _OUTER[0x5A], data[-3], len(data))


def _tokens(record: Record, display: Display) -> Iterator[str]:
    yield ""
    yield "GGS tokens:"
    for name, value in record.tokens.items():
        yield _token_line(ord(name), _TOKEN_NAMES.get(name, ""), 0, len(value))
        if display.ggs_tokens is Level.MORE:
            yield from hex_rows(value, display.record_length)


def _user_tokens(record: Record, display: Display) -> Iterator[str]:
    yield f"User tokens: {len(record.user_tokens):>4} bytes"
    try:
        named = record.named_user_tokens()
    except TrailError:  # another producer's format, or damaged: shown as bytes
        yield from hex_rows(record.user_tokens, display.record_length)
        return
    for name, value in named.items():
        shown = value.decode(errors="backslashreplace") if display.user_tokens is Level.MORE else f"{len(value)} bytes"
        yield f"{name:<20}: {shown}"


def _header_record(answer: Shown, display: Display) -> Iterator[str]:
    seen = answer.seen
    if display.file_header is not Level.OFF:
        for group in answer.file.groups:
            yield from _group(group, display)
        yield ""
    yield f"{display.time(None):>27} {iotypes.FILE_HEADER:<20} Len {seen.size:>5} RBA {seen.rba}"
    yield "Name: *FileHeader*"
    yield from _bytes(seen.data, display)
    yield ""


def _group(group: HeaderGroup, display: Display) -> Iterator[str]:
    yield _token_line(group.identity, group.name, group.info, group.length).replace("TokenID", "GroupID")
    for token in group.tokens:
        yield _token_line(token.identity, token.name, token.info, len(token.value))
        if display.file_header is Level.MORE:
            yield from hex_rows(token.value, display.record_length)


def _counted(answer: Counted, display: Display) -> Iterator[str]:
    for interval in answer.intervals:
        yield f"Interval from {display.time(interval.begin)[:-4]} to {display.time(interval.end)[:-4]}, "
        yield from _tally(interval.tally, "Recs")
        yield ""
    name = answer.files[0] if len(answer.files) == 1 else f"{answer.files[0]} to {answer.files[-1]}"
    yield f"LogTrail {name} has {answer.total.records} records "
    yield from _tally(answer.total, "")
    yield f"Before Images   {answer.total.images.get('Before', 0):>18}"
    yield f"After Images    {answer.total.images.get('After', 0):>18}"
    yield ""
    if answer.transactions:
        yield f"Average of {answer.transactions} Transactions "
        yield f"    Bytes/Trans ..... {answer.transaction_bytes // answer.transactions:>10} "
        yield f"    Records/Trans ... {answer.transaction_records // answer.transactions:>10} "
        yield f"    Files/Trans ..... {answer.transaction_tables // answer.transactions:>10} "
    if answer.detail:
        for table, tally in answer.tables.items():
            yield ""
            yield f"{table:<52}"
            yield from _tally(tally, "Records")
    for lost in answer.damaged:
        yield f"*** Damage at RBA {lost.rba} of {lost.file.path}: expected {lost.expected} ***"


def _tally(tally: Tally, first: str) -> Iterator[str]:
    if first:
        yield f"{first:<16}{tally.records:>18}"
    yield f"Total Data Bytes{tally.size:>18}"
    yield f"  Avg Bytes/Record{tally.average:>16}"
    for kind, number in sorted(tally.types.items()):
        yield f"{'Metadata Records' if kind == 'Metadata' else kind:<16}{number:>18}"


_LAYOUTS: dict[type, Callable[[Any, Display], Iterator[str]]] = {
    Lines: _lines,
    Facts: _facts,
    Shown: _shown,
    Lost: _lost,
    Differences: _differences,
    Counted: _counted,
    LargeTransactions: _large,
    FilterList: _filters,
    RecordTypes: _record_types,
    Dumped: _dumped,
}


# A table's definition as Logdump lists it: a legend of numbered properties, then one line per column.
#
# ggshell's trails store values as text, so most lengths are lengths of texts. The last property, Remarks, is the type
# in the source database.


_LEGEND = """\
*
 1)Name          2)Data Type        3)External Length  4)Fetch Offset      5)Scale         6)Level
 7)Null          8)Bump if Odd      9)Internal Length 10)Binary Length    11)Table Length 12)Most Sig DT
13)Least Sig DT 14)High Precision  15)Low Precision   16)Elementary Item  17)Occurs       18)Key Column
19)Sub DataType 20)Native DataType 21)Character Set   22)Character Length 23)LOB Type     24)Partial Type
25)Remarks
*
TDR version: 11"""
_WIDTHS = (5, 7, 9, 3, 3, 2, 2, 7, 7, 7, 2, 2, 2, 2, 2, 5, 2, 4, 5, 9, 7, 2, 2)
_LENGTH = re.compile(r"\((\d+)")


class _Type(NamedTuple):
    """A data type: its number, its length as text and in the record, and the bytes that the record adds."""

    number: int
    external: int
    internal: int
    added: int


_INTEGER, _TIME = _Type(134, 23, 8, 3), _Type(192, 26, 26, 3)
_KNOWN = (("int", _INTEGER), ("bigint", _INTEGER), ("smallint", _INTEGER), ("timestamp", _TIME))


def definition_lines(table: TableDefinition) -> Iterator[str]:
    """Return the lines of the listing."""
    yield from _LEGEND.splitlines()
    yield f"Definition for table {table.name.owner}.{table.name.name}"
    rows: list[str] = []
    offset, width = 0, max((len(column.name) for column in table.columns), default=0)
    for index, column in enumerate(table.columns):
        found = _type_of(column)
        rows.append(_row(column, found, offset, width, key=index in table.key))
        offset += found.internal + found.added
    yield f"Record Length: {offset}"
    yield f"Columns: {len(table.columns)}"
    yield from rows
    yield "End of definition"


def _type_of(column: Column) -> _Type:
    name = column.type_name.lower()
    for begin, known in _KNOWN:
        if name.startswith(begin) and not name.startswith("interval"):
            return known
    length = _characters(column)
    return _Type(64, length, length, 5)


def _characters(column: Column) -> int:
    match = _LENGTH.search(column.type_name)
    return int(match[1]) if match is not None else 0


def _row(column: Column, found: _Type, offset: int, width: int, *, key: bool) -> str:
    text = found.number == 64
    numbers = (
        *(found.number, found.external, offset, 0, 0, int(column.nullable), 0),
        *(found.internal, found.internal, 0 if text or found is _TIME else found.internal),
        *(0, 0, 0, 0, 1, 0, int(key), 0, column.type_id, -1, _characters(column) if text else 0, 0, 0),
    )
    cells = "".join(f"{number:>{size}}" for number, size in zip(numbers, _WIDTHS, strict=True))
    return f"{column.name:<{width}}{cells} {column.type_name}"
