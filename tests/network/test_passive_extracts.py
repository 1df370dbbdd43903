"""Passive Extracts: an alias in the target home starts and stops the Extract, and receives its trail."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import until, until_state
from reading_homes import ReadingHomes

from ggshell.clock import SystemClock
from ggshell.demo.processes import end_processes
from ggshell.groups.purge import purge, received_rules
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, read_process_file
from ggshell.network.trail_readers import readers_of
from ggshell.trail.name import TrailName

PARAMETERS = "EXTRACT fin\n{}RMTTRAIL ./dirdat/rt\nTABLE *.*;\n"


class PassiveHomes(ReadingHomes):
    """A source home with the passive pump FIN, which reads trail ea, and a target home with its alias FINA."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.sent, self.written = TrailName(self.read.folder, "rt"), TrailName(self.target / "dirdat", "rt")
        self.copy = TrailName(self.target / "dirtmp" / "FINA", "rt")
        self.parameters()
        self.at_source("START MANAGER")
        self.at_source("ADD EXTRACT fin, EXTTRAILSOURCE ./dirdat/ea, PASSIVE; ADD RMTTRAIL ./dirdat/rt, EXTRACT fin")

    def parameters(self, lines: str = "RMTHOSTOPTIONS COMPRESS\n") -> None:
        Home(self.source.home).parameters("FIN").write_text(PARAMETERS.format(lines))

    def at_source(self, statement: str) -> str:
        return self.source.run(statement)

    def add_alias(self, name: str = "fina", code: int = 0) -> str:
        return self.run(f"ADD EXTRACT {name}, RMTHOST 127.0.0.1, MGRPORT {self.source.port}, RMTNAME fin", code)

    def states(self, source: ProcessState, alias: ProcessState) -> None:
        until_state(Home(self.source.home), "FIN", GroupKind.EXTRACT, source)
        until_state(Home(self.target), "FINA", GroupKind.EXTRACT, alias)

    def report(self) -> str:
        return (self.target / "dirrpt" / "FINA.rpt").read_text().replace("\n", " ")

    def close(self) -> None:
        end_processes(self.source.home)
        super().close()


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[PassiveHomes]:
    found = PassiveHomes(tmp_path)
    yield found
    found.close()


def test_an_alias_starts_its_passive_extract_receives_its_trail_and_stops_it(homes: PassiveHomes) -> None:
    homes.write(50)
    assert "EXTRACT added." in homes.add_alias()
    homes.run("START EXTRACT fina")
    homes.until_equal()
    homes.states(ProcessState.RUNNING, ProcessState.RUNNING)
    shown = homes.run("INFO EXTRACT fina, DETAIL")
    assert "of the passive EXTRACT FIN" in shown
    assert f"127.0.0.1:{homes.source.port}" in shown
    assert "./dirdat/rt" in shown
    assert "Connected since" in shown
    assert f"In the source home at 127.0.0.1:{homes.source.port}:\n\nEXTRACT    FIN " in shown
    assert "In the source home" not in homes.run("INFO EXTRACT *")
    assert "Passive" in homes.at_source("INFO EXTRACT fin")
    assert "RUNNING" in homes.run("STATUS EXTRACT fina")
    assert "LAG" in homes.run("LAG EXTRACT fina").upper()
    homes.run("STOP EXTRACT fina")
    homes.states(ProcessState.STOPPED, ProcessState.STOPPED)
    homes.write(50)
    homes.run("START EXTRACT *")
    homes.until_equal()
    homes.run("STOP EXTRACT fina; DELETE EXTRACT fina !")
    assert readers_of(homes.sent) == []
    assert not homes.copy.folder.exists()
    assert homes.rows()


def test_an_alias_abends_with_its_passive_extract_and_starts_it_again(homes: PassiveHomes) -> None:
    homes.write(5)
    homes.add_alias()
    homes.run("START EXTRACT fina")
    homes.until_equal()
    homes.at_source("KILL EXTRACT fin")
    homes.states(ProcessState.ABENDED, ProcessState.ABENDED)  # the first was killed
    assert "GGS-00967" in homes.report()
    homes.write(5)
    homes.run("START EXTRACT fina")
    homes.until_equal()


