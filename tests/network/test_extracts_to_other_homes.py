"""A primary Extract that writes its trail in another home, on a real PostgreSQL: no row is lost or doubled."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from processes import until, until_state
from trail_kit import read_all
from two_homes import Line, TwoHomes

from ggshell.clock import SystemClock
from ggshell.home.checkpoint import GroupKind
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, read_process_file
from ggshell.record.image import decode_image
from ggshell.service.group_snapshot import snapshots
from ggshell.service.transfer_metrics import sent_metrics

EXTRACT = ("EXT1", GroupKind.EXTRACT)


@pytest.fixture
def source(homes: TwoHomes, line: Line, north: str) -> Iterator[psycopg.Connection]:
    """Extract EXT1 writes a.items of north to ``./dirdat/da`` of the target home, through a line."""
    CredentialStore(Home(homes.source)).add("north", north, "")
    Home(homes.source).parameters("ext1").write_text(
        f"EXTRACT ext1\nUSERIDALIAS north\nRMTHOST 127.0.0.1, MGRPORT {line.port}\nRMTTRAIL ./dirdat/da\nTABLE a.*;\n"
    )
    with psycopg.connect(north, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA a")
        connection.execute("CREATE TABLE a.items (id int PRIMARY KEY, name text)")
        homes.run(
            "DBLOGIN USERIDALIAS north; ADD TRANDATA a.items; REGISTER EXTRACT ext1; ADD EXTRACT ext1, TRANLOG, BEGIN NOW"
            "; ADD RMTTRAIL ./dirdat/da, EXTRACT ext1; START EXTRACT ext1"
        )
        yield connection


def insert(connection: psycopg.Connection, first: int, last: int) -> None:
    for number in range(first, last):
        connection.execute("INSERT INTO a.items VALUES (%s, %s)", [number, f"row {number}"])


def arrived(homes: TwoHomes) -> list[int]:
    """The keys of the inserted rows in the target trail, in order."""
    if not homes.written.folder.is_dir():
        return []
    return [int(decode_image(row[3])[0][1] or b"") for row in read_all(homes.written)]  # type: ignore[arg-type]


def test_every_row_arrives_once_after_cut_lines_and_kills(
    homes: TwoHomes, line: Line, source: psycopg.Connection
) -> None:
    for number in range(6):
        insert(source, 100 * number, 100 * number + 50)
        if number % 2:
            found = read_process_file(Home(homes.source).process(*EXTRACT))
            assert found is not None
            os.kill(found.pid, signal.SIGKILL)
            until_state(Home(homes.source), *EXTRACT, ProcessState.ABENDED)
            insert(source, 100 * number + 50, 100 * number + 100)
            homes.run("START EXTRACT ext1")
        else:
            line.cut_after = [5000, 200]
            line.cut()
            insert(source, 100 * number + 50, 100 * number + 100)
        until("some rows arrived", lambda number=number: len(arrived(homes)) >= 100 * number + 50)  # type: ignore[misc]
    until("all rows arrived", lambda: len(arrived(homes)) >= 600)
    assert arrived(homes) == list(range(600))
    assert "GGS-00950" in (homes.source / "ggserr.log").read_text()
    assert not list((homes.source / "dirdat").glob("da*"))


def test_a_large_transaction_that_the_line_interrupts_arrives_whole(
    homes: TwoHomes, line: Line, source: psycopg.Connection
) -> None:
    insert(source, 0, 10)
    until("the rows arrived", lambda: len(arrived(homes)) == 10)
    line.cut_after = [300_000]
    line.cut()
    source.execute("INSERT INTO a.items SELECT n, repeat('x', 200) FROM generate_series(10, 20000) n")
    insert(source, 20001, 20003)
    until("all rows arrived", lambda: len(arrived(homes)) >= 20003)
    assert arrived(homes) == list(range(20003))
    assert line.connections >= 3


def test_rows_wait_in_the_database_while_no_receiver_can_be_reached(
    homes: TwoHomes, source: psycopg.Connection, tmp_path: Path
) -> None:
    insert(source, 0, 10)
    until("the rows arrived", lambda: len(arrived(homes)) == 10)
    homes.target.run("STOP SERVICE")
    insert(source, 10, 30)
    report = Home(homes.source).report("EXT1")
    until("the Extract tries again", lambda: "GGS-00950" in report.read_text() and "retrying" in report.read_text())
    homes.target.run("START SERVICE")
    until("all rows arrived", lambda: len(arrived(homes)) >= 30)
    assert arrived(homes) == list(range(30))


def test_the_connection_of_an_extract_is_shown_and_measured(
    homes: TwoHomes, line: Line, source: psycopg.Connection
) -> None:
    insert(source, 0, 10)
    until("the rows arrived", lambda: len(arrived(homes)) == 10)
    until("the round trip is measured", lambda: " ms" in homes.run("INFO EXTRACT ext1"))
    assert "Connected since" in homes.run("SEND EXTRACT ext1 STATUS")
    assert path_metrics(homes)["ggshell_path_connected"] == 1
    assert path_metrics(homes)["ggshell_path_bytes_total"] > 0
    homes.target.run("STOP SERVICE")
    until("the Extract waits", lambda: "Waiting since" in homes.run("INFO EXTRACT ext1"))
    assert f"Waiting for the receiver at 127.0.0.1:{line.port}" in homes.run("SEND EXTRACT ext1 STATUS")
    assert path_metrics(homes)["ggshell_path_connected"] == 0


def path_metrics(homes: TwoHomes) -> dict[str, float]:
    found = sent_metrics(snapshots(Home(homes.source), SystemClock().now()))
    return {sample.name: sample.value for metric in found for sample in metric.samples}
