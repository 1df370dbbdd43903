"""Bounded Recovery through real processes: an Extract with a transaction that has been open for hours is killed and goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import until, until_state
from redo_home import RedoHome

from ggshell.clock import FakeClock
from ggshell.demo.redo_writer import OpenXid
from ggshell.process import extract
from ggshell.process.lifecycle import GroupContext, run_group
from ggshell.process.state import ProcessState
from ggshell.store import checkpoint as checkpoints
from ggshell.store.checkpoint import Checkpoint, GroupType, ReadCheckpoint, SourceType
from ggshell.store.home import Home

EXT1 = ("EXT1", GroupType.EXTRACT)
MINUTE = 60_000_000


@pytest.fixture
def home(tmp_path: Path) -> Iterator[RedoHome]:
    found = RedoHome(tmp_path)
    file = found.home.parameters("ext1")
    file.write_text(file.read_text().replace("CHECKPOINTSECS 1", "CHECKPOINTSECS 1\nBR BRINTERVAL 20M"))
    yield found
    found.close()


class Day:
    """Writes redo by the minute: each minute a transaction of one row; the ids that must be in the trail, in order."""

    def __init__(self, home: RedoHome) -> None:
        self.home = home
        self.wanted: list[str] = []
        self._number = 0

    def pass_by(self, minutes: int) -> None:
        writer = self.home.writer
        for _ in range(minutes):
            writer.time += MINUTE
            xid = writer.begin()
            self.change(xid, f"r{self._number}")
            self._number += 1
            self.end(xid)
        writer.flush()

    def change(self, xid: OpenXid, name: str) -> None:
        self.home.writer.insert(xid, "ITEMS", {"ID": name, "NAME": "x"})
        xid.__dict__.setdefault("names", []).append(name)

    def end(self, xid: OpenXid) -> None:
        self.home.writer.commit(xid)
        self.wanted += xid.__dict__["names"]
        self.home.writer.flush()

    def arrives(self) -> None:
        self.home.arrives(self.wanted)


def kill_and_start(home: RedoHome) -> str:
    """The report of the run after a kill."""
    os.kill(home.pid(), signal.SIGKILL)
    until_state(home.home, *EXT1, ProcessState.ABENDED)
    home.run("START ext1")
    report = home.home.report("EXT1")
    until("it reads", lambda: "OGG-01515" in report.read_text())
    return report.read_text()


def test_a_restart_restores_what_was_persisted(home: RedoHome) -> None:
    day = Day(home)
    home.add("SCN 1")
    home.run("START ext1")
    old = home.writer.begin()
    day.change(old, "old1")
    day.pass_by(70)
    day.change(old, "old2")
    day.pass_by(35)
    day.arrives()
    until("old is persisted", lambda: bool(home.checkpoint().options["br"].get("persisted")))
    home.writer.roll()
    day.pass_by(3)
    day.arrives()
    until("its place is saved", lambda: home.checkpoint().record_time == home.writer.time)
    text = kill_and_start(home)
    assert "bounded recovery: 1 long-running transaction restored" in text
    assert f"PERSISTED OBJECTS RECOVERED: {old.text}" in text
    day.change(old, "old3")
    day.end(old)
    day.pass_by(2)
    day.arrives()
    report = home.home.report("EXT1").read_text()
    assert "Recovery complete: bounded recovery" in report
    assert "began before the place where capture began" not in report


def test_what_ended_before_the_stop_is_not_called_lost(home: RedoHome) -> None:
    day = Day(home)
    home.add("SCN 1")
    home.run("START ext1")
    ended, still = home.writer.begin(), home.writer.begin()
    day.change(still, "still1")
    day.change(ended, "ended1")
    day.end(ended)
    day.pass_by(1)
    day.arrives()
    until("its place is saved", lambda: home.checkpoint().record_time == home.writer.time)
    text = kill_and_start(home)
    assert "Recovery: normal recovery" in text
    day.end(still)
    day.arrives()
    report = home.home.report("EXT1").read_text()
    assert "Recovery complete: normal recovery" in report
    assert "began before the place where capture began" not in report


def follow(home: RedoHome, minutes: int) -> tuple[Day, OpenXid]:
    """A running Extract with one transaction that has been open for so long, and is in files."""
    day = Day(home)
    home.add("SCN 1")
    home.run("START ext1")
    old = home.writer.begin()
    day.change(old, "old1")
    day.pass_by(minutes)
    day.arrives()
    until("old is persisted", lambda: bool(home.checkpoint().options["br"].get("persisted")))
    return day, old


def test_requests_show_and_change_bounded_recovery(home: RedoHome) -> None:
    _, old = follow(home, 100)
    status = home.run("SEND EXTRACT ext1, BR BRSTATUS")
    assert "Bounded Recovery status:             ON\n" in status
    assert "  Checkpoint interval:               1200 seconds (BRINTERVAL 20M)\n" in status
    assert old.text in status
    last = int(home.checkpoint().options["br"]["last_number"])
    home.run("SEND ext1 BR BRCHECKPOINT IMMEDIATE")
    until("a checkpoint more", lambda: home.checkpoint().options["br"]["last_number"] == last + 1)
    assert "BRINTERVAL 1H" in home.run("SEND EXTRACT ext1, BR BRINTERVAL 1H")
    assert "is not within 20M to 96H" in home.run("SEND EXTRACT ext1, BR BRINTERVAL 97H", fails=True)
    assert "status:             STOPPED" in home.run("SEND ext1 BR BRSTOP")
    assert "BRSTART first" in home.run("SEND ext1 BR BRCHECKPOINT IMMEDIATE", fails=True)
    assert "Checkpoints made, failed" in home.run("SEND ext1 BR BRSTART", "SEND ext1 BR BRSTATS")
    shown = home.run("INFO EXTRACT ext1, SHOWCH")
    for title in ("BR Previous Recovery Checkpoint:", "BR Begin Recovery Checkpoint:", "BR End Recovery Checkpoint:"):
        assert title in shown
    drawn = home.run("BR SHOW ext1")
    assert f"{old.text:<12}  =====" in drawn
    assert "persisted" in drawn
    assert "a restart would begin to read at" in drawn
    home.run("STOP ext1")
    assert "only transactions that stand in files are drawn" in home.run("BR SHOW ext1")


def test_open_transactions_are_shown_skipped_and_forced(home: RedoHome) -> None:
    day, old = follow(home, 50)
    other = home.writer.begin()
    day.change(other, "other1")
    day.pass_by(1)
    day.arrives()
    shown = home.run("SEND EXTRACT ext1, SHOWTRANS")
    assert f"XID:                  {old.text}\nItems:                1\nExtract:              EXT1\n" in shown
    assert (
        "Oldest redo log file necessary to restart Extract is:\nRedo Thread 1, Redo Log Sequence Number 1, SCN" in shown
    )
    assert shown.index(old.text) < shown.index(other.text)
    table = home.run("SEND EXTRACT ext1, SHOWTRANS, COUNT 1, TABULAR")
    assert old.text in table
    assert other.text not in table
    assert "No transactions found" in home.run("SEND EXTRACT ext1, SHOWTRANS, COUNT 0")
    assert other.text not in home.run("SEND ext1 SHOWTRANS DURATION 10MIN")
    home.run(f"SEND ext1 SHOWTRANS {other.text} FILE open.txt DETAIL")
    assert "INSERT SHOP.ITEMS" in (home.home.root / "open.txt").read_text()
    assert "trans active    =      2" in home.run("SEND ext1 CACHEMGR CACHESTATS")
    assert "Hint: with FORCE nobody is asked" in home.run(f"SEND ext1 SKIPTRANS {other.text}", fails=True)
    assert "is left out" in home.run(f"SEND EXTRACT ext1, SKIPTRANS {other.text}, FORCE")
    assert "was skipped or forced before" in home.run(f"SEND EXTRACT ext1, SKIPTRANS {other.text}, FORCE", fails=True)
    assert "ask again once the log has moved on" in home.run(f"SEND ext1 FORCETRANS {old.text} FORCE", fails=True)
    day.change(home.writer.begin(), "never")
    home.writer.flush()
    until("the log has moved on", lambda: home.run("SEND ext1 SHOWTRANS").count("XID:") == 3)
    home.run(f"SEND EXTRACT ext1, FORCETRANS {old.text} FORCE")
    day.wanted.append("old1")
    day.arrives()
    assert "Pending COMMIT" in home.run("SEND ext1 SHOWTRANS")
    kill_and_start(home)
    day.change(old, "old2")
    home.writer.commit(old)
    home.writer.commit(other)
    day.pass_by(2)
    day.arrives()


def test_a_damaged_file_costs_time_and_no_row(home: RedoHome) -> None:
    day, old = follow(home, 100)
    os.kill(home.pid(), signal.SIGKILL)
    until_state(home.home, *EXT1, ProcessState.ABENDED)
    [file] = (home.home.root / "BR" / "EXT1").glob("PO.*")
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    home.run("START ext1")
    day.end(old)
    day.pass_by(30)
    day.arrives()
    report = home.home.report("EXT1").read_text()
    assert "OGG-30469" in report
    assert "Recovery: normal recovery" in report


def test_a_changed_table_line_is_no_bounded_recovery(home: RedoHome) -> None:
    day, old = follow(home, 100)
    home.run("STOP ext1")
    file = home.home.parameters("ext1")
    file.write_text(file.read_text() + "TABLE shop.other;\n")
    home.run("START ext1")
    day.end(old)
    day.arrives()
    report = home.home.report("EXT1").read_text()
    assert "OGG-01635" in report
    assert "what the parameter file captures was changed" in report


def test_a_group_that_was_set_elsewhere_does_not_use_what_was_saved(home: RedoHome) -> None:
    day, old = follow(home, 100)
    home.run("STOP ext1")
    home.run(f"ALTER EXTRACT ext1, SCN {home.writer.scn + 1}")
    home.run("START ext1")
    until("it reads", lambda: "OGG-01515" in home.home.report("EXT1").read_text())
    assert "OGG-01635" in home.home.report("EXT1").read_text()
    home.writer.commit(old)
    day.pass_by(1)
    day.arrives()


def test_brreset_is_for_a_start_by_hand(home: RedoHome) -> None:
    day, old = follow(home, 60)
    home.run("STOP ext1")
    file = home.home.parameters("ext1")
    text = file.read_text()
    file.write_text(text.replace("BRINTERVAL 20M", "BRINTERVAL 20M, BRRESET"))
    home.run("START ext1")
    until_state(home.home, *EXT1, ProcessState.ABENDED)
    assert "ggshell extract paramfile" in home.home.report("EXT1").read_text()
    by_hand = home.home.root / "by_hand.prm"
    by_hand.write_text(file.read_text())
    file.write_text(text)
    report = home.home.root / "by_hand.rpt"
    command = [sys.executable, "-m", "ggshell.shell.cli", "--home", str(home.home.root), "EXTRACT"]
    process = subprocess.Popen([*command, "pf", "by_hand.prm", "rf", str(report)])
    try:
        day.end(old)
        day.arrives()
        home.run("STOP ext1")
        assert process.wait(timeout=30) == 0
    finally:
        process.kill()
    assert "what was saved is left aside (BRRESET)" in report.read_text()


def test_bounded_recovery_is_refused_for_postgresql(tmp_path: Path) -> None:
    """Nothing of an open transaction is kept in files there, and the reason is told."""
    home = Home(tmp_path)
    home.ensure()
    file = home.parameters("ext1")
    file.write_text(
        "EXTRACT ext1\nUSERID u@127.0.0.1:1/shop, PASSWORD p\nBR BRINTERVAL 1H\nEXTTRAIL ./dirdat/ea\nTABLE shop.*;\n"
    )
    checkpoints.save(
        home.checkpoint("EXT1", GroupType.EXTRACT),
        Checkpoint("EXT1", GroupType.EXTRACT, ReadCheckpoint(SourceType.LOG)),
    )
    assert extract.run(home, "EXT1") == 1
    assert "BR is for Oracle redo: a PostgreSQL server keeps its log" in home.report("EXT1").read_text()


class HastyClock(FakeClock):
    """Each look at it lets a minute pass."""

    def steady(self) -> float:
        self.advance(60)
        return super().steady()


def test_long_transactions_are_warned_of_and_orphans_left_out(home: RedoHome) -> None:
    """In this process, with a clock that is moved: nobody waits for an interval."""
    day = Day(home)
    home.add("SCN 1")
    old, orphan = home.writer.begin(500), home.writer.begin(601)
    day.change(old, "old1")
    day.change(orphan, "lost")
    day.pass_by(70)
    heir = home.writer.begin(601 + 160 * 7)  # the same undo segment and slot, seven uses later
    assert (heir.usn, heir.slot) == (orphan.usn, orphan.slot)
    home.writer.flush()
    file = home.home.parameters("ext1")
    file.write_text(file.read_text() + "TRANLOGOPTIONS PURGEORPHANEDTRANSACTIONS\nWARNLONGTRANS 1H\n")
    clock = HastyClock(1_790_000_000_000_000)
    seen: list[str] = []

    def look() -> None:
        text = home.home.report("EXT1").read_text()
        seen.append(text)
        if len(seen) > 40 or ("OGG-01027" in text and "GGS-00544" in text):
            os.kill(os.getpid(), signal.SIGTERM)

    def body(context: GroupContext) -> None:
        context.runner.every(60, look)
        extract._body(context)

    before = signal.getsignal(signal.SIGTERM)
    try:
        assert run_group(home.home, "EXT1", GroupType.EXTRACT, body, clock) == 0
    finally:
        signal.signal(signal.SIGTERM, before)
    text = home.home.report("EXT1").read_text()
    assert f"Long Running Transaction: XID {old.text}, Items 1, Extract EXT1, Redo Thread 1, SCN 100" in text
    assert f"Orphaned transaction {orphan.text} with 1 items is left out" in text
    assert home.ids() == day.wanted
