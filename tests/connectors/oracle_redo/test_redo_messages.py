"""Redo that cannot be captured is reported; anything that would be lost silently ends capture."""

from __future__ import annotations

from pathlib import Path

import pytest
from redo_reading import capturing, collect, read_all

from ggshell.demo.redo_writer import RedoChange, RedoWriter
from ggshell.errors import CaptureError
from ggshell.types import LogPosition, TableName

Messages = list[tuple[str, str]]


@pytest.fixture
def writer(tmp_path: Path) -> RedoWriter:
    return RedoWriter(tmp_path / "log")


def test_a_transaction_that_began_before_capture_is_reported_and_not_captured(writer: RedoWriter) -> None:
    early = writer.begin()
    writer.insert(early, "ITEMS", {"ID": "1"})
    start = writer.scn + 1
    writer.insert(early, "ITEMS", {"ID": "2"})
    writer.insert(early, "ITEMS", {"ID": "3"})
    late = writer.begin()
    writer.insert(late, "ITEMS", {"ID": "4"})
    writer.commit(early)
    writer.commit(late)
    writer.flush()
    messages: Messages = []
    rows = read_all(writer.folder, start=LogPosition(0, 0, start), after=start - 1, messages=messages)
    assert [row.after["id"] for row in rows] == [b"4"]
    assert [code for code, _ in messages] == ["GGS-00530"]
    assert early.text in messages[0][1]


def test_tables_unknown_to_logminer_are_reported_unless_they_are_excluded(writer: RedoWriter) -> None:
    unknown = RedoWriter(writer.folder, segment=1, scn=writer.scn, owner="UNKNOWN")
    xid = unknown.begin(5)
    unknown.insert(xid, "OBJ# 4711", {"COL 1": "=HEXTORAW('c102')"})
    unknown.insert(xid, "OBJ# 4711", {"COL 1": "=HEXTORAW('c103')"})
    unknown.commit(xid)
    unknown.flush()
    writer.scn = unknown.scn
    other = writer.begin(6)
    writer.insert(other, "OTHER", {"ID": "1"})
    writer.unsupported(other, "OTHER")
    writer.commit(other)
    writer.flush()
    messages: Messages = []
    assert read_all(writer.folder, messages=messages, wanted=lambda name: name == TableName("shop", "items")) == []
    assert [code for code, _ in messages] == ["GGS-00531"]
    assert "OBJ# 4711: the table is not in LogMiner's dictionary" in messages[0][1]


def test_changes_that_are_not_captured_are_counted(writer: RedoWriter) -> None:
    xid = writer.begin()
    for _ in range(5):
        writer.unsupported(xid, "ITEMS")
    writer.commit(xid)
    writer.flush()
    messages: Messages = []
    with capturing(writer.folder, messages=messages) as (capture, log):
        assert collect(capture) == []
    assert log.problems == {("shop.items", "operation UNSUPPORTED is not supported"): 5}
    assert len(messages) == 1


def test_a_gap_in_the_exported_log_ends_capture(writer: RedoWriter) -> None:
    writer.begin()
    writer.flush()
    with writer.path.open("ab") as file:
        file.write(b'{"SCN":2000,"OPERATION":"MISSING_SCN","XIDUSN":0,"XIDSLT":0,"XIDSQN":0}\n')
    with pytest.raises(CaptureError, match="gap at SCN 2000"):
        read_all(writer.folder)


def test_an_undo_of_a_row_that_was_never_read_ends_capture(writer: RedoWriter) -> None:
    xid = writer.begin()
    writer.insert(xid, "ITEMS", {"ID": "1"})
    xid.changes.append(
        RedoChange("INSERT", "ITEMS", "ELSEWHERE", "", 'delete from "SHOP"."ITEMS" where ROWID = \'ELSEWHERE\';')
    )
    writer.take_back(xid)
    writer.commit(xid)
    writer.flush()
    with pytest.raises(CaptureError, match=r"rolls back a change to shop\.items at SCN 1003 that was not read"):
        read_all(writer.folder)


def test_the_error_for_unreadable_sql_names_table_and_position(writer: RedoWriter) -> None:
    xid = writer.begin()
    writer.change(
        xid, RedoChange("INSERT", "ITEMS", "A", "insert into HR.EMPLOYEES(col#1) values (hextoraw('4a'));", "")
    )
    writer.commit(xid)
    writer.flush()
    with pytest.raises(CaptureError, match=r"hextoraw.*SHOP.ITEMS, redo address 1\."):
        read_all(writer.folder, abends=True)


def test_a_commit_that_is_late_for_its_scn_is_captured(writer: RedoWriter) -> None:
    one, two = writer.begin(), writer.begin()
    writer.insert(one, "ITEMS", {"ID": "1"})
    writer.insert(two, "ITEMS", {"ID": "2"})
    writer.commit(one)
    writer.flush()
    messages: Messages = []
    with capturing(writer.folder, messages=messages) as (capture, _):
        assert [row.after["id"] for row in collect(capture)] == [b"1"]
        writer.hold = True
        writer.commit(two)
        writer.flush()
        assert [row.after["id"] for row in collect(capture)] == [b"2"]
    assert messages == []


