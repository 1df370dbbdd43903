"""A path that the target starts (RECVPATH): every row arrives once, and only known homes read a trail."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import until, until_state
from reading_homes import ReadingHomes
from two_homes import Line, fingerprint

from ggshell.groups.purge import purge
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.peers import Peers
from ggshell.home.process_file import ProcessState
from ggshell.network.trail_readers import readers_of
from ggshell.parameters.process_parameters import PurgeRule


@pytest.fixture
def reading(tmp_path: Path) -> Iterator[ReadingHomes]:
    found = ReadingHomes(tmp_path)
    yield found
    found.close()


def abended(reading: ReadingHomes) -> None:
    until_state(Home(reading.target), "RP1", GroupKind.RECVPATH, ProcessState.ABENDED)


def test_rows_arrive_from_the_other_home_and_again_after_each_restart(reading: ReadingHomes) -> None:
    reading.write(50, max_bytes=2000)
    reading.start_path()
    reading.until_equal()
    reading.write(50, max_bytes=2000)
    reading.until_equal()
    assert "RECVPATH" in reading.run("INFO ALL")
    assert "RUNNING" in reading.run("STATUS RECVPATH rp1")
    assert "sources?trail=ea" in reading.run("INFO RECVPATH rp1 DETAIL")
    assert "rp1" in reading.run("STATS RECVPATH rp1, TOTAL").lower()
    reading.run("STOP RECVPATH rp1")
    reading.write(50)
    reading.run("START RECVPATH rp1")
    reading.until_equal()
    until("passed files of the copy are removed", lambda: len(reading.copy.sequences()) == 1)


def test_every_row_arrives_once_after_kills_of_path_and_service(reading: ReadingHomes) -> None:
    reading.write(200)
    reading.start_path()
    for round_ in range(3):
        reading.write(300)
        reading.kill_path()
        abended(reading)
        reading.write(300)
        if round_ == 1:
            reading.kill_service()
        else:
            reading.source.run("STOP SERVICE")
        reading.run("START RECVPATH rp1")
        reading.source.run("START SERVICE")
    reading.until_equal()


def test_a_large_trail_is_shown_while_it_arrives(reading: ReadingHomes) -> None:
    reading.write(20_000, rows=2, max_bytes=1 << 20)
    reading.start_path()
    reading.until_equal(120)


def test_a_path_connects_again_by_itself_when_the_line_was_cut(reading: ReadingHomes) -> None:
    line = Line(reading.source.port)
    reading.trust(line.port)
    reading.start_path(line.port)
    for _ in range(3):
        reading.write(100)
        until("a row arrived", lambda: bool(reading.rows()))
        line.cut()
    reading.write(100)
    reading.until_equal()
    assert "GGS-00950" in reading.report()
    assert "Reconnected" in reading.report()
    line.close()


def test_a_connection_that_is_cut_after_any_number_of_bytes_loses_nothing(reading: ReadingHomes) -> None:
    line = Line(reading.source.port)
    reading.trust(line.port)
    line.cut_after = [1, 40, 900, 2500, 4000]
    reading.write(30)
    reading.start_path(line.port)
    reading.until_equal(180)
    line.close()


def test_an_unknown_reader_is_refused_with_the_statement_that_adds_it(reading: ReadingHomes) -> None:
    Peers(Home(reading.source.home)).delete("target")
    reading.write(5)
    reading.start_path()
    abended(reading)
    assert "GGS-00951" in reading.report()
    statement = f"ADD PEER {os.uname().nodename.partition('.')[0]}, FINGERPRINT {fingerprint(reading.target)}"
    assert statement in reading.report().replace("\n", " ")
    reading.source.run(statement)
    reading.run("START RECVPATH rp1")
    reading.until_equal()


def test_a_connection_ends_with_the_trust_in_its_reader(reading: ReadingHomes) -> None:
    reading.write(5)
    reading.start_path()
    reading.until_equal()
    Peers(Home(reading.source.home)).delete("target")
    abended(reading)
    assert "GGS-00951" in reading.report()


def test_a_trail_outside_the_source_home_is_refused(reading: ReadingHomes, tmp_path: Path) -> None:
    reading.write(5)
    shutil.copytree(reading.read.folder, tmp_path / "elsewhere")
    reading.add_path(trail=f"{tmp_path}/elsewhere/ea")
    reading.run("START RECVPATH rp1")
    abended(reading)
    assert "is outside this home" in reading.report()
    assert reading.rows() == []


def test_a_path_continues_where_alter_says_and_repeats_nothing(reading: ReadingHomes) -> None:
    reading.write(50, max_bytes=2000)
    reading.start_path()
    reading.until_equal()
    reading.run("STOP RECVPATH rp1; ALTER RECVPATH rp1 BEGIN SEQNO 1 RBA 0; START RECVPATH rp1")
    reading.write(50, max_bytes=2000)
    reading.until_equal()
    reading.run("STOP RECVPATH rp1")
    reading.write(5)
    reading.run("ALTER RECVPATH rp1 BEGIN NOW; START RECVPATH rp1")
    skipped = len(reading.rows())
    until("the path has connected", lambda: bool(reading.copy.sequences()))
    until("the path runs", lambda: "At EOF" in reading.run("SEND RECVPATH rp1 STATUS"))
    reading.write(5)
    until("new rows arrive", lambda: len(reading.rows()) > skipped)
    assert len(reading.rows()) == skipped + 10


def test_a_source_that_was_written_again_stops_the_path(reading: ReadingHomes, tmp_path: Path) -> None:
    reading.write(20)
    shutil.copytree(reading.read.folder, tmp_path / "backup")
    reading.write(20)
    reading.start_path()
    reading.until_equal()
    reading.run("STOP RECVPATH rp1")
    shutil.rmtree(reading.read.folder)
    shutil.copytree(tmp_path / "backup", reading.read.folder)
    reading.run("START RECVPATH rp1")
    abended(reading)
    assert "re-created, or restored" in reading.report().replace("\n", " ")
    reading.write(40)
    reading.run("START RECVPATH rp1")
    abended(reading)
    assert "GGS-00962" in reading.report()


def test_the_source_keeps_the_files_that_a_path_has_not_received(reading: ReadingHomes) -> None:
    home, rule = Home(reading.source.home), PurgeRule("./dirdat/*", True)
    reading.write(50, max_bytes=2000)
    last = reading.read.sequences()[-1]
    reading.start_path()
    reading.until_equal()
    until("the source knows what was received", lambda: [each.seqno for each in readers_of(reading.read)] == [last])
    reading.run("STOP RECVPATH rp1")
    reading.write(50, max_bytes=2000)
    purge(home, rule, 0)
    assert reading.read.sequences()[0] == last
    assert "Deleted RECVPATH RP1" in reading.run("DELETE RECVPATH rp1")
    assert readers_of(reading.read) == []
    assert not reading.copy.folder.exists()


def test_a_source_that_was_not_told_forgets_a_path_by_a_statement(reading: ReadingHomes) -> None:
    reading.write(5)
    reading.start_path()
    reading.until_equal()
    reading.run("STOP RECVPATH rp1")
    reading.source.run("STOP SERVICE")
    assert "DELETE RECVPATH RP1 is run there" in reading.run("DELETE RECVPATH rp1")
    assert readers_of(reading.read)
    assert "is no longer kept" in reading.source.run("DELETE RECVPATH rp1")
    assert readers_of(reading.read) == []
