"""The log of a real MySQL server, recorded with the statements of ``recorded/mysql_9_7.sql``: what only MySQL writes."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import NamedTuple

import pytest
from log_files import MAGIC, whole_events

from ggshell.clock import SystemClock
from ggshell.connectors.mysql.binlog import events
from ggshell.connectors.mysql.encode import encode_runs
from ggshell.connectors.mysql.log import LastRead, MysqlLog, TableRules
from ggshell.connectors.mysql.log_files import LogFile, log_files
from ggshell.errors import CaptureError
from ggshell.pipeline.capture.cache import TransactionCache
from ggshell.pipeline.capture.source import MessageRun
from ggshell.record.image import decode_image
from ggshell.record.operation import IoType

RECORDED = Path(__file__).with_name("recorded") / "mysql_9_7.binlog"


class FileWire:
    """Gives the events of a file at once, as a replication connection does."""

    pending = False

    def __init__(self, data: bytes) -> None:
        self.events = list(whole_events(data))

    def receive(self) -> list[bytes]:
        found, self.events = self.events, []
        return found


class Change(NamedTuple):
    """A row. ``values``: of the image, by the names of the columns; of an update, those that it has."""

    table: str
    operation: str
    values: dict[str, str | None]


class Transaction(NamedTuple):
    gtid: str
    changes: list[Change]


def transactions(data: bytes, folder: Path, warnings: list[str] | None = None) -> list[Transaction]:
    """The transactions that a log of MySQL has."""
    told = warnings if warnings is not None else []
    log = MysqlLog(
        FileWire(data),  # type: ignore[arg-type]
        TableRules(lambda name: name.owner == "recorded"),
        SystemClock(),
        0,
        1 << 32 | 4,
        LastRead(),
        {},
        lambda code, text: told.append(f"{code} {text}"),
    )
    cache, found = TransactionCache(1 << 30, folder), list[Transaction]()
    while not log.quiet:
        for committed in log.feed(cache, 10_000):
            chunks = committed.transaction.chunks
            runs = [MessageRun(committed.header, each, list(each.parts), begins=True, ends=True) for each in chunks]
            batch = encode_runs(runs)
            changes = list[Change]()
            for row in range(len(batch) if batch is not None else 0):
                assert batch is not None
                definition = batch.tables[batch.table[row]]
                values = {
                    definition.columns[index].name: None if value is None else value.decode()
                    for index, value in decode_image(batch.images(row)[1])
                }
                changes.append(Change(definition.name.name, IoType(batch.io_type[row]).name, values))
            found.append(Transaction(committed.header.xid, changes))
    return found


@pytest.fixture
def recorded(tmp_path: Path) -> list[Transaction]:
    return [each for each in transactions(RECORDED.read_bytes(), tmp_path) if each.changes]


EMPTY = {"doc": None, "other": None, "note": None}
DOCUMENT = '{"a": {"k": -1}, "b": [1, 2.5, true, null, "x"]}'
FIRST = {
    "id": "1", "big": "18446744073709551615", "price": "-1.25", "bits": "10101", "tags": "a,b", "size": "l",
    "seen": "2026-01-02 03:04:05.678901", "hidden": "7", "doubled": "2", "shape": "0101000000000000000000F03F0000000000000040",
    "place": "\\x0000803f000000bf", "name": "é", "data": "\\x00ff",
}  # fmt: skip
CHANGES = [
    (
        "3",
        [
            Change("kinds", "INSERT", FIRST),
            Change("kinds", "INSERT", {**dict.fromkeys(FIRST), "id": "2", "doubled": "4"}),
        ],
    ),
    (
        "5",
        [
            Change("docs", "INSERT", {"id": "1", "doc": DOCUMENT, "other": "[1, [2]]", "note": "n"}),
            Change("docs", "INSERT", {"id": "2", "doc": '"text"', "other": None, "note": None}),
        ],
    ),
    ("6", [Change("docs", "FIELD_COMP", {"id": "1", "doc": DOCUMENT.replace("2.5", '"two"'), "note": "m"})]),
    (
        "7",
        [
            Change(
                "docs",
                "FIELD_COMP",
                {"id": "1", "doc": '{"a": {"k": -1}, "b": ["two", true, null, "x"]}', "other": "[1, [9]]"},
            )
        ],
    ),
    (
        "8",
        [
            Change(
                "docs",
                "FIELD_COMP",
                {"id": "1", "doc": '{"a": {"k": 5}, "b": ["two", true, null, "x"], "new key": [1, "é"]}'},
            )
        ],
    ),
    (
        "9",
        [
            Change(
                "docs",
                "FIELD_COMP",
                {
                    "id": "1",
                    "doc": '{"a": {"k": 5}, "b": ["two", true, null, "x"], "c": 1, "new key": [1, "é"]}',
                    "note": None,
                },
            )
        ],
    ),
    ("10", [Change("docs", "FIELD_COMP", {"id": "2", "doc": None})]),
    (
        "11",
        [
            Change("docs", "INSERT", {"id": "3", **EMPTY, "note": "packed"}),
            Change("docs", "INSERT", {"id": "4", **EMPTY, "note": "packed"}),
            Change("docs", "DELETE", {"id": "3"}),
        ],
    ),
    ("tagged:1", [Change("docs", "INSERT", {"id": "5", **EMPTY})]),
    ("12", [Change("copies", "INSERT", {"id": "4", "note": "packed"})]),
    ("14", [Change("docs", "INSERT", {"id": "6", **EMPTY})]),
    ("15", [Change("docs", "INSERT", {"id": "7", **EMPTY})]),
    ("16", [Change("docs", "KEY_FIELD_COMP", {"id": "8", **EMPTY})]),
    ("17", [Change("copies", "PURGE_DATA", {})]),
]
"""The changes by the number of their transaction: types, partial documents, a packed transaction, a tagged one, a table made
from a query, both ways of XA, and a truncation."""


def test_changes_are_those_of_the_statements_that_were_recorded(recorded: list[Transaction]) -> None:
    found = [(each.gtid.partition(":")[2], each.changes) for each in recorded]
    assert found == CHANGES


def test_no_column_is_said_to_be_missing(tmp_path: Path) -> None:
    """Regression: MySQL sets the unused bits of the columns' bitmap, so every insert was reported as incomplete."""
    warnings: list[str] = []
    assert transactions(RECORDED.read_bytes(), tmp_path, warnings)
    assert warnings == []


