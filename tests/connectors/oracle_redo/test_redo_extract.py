"""Redo with real processes: an Extract follows a growing log, is killed, and writes everything once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import until, until_state
from redo_home import RedoHome

from ggshell.demo.redo_writer import RedoChange, RedoWriter
from ggshell.home.checkpoint import GroupKind
from ggshell.home.process_file import ProcessState

pytestmark = pytest.mark.slow

EXT1 = ("EXT1", GroupKind.EXTRACT)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[RedoHome]:
    found = RedoHome(tmp_path)
    yield found
    found.close()


def some(writer: RedoWriter, first: int, count: int, *, table: str = "ITEMS") -> None:
    for number in range(first, first + count):
        xid = writer.begin()
        writer.insert(xid, table, {"ID": str(number), "NAME": f"n{number}"})
        writer.commit(xid)
    writer.flush()


def test_appended_redo_is_written_to_the_trail(home: RedoHome) -> None:
    some(home.writer, 0, 3)
    home.add("BEGIN NOW")
    home.run("START ext1")
    some(home.writer, 3, 3)
    home.wait_for_ids(["3", "4", "5"])
    assert "Oracle Redo Logs" in home.run("INFO ext1, DETAIL")
    assert "ggshell Capture for Oracle" in home.home.report("EXT1").read_text()
    place = f"SCN 0.{home.writer.scn} ({home.writer.scn})"
    until("the checkpoint is written", lambda: place in home.run("INFO ext1"))
    assert "Oracle Redo Log\n" in home.run("INFO ext1, SHOWCH")
    until("there is no lag", lambda: "no more records to process" in home.run("LAG ext1"))


def test_a_killed_extract_writes_everything_once(home: RedoHome) -> None:
    home.add("SCN 1")
    home.run("START ext1")
    open_one = home.writer.begin()
    home.writer.insert(open_one, "ITEMS", {"ID": "open", "NAME": "x"})
    for round_number in range(4):
        some(home.writer, round_number * 500, 500)
        until("some rows are there", lambda: len(home.ids()) >= round_number * 500 + 100)  # noqa: B023 - asked at once
        os.kill(home.pid(), signal.SIGKILL)
        until_state(home.home, *EXT1, ProcessState.ABENDED)
        home.writer.roll()
        home.run("START ext1")
    home.writer.commit(open_one)
    home.writer.flush()
    home.wait_for_ids([*map(str, range(2000)), "open"])


def test_a_restart_begins_at_the_oldest_open_transaction_and_needs_no_earlier_redo(home: RedoHome) -> None:
    home.add("SCN 1")
    some(home.writer, 0, 50)
    home.writer.roll()
    open_one = home.writer.begin()
    home.writer.insert(open_one, "ITEMS", {"ID": "open", "NAME": "x"})
    home.writer.roll()
    some(home.writer, 50, 50)
    home.run("START ext1")
    until("100 rows", lambda: len(home.ids()) == 100)
    home.run("STOP ext1")
    assert home.checkpoint().read.recovery.sequence == 2  # type: ignore[union-attr]
    home.writer.commit(open_one)
    home.writer.flush()
    (home.folder / "redo_1_000000001.jsonl").unlink()
    home.run("START ext1")
    home.wait_for_ids([*map(str, range(100)), "open"])
    home.run("STOP ext1")
    (home.folder / "redo_1_000000002.jsonl").unlink()
    home.run("ALTER ext1, SCN 99999999")
    assert "cannot go back to SCN 1001" in home.run("ALTER ext1, SCN 1001", fails=True)


def test_lag_includes_rows_that_wait_for_another_thread(home: RedoHome) -> None:
    """Regression: LAG said "At EOF" while rows waited for a thread without new rows."""
    other = RedoWriter(home.folder, thread=2)
    other.commit(other.begin(70))
    other.flush()
    home.writer.scn = 2000
    xid = home.writer.begin()
    home.writer.insert(xid, "ITEMS", {"ID": "1"})
    home.writer.commit(xid)
    home.writer.flush()
    home.add("SCN 1001")
    home.run("START EXTRACT ext1")
    until("the other thread is read", lambda: home.checkpoint().read.current.csn == 1002)  # type: ignore[union-attr]
    assert "no more records" not in home.run("LAG EXTRACT ext1")
    assert home.ids() == []
    other.scn = home.writer.scn
    other.begin(71)
    other.flush()
    home.wait_for_ids(["1"])


def test_missing_redo_ends_the_extract_with_the_reason(home: RedoHome) -> None:
    some(home.writer, 0, 5)
    home.writer.roll()
    some(home.writer, 5, 5)
    home.add("SCN 1001")
    (home.folder / "redo_1_000000001.jsonl").unlink()
    home.run("START ext1")
    until_state(home.home, *EXT1, ProcessState.ABENDED)
    report = home.home.report("EXT1").read_text()
    assert "GGS-00524" in report
    assert "to continue without them, use ALTER EXTRACT" in report


def test_changes_that_cannot_be_captured_are_listed_in_the_report(home: RedoHome) -> None:
    xid = home.writer.begin()
    home.writer.insert(xid, "ITEMS", {"ID": "1", "NAME": "=Unsupported Type"})
    home.writer.unsupported(xid, "ITEMS")
    home.writer.unsupported(xid, "OTHER")
    home.writer.commit(xid)
    home.writer.flush()
    home.add("SCN 1")
    home.run("START ext1")
    home.wait_for_ids(["1"])
    report = home.home.report("EXT1").read_text()
    assert "shop.items: operation UNSUPPORTED is not supported" in report
    assert "column name has a value that the log does not contain as text" in report
    assert "other" not in report


def test_a_start_time_begins_at_its_first_row(home: RedoHome) -> None:
    some(home.writer, 0, 5)
    home.writer.time += 3_600_000_000
    home.writer.roll()
    some(home.writer, 5, 5)
    home.add("BEGIN 2026-01-01 00:30:00")
    home.run("START ext1")
    home.wait_for_ids([str(number) for number in range(5, 10)])


def test_commands_that_need_a_database_are_refused_as_such(home: RedoHome) -> None:
    login = f"DBLOGIN SOURCEDB redo://{home.folder}"
    assert "is a redo log, not a database" in home.run(login, "ADD TRANDATA shop.items", fails=True)
    assert "redo folder /nowhere does not exist" in home.run("DBLOGIN SOURCEDB redo:///nowhere", fails=True)
    assert "LSN is not valid for redo" in home.run(login, "ADD EXTRACT ext1, TRANLOG, LSN 0/1", fails=True)


def test_transactions_with_the_same_scn_arrive_once_although_groups_are_killed_between_them(home: RedoHome) -> None:
    """Extract and a pump are killed when only some transactions of an SCN have been processed."""
    pump = "EXTRACT pump1\nPASSTHRU\nEXTTRAIL ./dirdat/pa\nTABLE shop.*;\n"
    home.home.parameters("pump1").write_text(pump)
    home.add("SCN 1")
    home.run("ADD EXTRACT pump1, EXTTRAILSOURCE ./dirdat/ea", "ADD EXTTRAIL ./dirdat/pa, EXTRACT pump1", "START ER *")
    writer = home.writer
    xids = [writer.begin() for _ in range(12)]
    for number, xid in enumerate(xids):
        writer.insert(xid, "ITEMS", {"ID": str(number)})
    for number, xid in enumerate(xids):
        writer.commit(xid)
        writer.hold = True
        if number in (3, 7):
            writer.flush()
            wanted = [str(each) for each in range(number + 1)]
            until(f"{len(wanted)} rows are carried on", lambda: home.ids("pa") == wanted)  # noqa: B023 - asked at once
            for group in ("EXT1", "PUMP1"):
                os.kill(home.pid(group), signal.SIGKILL)
                until_state(home.home, group, GroupKind.EXTRACT, ProcessState.ABENDED)
            if number == 3:
                home.run("ALTER EXTRACT ext1, ETROLLOVER")
            home.run("START ER *")
    writer.flush()
    until("the pump has copied all rows", lambda: len(home.ids("pa")) >= 12)
    assert home.ids("pa") == home.ids() == [str(number) for number in range(12)]
    found = home.run(*(f"TRAIL FIND TRANSACTION {xid.text} FROM ./dirdat/pa" for xid in xids))
    assert all(xid.text in found for xid in xids)

    def named() -> bool:
        [line] = [line for line in home.run("INFO ext1, SHOWCH").splitlines() if line.startswith("  Completed TXNs: ")]
        return all(xid.text in line for xid in xids)

    until("the checkpoint names them", named)


def test_following_the_hint_for_unreadable_sql_loses_only_that_row(home: RedoHome) -> None:
    file = home.home.parameters("ext1")
    file.write_text(file.read_text() + "TRANLOGOPTIONS UNREADABLEREDO ABEND\n")
    around = home.writer.begin()
    home.writer.insert(around, "ITEMS", {"ID": "around"})
    some(home.writer, 0, 5)
    xid = home.writer.begin()
    home.writer.insert(xid, "ITEMS", {"ID": "with"})
    home.writer.change(xid, RedoChange("INSERT", "ITEMS", "A", "insert into SHOP.ITEMS nonsense;", ""))
    home.writer.commit(xid)
    some(home.writer, 5, 5)
    home.writer.commit(around)
    home.writer.flush()
    home.add("SCN 1")
    home.run("START ext1")
    until_state(home.home, *EXT1, ProcessState.ABENDED)
    assert home.ids() == ["0", "1", "2", "3", "4"]
    report = home.home.report("EXT1").read_text()
    assert "GGS-00521" in report
    assert "set TRANLOGOPTIONS UNREADABLEREDO REPORT" in report
    home.run("START ext1")
    until_state(home.home, *EXT1, ProcessState.ABENDED)
    assert home.ids() == ["0", "1", "2", "3", "4"]
    file.write_text(file.read_text().replace("REDO ABEND", "REDO REPORT"))
    home.run("START ext1")
    home.wait_for_ids([*map(str, range(5)), "with", *map(str, range(5, 10)), "around"])
    assert "the SQL_REDO of operation INSERT cannot be read" in home.home.report("EXT1").read_text()
