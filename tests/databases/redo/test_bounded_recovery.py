"""Bounded Recovery through real processes: an Extract with a transaction that has been open for hours is killed and goes on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import until, until_state
from redo_home import RedoHome

from ggshell.demo.redo_writer import OpenXid
from ggshell.process.state import ProcessState
from ggshell.store.checkpoint import GroupType

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