def _rewritten(event: bytes, content: bytes) -> bytes:
    """An event with another content, its size and a valid checksum."""
    size = (events.HEADER_SIZE + len(content) + events.CHECKSUM_SIZE).to_bytes(4, "little")
    whole = event[:9] + size + event[13 : events.HEADER_SIZE] + content
    return whole + zlib.crc32(whole).to_bytes(4, "little")


def test_an_event_that_ends_too_early_is_refused_as_damaged(tmp_path: Path) -> None:
    """Regression: some raised an IndexError."""
    wire = FileWire(RECORDED.read_bytes())
    count = len(wire.events)
    for number in range(count):
        event = wire.events[number]
        content = event[events.HEADER_SIZE : -events.CHECKSUM_SIZE]
        for size in {0, 1, len(content) // 2, max(len(content) - 1, 0)}:
            changed = [*wire.events]
            changed[number] = _rewritten(event, content[:size])
            try:
                transactions(MAGIC + b"".join(changed), tmp_path)
            except CaptureError as error:
                assert error.code in (events.DAMAGED, events.UNSUPPORTED, "GGS-00473"), (number, size, error)


def _anonymous(event: bytes) -> bytes:
    """The event as it is in a log without GTIDs."""
    if event[4] != events.EventType.GTID:
        return event
    changed = event[:4] + bytes([events.EventType.ANONYMOUS_GTID]) + event[5:]
    return _rewritten(changed, changed[events.HEADER_SIZE : -events.CHECKSUM_SIZE])


def test_a_log_without_gtids_has_the_same_changes(tmp_path: Path, recorded: list[Transaction]) -> None:
    """Regression: with gtid_mode = OFF, DDL and TRUNCATE were never committed, and so left out."""
    changed = b"".join(map(_anonymous, FileWire(RECORDED.read_bytes()).events))
    found = transactions(MAGIC + changed, tmp_path)
    assert [each.changes for each in found if each.changes] == [each.changes for each in recorded]


class _Cursor(NamedTuple):
    """The answer to SHOW BINARY LOGS; also a connection that returns it."""

    rows: list[tuple[str, int, str]]

    def cursor(self) -> _Cursor:
        return self

    def __enter__(self) -> _Cursor:
        return self

    def __exit__(self, *_: object) -> None: ...

    def execute(self, statement: str, _: object) -> None: ...

    def fetchall(self) -> list[tuple[str, int, str]]:
        return self.rows


def test_the_positions_of_an_encrypted_file_begin_after_its_head() -> None:
    """Regression: the size was taken for the end of the log, so Extract began after it, and the server refused it."""
    cursor = _Cursor([("binlog.000001", 1788, "Yes"), ("binlog.000002", 1276, "No")])
    assert log_files(cursor) == [LogFile("binlog.000001", 1276), LogFile("binlog.000002", 1276)]  # type: ignore[arg-type]