def test_files_that_the_alias_has_received_are_removed_in_the_source_home(homes: PassiveHomes) -> None:
    home = Home(homes.source.home)
    homes.write(10)
    homes.at_source("START EXTRACT fin")
    until("the trail has a file", lambda: bool(homes.sent.sequences()))
    homes.at_source("SEND EXTRACT fin, ROLLOVER")
    homes.write(10)
    until("the trail has two files", lambda: len(homes.sent.sequences()) == 2)
    assert [purge(home, rule, SystemClock().now()) for rule in received_rules(home)] == [[]]
    homes.add_alias()
    homes.run("START EXTRACT fina")
    homes.until_equal()
    last = homes.sent.sequences()[-1]
    until("the source knows what was received", lambda: [each.seqno for each in readers_of(homes.sent)] == [last])
    assert [len(purge(home, rule, SystemClock().now())) for rule in received_rules(home)] == [1]
    homes.write(10)
    homes.until_equal()


def test_a_second_alias_of_a_passive_extract_is_refused(homes: PassiveHomes) -> None:
    homes.write(5)
    homes.add_alias()
    homes.run("START EXTRACT fina")
    homes.until_equal()
    homes.add_alias("other")
    homes.run("START EXTRACT other")
    until_state(Home(homes.target), "OTHER", GroupKind.EXTRACT, ProcessState.ABENDED)
    shown = homes.run("INFO EXTRACT other")
    assert "GGS-00966" in shown
    assert "belongs to FINA" in shown
    homes.states(ProcessState.RUNNING, ProcessState.RUNNING)


def test_statements_that_do_not_fit_a_passive_or_an_alias_extract_are_refused(homes: PassiveHomes) -> None:
    homes.add_alias()
    assert "is an alias" in homes.run("ALTER EXTRACT fina, BEGIN NOW", 1)
    assert "is an alias" in homes.run("ADD RMTTRAIL ./dirdat/xx, EXTRACT fina", 1)
    homes.parameters("RMTHOST 127.0.0.1, MGRPORT 1\n")
    homes.run("START EXTRACT fina")
    until_state(Home(homes.target), "FINA", GroupKind.EXTRACT, ProcessState.ABENDED)
    assert "OGG-00055" in homes.report() + (homes.source.home / "dirrpt" / "FIN.rpt").read_text()


def test_a_path_that_reads_the_trail_of_a_passive_extract_does_not_depend_on_it(homes: PassiveHomes) -> None:
    homes.write(5)
    homes.at_source("START EXTRACT fin")
    until("the trail has a file", lambda: bool(homes.sent.sequences()))
    homes.run(f"ADD RECVPATH rp1, SOURCE {homes.url(trail='rt')}, TARGET ./dirdat/rt; START RECVPATH rp1")
    homes.until_equal()
    homes.at_source("STOP EXTRACT fin; START EXTRACT fin")
    homes.write(5)
    homes.until_equal()
    until_state(Home(homes.target), "RP1", GroupKind.RECVPATH, ProcessState.RUNNING)


def test_an_alias_waits_for_a_source_that_cannot_be_reached(homes: PassiveHomes) -> None:
    homes.write(5)
    homes.add_alias()
    homes.at_source("STOP SERVICE")
    homes.run("START EXTRACT fina")
    until("INFO shows the reason", lambda: "cannot be reached" in homes.run("INFO EXTRACT fina"))
    homes.at_source("START SERVICE")
    homes.until_equal()
    homes.at_source("STOP SERVICE")
    homes.run("STOP EXTRACT fina")
    assert "The passive Extract was not stopped" in homes.report()


def test_an_alias_stops_while_the_source_starts_its_passive_extract(homes: PassiveHomes) -> None:
    homes.write(5)
    homes.add_alias()
    manager = read_process_file(Home(homes.source.home).manager)
    assert manager is not None
    os.kill(manager.pid, signal.SIGSTOP)
    try:
        homes.run("START EXTRACT fina")
        began = SystemClock().steady()
        homes.run("STOP EXTRACT fina")
        assert SystemClock().steady() - began < 30
    finally:
        os.kill(manager.pid, signal.SIGCONT)
    homes.run("START EXTRACT fina")
    homes.until_equal()
