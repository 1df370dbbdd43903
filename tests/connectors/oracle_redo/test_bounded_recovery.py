"""Bounded Recovery with real processes: an Extract with a transaction open for hours is killed and restarted."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import until, until_state
from redo_home import RedoHome

from ggshell.clock import FakeClock, to_datetime
from ggshell.demo.redo_writer import OpenXid
from ggshell.groups import extract
from ggshell.groups.lifecycle import GroupContext, run_group
from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import Checkpoint, GroupKind, ReadCheckpoint, SourceType
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState

pytestmark = pytest.mark.slow

EXT1 = ("EXT1", GroupKind.EXTRACT)
MINUTE = 60_000_000


@pytest.fixture
def home(tmp_path: Path) -> Iterator[RedoHome]:
    found = RedoHome(tmp_path)
    file = found.home.parameters("ext1")
    file.write_text(file.read_text().replace("CHECKPOINTSECS 1", "CHECKPOINTSECS 1\nBR BRINTERVAL 20M"))
    yield found
    found.close()


class RedoByMinute:
    """Writes redo by the minute, each minute a transaction of one row; and the ids expected in the trail, in order."""

    def __init__(self, home: RedoHome) -> None:
        self.home = home
        self.wanted: list[str] = []
        self._number = 0

    def pass_minutes(self, minutes: int) -> None:
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

    def wait_for_ids(self) -> None:
        self.home.wait_for_ids(self.wanted)


def kill_and_start(home: RedoHome) -> str:
    """The report of the run after a kill."""
    os.kill(home.pid(), signal.SIGKILL)
    until_state(home.home, *EXT1, ProcessState.ABENDED)
    home.run("START ext1")
    report = home.home.report("EXT1")
    until("the Extract reads", lambda: "OGG-01515" in report.read_text())
    return report.read_text()


def test_a_restart_restores_the_persisted_transactions(home: RedoHome) -> None:
    redo = RedoByMinute(home)
    home.add("SCN 1")
    home.run("START ext1")
    old = home.writer.begin()
    redo.change(old, "old1")
    redo.pass_minutes(70)
    redo.change(old, "old2")
    redo.pass_minutes(35)
    redo.wait_for_ids()
    until("the old transaction is persisted", lambda: bool(home.bounded().persisted))
    home.writer.roll()
    redo.pass_minutes(3)
    redo.wait_for_ids()
    until("its position is saved", lambda: home.checkpoint().record_time == home.writer.time)
    text = kill_and_start(home)
    assert "bounded recovery: 1 long-running transaction restored" in text
    assert f"PERSISTED OBJECTS RECOVERED: {old.text}" in text
    redo.change(old, "old3")
    redo.end(old)
    redo.pass_minutes(2)
    redo.wait_for_ids()
    report = home.home.report("EXT1").read_text()
    assert "Recovery complete: bounded recovery" in report
    assert "began before the start position of capture" not in report


def test_a_transaction_that_ended_before_the_stop_is_not_reported_as_lost(home: RedoHome) -> None:
    redo = RedoByMinute(home)
    home.add("SCN 1")
    home.run("START ext1")
    ended, still = home.writer.begin(), home.writer.begin()
    redo.change(still, "still1")
    redo.change(ended, "ended1")
    redo.end(ended)
    redo.pass_minutes(1)
    redo.wait_for_ids()
    until("its position is saved", lambda: home.checkpoint().record_time == home.writer.time)
    text = kill_and_start(home)
    assert "Recovery: normal recovery" in text
    redo.end(still)
    redo.wait_for_ids()
    report = home.home.report("EXT1").read_text()
    assert "GGS-00536  Recovery complete: normal recovery" in report
    assert "began before the start position of capture" not in report


def run_with_long_transaction(home: RedoHome, minutes: int) -> tuple[RedoByMinute, OpenXid]:
    """A running Extract with one transaction that has been open for ``minutes`` and is in files."""
    redo = RedoByMinute(home)
    home.add("SCN 1")
    home.run("START ext1")
    old = home.writer.begin()
    redo.change(old, "old1")
    redo.pass_minutes(minutes)
    redo.wait_for_ids()
    until("the old transaction is persisted", lambda: bool(home.bounded().persisted))
    return redo, old


def test_positions_have_consistent_times_and_the_startup_checkpoint_belongs_to_the_run(home: RedoHome) -> None:
    redo, old = run_with_long_transaction(home, 50)
    home.writer.time += (
        MINUTE  # A row that is not a commit: the time of the log advances, that of the last commit does not.
    )
    redo.change(old, "old2")
    home.writer.flush()
    until("the redo is read", lambda: home.checkpoint().read.current.csn == home.writer.scn)  # type: ignore[union-attr]
    home.run("SEND ext1 BR BRCHECKPOINT IMMEDIATE")
    place = f"({home.writer.scn})"
    until("a checkpoint exists", lambda: place in str(home.run("INFO ext1, SHOWCH").split("BR End Recovery")[-1]))
    first = home.checkpoint().read
    assert (first.startup.sequence, first.startup_time > 0) == (1, True)  # type: ignore[union-attr]
    text = kill_and_start(home)
    found = re.findall(r"OGG-0164[12].*SCN: \S+ (\(\d+\)), Timestamp: ([^,]+),", text)
    assert len(found) == 2
    if found[0][0] == found[1][0]:
        assert found[0][1] == found[1][1]
    assert found[1] == (place, to_datetime(home.writer.time).strftime("%Y-%m-%d %H:%M:%S.%f"))
    redo.pass_minutes(1)
    redo.wait_for_ids()
    until("the Extract has a startup checkpoint", lambda: home.checkpoint().read.startup != first.startup)
    redo.end(old)
    redo.wait_for_ids()


def test_requests_show_and_change_bounded_recovery(home: RedoHome) -> None:
    _, old = run_with_long_transaction(home, 100)
    status = home.run("SEND EXTRACT ext1, BR BRSTATUS")
    assert "Bounded Recovery status:             ON\n" in status
    assert "  Checkpoint interval:               1200 seconds (BRINTERVAL 20M)\n" in status
    assert old.text in status
    last = home.bounded().last_number
    home.run("SEND ext1 BR BRCHECKPOINT IMMEDIATE")
    until("another checkpoint exists", lambda: home.bounded().last_number > last)
    assert "BRINTERVAL 1H" in home.run("SEND EXTRACT ext1, BR BRINTERVAL 1H")
    assert "is not in the range 20M to 96H" in home.run("SEND EXTRACT ext1, BR BRINTERVAL 97H", fails=True)
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
    assert "only transactions that are in files are shown" in home.run("BR SHOW ext1")


def test_br_show_does_not_report_open_transactions_that_it_does_not_draw(home: RedoHome) -> None:
    redo, old = run_with_long_transaction(home, 50)
    recent = home.writer.begin()
    redo.change(recent, "young1")
    redo.pass_minutes(1)
    redo.wait_for_ids()
    home.run("SEND ext1 BR BRCHECKPOINT IMMEDIATE")
    until(
        "the restart position is that transaction",
        lambda: home.bounded().restart_name == recent.text,
    )
    number = home.bounded().last_number
    drawn = home.run("BR SHOW ext1")
    assert f"\n{old.text:<12}  =" in drawn
    assert f"\n{recent.text:<12}  " in drawn
    assert f"{recent.text} is not in files" in drawn
    redo.end(recent)
    redo.wait_for_ids()
    drawn = home.run("BR SHOW ext1")
    assert f"\n{old.text:<12}  =" in drawn
    assert f"\n{recent.text:<12}  " not in drawn
    assert f"{recent.text} was open and not in files at checkpoint {number} and is no longer pending" in drawn
    home.run("STOP ext1")
    assert f"{recent.text} was open and not in files at checkpoint" in home.run("BR SHOW ext1")


def test_open_transactions_are_shown_skipped_and_forced(home: RedoHome) -> None:
    redo, old = run_with_long_transaction(home, 50)
    other = home.writer.begin()
    redo.change(other, "other1")
    redo.pass_minutes(1)
    redo.wait_for_ids()
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
    assert "Hint: use FORCE to skip the question" in home.run(f"SEND ext1 SKIPTRANS {other.text}", fails=True)
    assert "is skipped" in home.run(f"SEND EXTRACT ext1, SKIPTRANS {other.text}, FORCE")
    assert "was already skipped or forced" in home.run(f"SEND EXTRACT ext1, SKIPTRANS {other.text}, FORCE", fails=True)
    home.run(f"SEND EXTRACT ext1, FORCETRANS {old.text} FORCE")  # The log is idle: its CSN is that of the last commit.
    redo.wanted.append("old1")
    redo.wait_for_ids()
    assert "Pending COMMIT" in home.run("SEND ext1 SHOWTRANS")
    kill_and_start(home)
    redo.change(old, "old2")
    home.writer.commit(old)
    home.writer.commit(other)
    redo.pass_minutes(2)
    redo.wait_for_ids()


def test_a_damaged_file_costs_time_but_no_row(home: RedoHome) -> None:
    redo, old = run_with_long_transaction(home, 100)
    os.kill(home.pid(), signal.SIGKILL)
    until_state(home.home, *EXT1, ProcessState.ABENDED)
    [file] = (home.home.root / "BR" / "EXT1").glob("PO.*")
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    home.run("START ext1")
    redo.end(old)
    redo.pass_minutes(30)
    redo.wait_for_ids()
    report = home.home.report("EXT1").read_text()
    assert "OGG-30469" in report
    assert "Recovery: normal recovery" in report


def test_a_changed_table_parameter_prevents_a_bounded_recovery(home: RedoHome) -> None:
    redo, old = run_with_long_transaction(home, 100)
    home.run("STOP ext1")
    file = home.home.parameters("ext1")
    file.write_text(file.read_text() + "TABLE shop.other;\n")
    home.run("START ext1")
    redo.end(old)
    redo.wait_for_ids()
    report = home.home.report("EXT1").read_text()
    assert "OGG-01635" in report
    assert "the captured tables changed" in report


def test_a_repositioned_group_does_not_use_saved_transactions(home: RedoHome) -> None:
    redo, old = run_with_long_transaction(home, 100)
    home.run("STOP ext1")
    home.run(f"ALTER EXTRACT ext1, SCN {home.writer.scn + 1}")
    home.run("START ext1")
    until("the Extract reads", lambda: "OGG-01515" in home.home.report("EXT1").read_text())
    assert "OGG-01635" in home.home.report("EXT1").read_text()
    home.writer.commit(old)
    redo.pass_minutes(1)
    redo.wait_for_ids()


def test_brreset_is_for_a_manual_start(home: RedoHome) -> None:
    redo, old = run_with_long_transaction(home, 60)
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
    command = [sys.executable, "-m", "ggshell.cli.main", "--home", str(home.home.root), "EXTRACT"]
    process = subprocess.Popen([*command, "pf", "by_hand.prm", "rf", str(report)])
    try:
        redo.end(old)
        redo.wait_for_ids()
        home.run("STOP ext1")
        assert process.wait(timeout=30) == 0
    finally:
        process.kill()
    assert "BRRESET discards what was saved" in report.read_text()


def test_bounded_recovery_is_refused_for_postgresql(tmp_path: Path) -> None:
    """No files are needed for open transactions there, and the message says so."""
    home = Home(tmp_path)
    home.ensure()
    file = home.parameters("ext1")
    file.write_text(
        "EXTRACT ext1\nUSERID u@127.0.0.1:1/shop, PASSWORD p\nBR BRINTERVAL 1H\nEXTTRAIL ./dirdat/ea\nTABLE shop.*;\n"
    )
    checkpoints.save(
        home.checkpoint("EXT1", GroupKind.EXTRACT),
        Checkpoint("EXT1", GroupKind.EXTRACT, ReadCheckpoint(SourceType.LOG)),
    )
    assert extract.run(home, "EXT1") == 1
    assert "BR applies to Oracle redo only: a PostgreSQL server retains its log" in home.report("EXT1").read_text()


class FastClock(FakeClock):
    """A minute passes with each call."""

    def steady(self) -> float:
        self.advance(60)
        return super().steady()


def test_long_transactions_are_warned_of_and_orphans_are_left_out(home: RedoHome) -> None:
    """Runs in this process with a simulated clock instead of waiting for an interval."""
    redo = RedoByMinute(home)
    home.add("SCN 1")
    old, orphan = home.writer.begin(500), home.writer.begin(601)
    redo.change(old, "old1")
    redo.change(orphan, "lost")
    redo.pass_minutes(70)
    successor = home.writer.begin(601 + 160 * 7)  # The same undo segment and slot, seven uses later.
    assert (successor.usn, successor.slot) == (orphan.usn, orphan.slot)
    home.writer.flush()
    file = home.home.parameters("ext1")
    file.write_text(file.read_text() + "TRANLOGOPTIONS PURGEORPHANEDTRANSACTIONS\nWARNLONGTRANS 1H\n")
    clock = FastClock(1_790_000_000_000_000)
    seen: list[str] = []

    def check() -> None:
        text = home.home.report("EXT1").read_text()
        seen.append(text)
        if len(seen) > 40 or ("OGG-01027" in text and "GGS-00544" in text):
            os.kill(os.getpid(), signal.SIGTERM)

    def body(context: GroupContext) -> None:
        context.runner.every(60, check)
        extract._body(context)

    before = signal.getsignal(signal.SIGTERM)
    try:
        assert run_group(home.home, "EXT1", GroupKind.EXTRACT, body, clock) == 0
    finally:
        signal.signal(signal.SIGTERM, before)
    text = home.home.report("EXT1").read_text()
    assert f"Long Running Transaction: XID {old.text}, Items 1, Extract EXT1, Redo Thread 1, SCN 100" in text
    assert f"Orphaned transaction {orphan.text} with 1 items is skipped" in text
    assert home.ids() == redo.wanted
