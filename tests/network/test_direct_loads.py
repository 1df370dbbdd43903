"""Direct loads (RMTTASK, SPECIALRUN) between real databases: the Extract starts the Replicat and ends with its result."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest
from processes import until, until_state
from two_homes import Line, TwoHomes

from ggshell.home.checkpoint import GroupKind
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState
from ggshell.trail.name import TrailName

LOAD, TASK = ("LOAD1", GroupKind.EXTRACT), ("RLOAD", GroupKind.REPLICAT)
ROWS = 5000
EXTRACT = "EXTRACT load1\nUSERIDALIAS north\n{hosts}TABLE a.*;\n"
REPLICAT = "REPLICAT rload\nUSERIDALIAS south\nSPECIALRUN\nMAP a.*, TARGET b.*;\n"
TABLE = "CREATE TABLE {schema}.items (id int PRIMARY KEY, name text)"


@pytest.fixture
def count(north: str, south: str) -> Iterator[Callable[[], int]]:
    """A full table in north and an empty one in south; returns the number of rows in south."""
    with psycopg.connect(north, autocommit=True) as source, psycopg.connect(south, autocommit=True) as target:
        source.execute("CREATE SCHEMA a")
        source.execute(TABLE.format(schema="a"))
        source.execute(f"INSERT INTO a.items SELECT n, repeat('x', 200) FROM generate_series(1, {ROWS}) n")
        target.execute("CREATE SCHEMA b")
        target.execute(TABLE.format(schema="b"))

        def rows() -> int:
            found = target.execute("SELECT count(*) FROM b.items").fetchone()
            assert found is not None
            return int(found[0])

        yield rows


def prepare(homes: TwoHomes, north: str, south: str, hosts: str) -> None:
    CredentialStore(Home(homes.source)).add("north", north, "")
    CredentialStore(Home(homes.target.home)).add("south", south, "")
    Home(homes.source).parameters("load1").write_text(EXTRACT.format(hosts=hosts))
    Home(homes.target.home).parameters("rload").write_text(REPLICAT)
    homes.run("ADD EXTRACT load1, SOURCEISTABLE")


def task_files(homes: TwoHomes) -> list[int]:
    """The files of the load in the target home."""
    return TrailName(homes.target.home / "dirtmp" / "task-RLOAD", "tk").sequences()


def report(homes: TwoHomes) -> str:
    return Home(homes.source).report("LOAD1").read_text()


def test_the_extract_starts_the_task_and_ends_with_its_result(
    homes: TwoHomes, line: Line, north: str, south: str, count: Callable[[], int]
) -> None:
    line.cut_after = [400_000] * 2
    prepare(homes, north, south, f"RMTTASK REPLICAT, GROUP rload\nRMTHOST 127.0.0.1, MGRPORT {line.port}\n")
    homes.target.run("ADD REPLICAT rload, SPECIALRUN; START MANAGER")
    refused = homes.target.run("START REPLICAT rload", code=1)
    assert "is a task (SPECIALRUN)" in refused
    homes.run("START EXTRACT load1")
    until_state(Home(homes.source), *LOAD, ProcessState.STOPPED)
    assert count() == ROWS
    assert f"Task REPLICAT RLOAD at 127.0.0.1:{line.port} has applied 5,000 rows" in report(homes).replace("\n", " ")
    assert "Task (SPECIALRUN)" in homes.target.run("INFO REPLICAT rload")
    assert "RLOAD" not in homes.target.run("INFO REPLICAT *")
    assert task_files(homes) == []


def test_a_line_that_is_cut_while_the_task_applies_does_not_start_it_twice(
    homes: TwoHomes, line: Line, north: str, south: str, count: Callable[[], int]
) -> None:
    prepare(homes, north, south, f"RMTHOST 127.0.0.1, MGRPORT {line.port}\nRMTTASK REPLICAT, GROUP rload\n")
    homes.target.run("ADD REPLICAT rload, SPECIALRUN; START MANAGER")
    with psycopg.connect(south) as blocking:
        blocking.execute("LOCK TABLE b.items IN SHARE MODE")
        homes.run("START EXTRACT load1")
        until_state(Home(homes.target.home), *TASK, ProcessState.RUNNING)
        line.cut()
        until("the Extract asks again", lambda: "Reconnected" in report(homes) or line.connections > 3)
    until_state(Home(homes.source), *LOAD, ProcessState.STOPPED)
    assert count() == ROWS
    assert report(homes).count("GGS-00551") == 1


def test_a_task_that_cannot_apply_gives_the_extract_its_error(
    homes: TwoHomes, north: str, south: str, count: Callable[[], int]
) -> None:
    prepare(homes, north, south, f"RMTHOST 127.0.0.1, MGRPORT {homes.target.port}\nRMTTASK REPLICAT, GROUP rload\n")
    homes.target.run("ADD REPLICAT rload, SPECIALRUN; START MANAGER")
    with psycopg.connect(south, autocommit=True) as target:
        target.execute("INSERT INTO b.items VALUES (17, 'in the way')")
    homes.run("START EXTRACT load1")
    until_state(Home(homes.source), *LOAD, ProcessState.ABENDED)
    assert "GGS-00973" in report(homes)
    assert "duplicate key" in report(homes)
    assert "its load is kept in ./dirtmp/task-RLOAD/tk" in " ".join(report(homes).split())
    assert task_files(homes)
    assert "Status COMPLETED" in homes.target.run("INFO RECVPATH ALL")  # it has arrived; INFO REPLICAT has its result
    with psycopg.connect(south, autocommit=True) as target:
        target.execute("TRUNCATE b.items")
    homes.run("START EXTRACT load1")
    until_state(Home(homes.source), *LOAD, ProcessState.STOPPED)
    assert count() == ROWS
    assert task_files(homes) == []


def test_what_is_missing_in_the_target_home_is_named(
    homes: TwoHomes, north: str, south: str, count: Callable[[], int]
) -> None:
    prepare(homes, north, south, f"RMTHOST 127.0.0.1, MGRPORT {homes.target.port}\nRMTTASK REPLICAT, GROUP rload\n")
    for statement, missing in (
        ("", "REPLICAT RLOAD does not exist in the target home"),
        ("ADD REPLICAT rload, EXTTRAIL ./dirdat/xx, NODBCHECKPOINT", "is not a task"),
        ("DELETE REPLICAT rload !; ADD REPLICAT rload, SPECIALRUN", "Manager is not running in the target home"),
    ):
        if statement:
            homes.target.run(statement)
        homes.run("START EXTRACT load1")
        until_state(Home(homes.source), *LOAD, ProcessState.ABENDED)
        assert missing in report(homes).replace("\n", " ")
        assert "GGS-00972" in report(homes)
    assert count() == 0


def test_a_direct_load_within_one_home(homes: TwoHomes, north: str, south: str, count: Callable[[], int]) -> None:
    prepare(homes, north, south, "RMTHOST localhost, MGRPORT 7809\nRMTTASK REPLICAT, GROUP rload\n")
    CredentialStore(Home(homes.source)).add("south", south, "")
    Home(homes.source).parameters("rload").write_text(REPLICAT)
    homes.run("ADD REPLICAT rload, SPECIALRUN; START EXTRACT load1")
    until_state(Home(homes.source), *LOAD, ProcessState.STOPPED)
    assert count() == ROWS
    until_state(Home(homes.source), *TASK, ProcessState.STOPPED)
