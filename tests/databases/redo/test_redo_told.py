"""What redo brings and cannot be captured is told; what would be lost in silence ends capture."""

from __future__ import annotations

from pathlib import Path

import pytest
from redo_reading import capturing, collect, read_all

from ggshell.demo.redo_writer import Change, RedoWriter
from ggshell.errors import CaptureError
from ggshell.types import LogPosition, TableName

Told = list[tuple[str, str]]


@pytest.fixture
def writer(tmp_path: Path) -> RedoWriter:
    return RedoWriter(tmp_path / "log")


def test_a_transaction_that_began_before_capture_is_not_captured_and_told(writer: RedoWriter) -> None:
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
    told: Told = []
    rows = read_all(writer.folder, start=LogPosition(0, 0, start), after=start - 1, told=told)
    assert [row.after["id"] for row in rows] == [b"4"]
    assert [code for code, _ in told] == ["GGS-00530"]
    assert early.text in told[0][1]


def test_tables_that_logminer_does_not_know_are_told_and_unwanted_ones_are_not(writer: RedoWriter) -> None:
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
    told: Told = []
    assert read_all(writer.folder, told=told, wanted=lambda name: name == TableName("shop", "items")) == []
    assert [code for code, _ in told] == ["GGS-00531"]
    assert "OBJ# 4711: LogMiner's dictionary did not know the table" in told[0][1]


def test_how_much_is_not_captured_is_counted(writer: RedoWriter) -> None:
    xid = writer.begin()
    for _ in range(5):
        writer.unsupported(xid, "ITEMS")
    writer.commit(xid)
    writer.flush()
    told: Told = []
    with capturing(writer.folder, told=told) as (capture, log):
        assert collect(capture) == []
    assert log.problems == {("shop.items", "operation UNSUPPORTED is not supported"): 5}
    assert len(told) == 1


def test_a_gap_in_the_exported_log_ends_capture(writer: RedoWriter) -> None:
    writer.begin()
    writer.flush()
    with writer.path.open("ab") as file:
        file.write(b'{"SCN":2000,"OPERATION":"MISSING_SCN","XIDUSN":0,"XIDSLT":0,"XIDSQN":0}\n')
    with pytest.raises(CaptureError, match="gap at SCN 2000"):
        read_all(writer.folder)


def test_an_undo_of_what_was_never_read_ends_capture(writer: RedoWriter) -> None:
    xid = writer.begin()
    writer.insert(xid, "ITEMS", {"ID": "1"})
    xid.changes.append(
        Change("INSERT", "ITEMS", "ELSEWHERE", "", 'delete from "SHOP"."ITEMS" where ROWID = \'ELSEWHERE\';')
    )
    writer.take_back(xid)
    writer.commit(xid)
    writer.flush()
    with pytest.raises(CaptureError, match=r"takes back a change of shop\.items at SCN 1003 that was not read"):
        read_all(writer.folder)


def test_sql_that_cannot_be_read_names_table_and_place(writer: RedoWriter) -> None:
    xid = writer.begin()
    writer.change(xid, Change("INSERT", "ITEMS", "A", "insert into HR.EMPLOYEES(col#1) values (hextoraw('4a'));", ""))
    writer.commit(xid)
    writer.flush()
    with pytest.raises(CaptureError, match=r"hextoraw.*SHOP.ITEMS, redo address 1\."):
        read_all(writer.folder)


def test_a_commit_that_comes_late_for_its_scn_is_captured_and_told(writer: RedoWriter) -> None:
    one, two = writer.begin(), writer.begin()
    writer.insert(one, "ITEMS", {"ID": "1"})
    writer.insert(two, "ITEMS", {"ID": "2"})
    writer.commit(one)
    writer.flush()
    told: Told = []
    with capturing(writer.folder, told=told) as (capture, _):
        assert [row.after["id"] for row in collect(capture)] == [b"1"]
        writer.hold = True
        writer.commit(two)
        writer.flush()
        assert [row.after["id"] for row in collect(capture)] == [b"2"]
    assert [code for code, _ in told] == ["GGS-00529"]