BAD = "insert into SHOP.ITEMS values (this cannot be read);"


def with_unreadable_row(writer: RedoWriter) -> list[str]:
    """Ten transactions, the fifth with an unreadable row, and one open all the time; returns the ids of the good rows."""
    around = writer.begin()
    writer.insert(around, "ITEMS", {"ID": "around"})
    for number in range(10):
        xid = writer.begin()
        writer.insert(xid, "ITEMS", {"ID": str(number)})
        if number == 5:
            writer.change(xid, RedoChange("INSERT", "ITEMS", "BAD", BAD, ""))
            writer.insert(xid, "ITEMS", {"ID": "5b"})
        writer.commit(xid)
    writer.commit(around)
    writer.flush()
    return ["0", "1", "2", "3", "4", "5", "5b", "6", "7", "8", "9", "around"]


def test_a_row_with_unreadable_sql_is_omitted_counted_and_reported(writer: RedoWriter) -> None:
    ids = with_unreadable_row(writer)
    messages: Messages = []
    with capturing(writer.folder, messages=messages) as (capture, log):
        assert [(row.after["id"] or b"").decode() for row in collect(capture)] == ids
        problem = ("shop.items", "the SQL_REDO of operation INSERT cannot be read")
        assert log.problems == {problem: 1}
    [(code, text)] = messages
    assert code == "GGS-00531"
    assert f"{problem[0]}: {problem[1]} (redo address" in text
    assert BAD in text
    assert "COMPARE" in text


def test_transactions_committed_before_a_row_that_ends_capture_are_captured_first(writer: RedoWriter) -> None:
    ids = with_unreadable_row(writer)
    with capturing(writer.folder, abends=True) as (capture, _):
        found = []
        with pytest.raises(CaptureError, match="UNREADABLEREDO REPORT"):
            while (batch := capture.read()) is not None:
                found += [piece.header.xid for piece in batch.pieces]
        assert len(found) == len(ids[:5])
        safe = capture.state.safe
        with pytest.raises(CaptureError, match="UNREADABLEREDO REPORT"):
            capture.read()
        assert capture.state.safe == safe


def test_the_rows_before_an_invalid_line_are_captured_first(writer: RedoWriter) -> None:
    one, two = writer.begin(), writer.begin()
    writer.insert(one, "ITEMS", {"ID": "1"})
    writer.commit(one)
    writer.flush()
    with writer.path.open("ab") as file:
        file.write(b'{"SCN": broken}\n')
    writer.insert(two, "ITEMS", {"ID": "2"})
    writer.commit(two)
    writer.flush()
    with capturing(writer.folder) as (capture, _):
        batch = capture.read()
        assert batch is not None
        assert len(batch) == 1
        with pytest.raises(CaptureError, match="not a valid row of"):
            capture.read()


def test_a_commit_without_its_begin_is_reported(writer: RedoWriter) -> None:
    early, empty = writer.begin(), writer.begin()
    writer.insert(early, "ITEMS", {"ID": "1"})
    start = writer.scn + 1
    writer.commit(early)
    writer.rollback(empty)
    writer.flush()
    messages: Messages = []
    assert read_all(writer.folder, start=LogPosition(0, 0, start), after=start - 1, messages=messages) == []
    [(code, text)] = messages
    assert code == "GGS-00530"
    assert early.text in text


def test_rows_without_a_where_clause_are_identified_by_their_undo_or_reported(writer: RedoWriter) -> None:
    xid = writer.begin()
    update = 'update "SHOP"."ITEMS" set "NAME" = \'x\''
    undo = 'update "SHOP"."ITEMS" set "NAME" = \'y\' where "ID" = \'1\';'
    writer.change(xid, RedoChange("UPDATE", "ITEMS", "A", f"{update};", undo))
    writer.change(xid, RedoChange("DELETE", "ITEMS", "A", 'delete from "SHOP"."ITEMS";', ""))
    writer.commit(xid)
    writer.flush()
    messages: Messages = []
    [row] = read_all(writer.folder, messages=messages)
    assert row.after == {"id": b"1", "name": b"x"}
    assert "its key is not logged" in messages[0][1]


def test_object_constructors_are_omitted_by_column(writer: RedoWriter) -> None:
    xid = writer.begin()
    writer.insert(xid, "ITEMS", {"ID": "1", "PLACE": '="MDSYS"."SDO_GEOMETRY"(2001, NULL, "MDSYS"."P"(1, 2), NULL)'})
    writer.commit(xid)
    writer.flush()
    messages: Messages = []
    [row] = read_all(writer.folder, messages=messages)
    assert row.after == {"id": b"1"}
    assert "column place has a value that the log does not contain as text" in messages[0][1]
