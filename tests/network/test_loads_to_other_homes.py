"""Initial loads with RMTFILE into another home, from a real PostgreSQL: the target trail holds each row once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import psycopg
import pytest
from processes import until, until_state
from trail_kit import read_all
from two_homes import Line, TwoHomes

from ggshell.groups.load_state import LoadState
from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import GroupKind
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, read_process_file
from ggshell.record.image import decode_image
from ggshell.types import TrailPosition

LOAD = ("LOAD1", GroupKind.EXTRACT)
ROWS = 20_000


@pytest.fixture
def source(homes: TwoHomes, north: str) -> Iterator[psycopg.Connection]:
    """A table with rows, and the alias of its database in the source home."""
    CredentialStore(Home(homes.source)).add("north", north, "")
    with psycopg.connect(north, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA a")
        connection.execute("CREATE TABLE a.items (id int PRIMARY KEY, name text)")
        connection.execute(f"INSERT INTO a.items SELECT n, repeat('x', 200) FROM generate_series(1, {ROWS}) n")
        yield connection


def prepare(homes: TwoHomes, port: int, option: str) -> None:
    Home(homes.source).parameters("load1").write_text(
        f"EXTRACT load1\nUSERIDALIAS north\nRMTHOST 127.0.0.1, MGRPORT {port}\nRMTFILE ./dirdat/da, MEGABYTES 2, {option}\n"
        "TABLE a.*;\n"
    )
    homes.run("ADD EXTRACT load1, SOURCEISTABLE")


def load(homes: TwoHomes) -> None:
    """Run the load until it is complete."""
    homes.run("START EXTRACT load1")
    until_state(Home(homes.source), *LOAD, ProcessState.STOPPED)
    state = load_state(homes)
    assert state is not None
    assert state.complete


def load_state(homes: TwoHomes) -> LoadState | None:
    return LoadState.of(checkpoints.load(Home(homes.source).checkpoint(*LOAD)))


def arrived(homes: TwoHomes) -> list[int]:
    """The keys of the rows in the target trail, in order."""
    return [int(decode_image(row[3])[0][1] or b"") for row in read_all(homes.written)]  # type: ignore[arg-type]


def test_an_interrupted_load_begins_again_and_the_file_holds_it_once(
    homes: TwoHomes, line: Line, source: psycopg.Connection
) -> None:
    line.cut_after = [2_500_000, 20_000]
    prepare(homes, line.port, "PURGE")
    load(homes)
    assert arrived(homes) == list(range(1, ROWS + 1))
    assert line.connections == 3
    assert "GGS-00950" in Home(homes.source).report("LOAD1").read_text()
    load(homes)
    assert arrived(homes) == list(range(1, ROWS + 1))
    assert f"{ROWS}" in homes.run("INFO EXTRACT load1, TASKS").replace(",", "")


def test_append_keeps_earlier_loads_and_removes_only_an_interrupted_one(
    homes: TwoHomes, line: Line, source: psycopg.Connection
) -> None:
    prepare(homes, line.port, "APPEND")
    load(homes)
    once = list(range(1, ROWS + 1))
    assert arrived(homes) == once
    earlier = homes.written.sequences()
    line.stall_after = 2_500_000
    homes.run("START EXTRACT load1")
    until("a part of the load arrived", lambda: homes.written.sequences()[-1] > earlier[-1], 30)
    found = read_process_file(Home(homes.source).process(*LOAD))
    assert found is not None
    os.kill(found.pid, signal.SIGKILL)
    until_state(Home(homes.source), *LOAD, ProcessState.ABENDED)
    line.stall_after = None
    line.resume()
    load(homes)
    assert arrived(homes) == once * 2


def test_purge_does_not_touch_files_of_another_sender(homes: TwoHomes, source: psycopg.Connection) -> None:
    homes.write(5)
    homes.start_path()
    homes.until_equal()
    prepare(homes, homes.target.port, "PURGE")
    homes.run("START EXTRACT load1")
    until_state(Home(homes.source), *LOAD, ProcessState.ABENDED)
    assert "GGS-00954" in Home(homes.source).report("LOAD1").read_text()
    homes.until_equal()


def test_files_that_a_replicat_of_the_other_home_has_read_are_not_written_again(
    homes: TwoHomes, source: psycopg.Connection
) -> None:
    prepare(homes, homes.target.port, "PURGE")
    load(homes)
    homes.target.run("ADD REPLICAT rload, EXTTRAIL ./dirdat/da, NODBCHECKPOINT")
    target = Home(homes.target.home)
    path = target.checkpoint("RLOAD", GroupKind.REPLICAT)
    read = checkpoints.load(path)
    checkpoints.save(path, read._replace(read=read.read.reached(TrailPosition(0, 5000), 0)))
    homes.run("START EXTRACT load1")
    until_state(Home(homes.source), *LOAD, ProcessState.ABENDED)
    report = Home(homes.source).report("LOAD1").read_text()
    assert "GGS-00558" in report
    assert "REPLICAT RLOAD has read rows of a load in" in report
    assert arrived(homes) == list(range(1, ROWS + 1))
    checkpoints.save(path, read)
    load(homes)
    assert arrived(homes) == list(range(1, ROWS + 1))
