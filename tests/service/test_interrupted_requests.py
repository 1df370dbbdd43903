"""The service is killed during a request: nothing is left of it after the next start, or it is complete."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from home_content import home_content
from interrupted_requests import InterruptedRequests, carry_out, service_state
from processes import until
from service_client import RunningService, initial_load

from ggshell.cli.execute import execute
from ggshell.cli.options import Options
from ggshell.cli.session import Session
from ggshell.errors import ConflictError, NotFoundError, StoreError
from ggshell.home.checkpoint import GroupKind
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, own_process_file, read_process_file, write_process_file
from ggshell.home.unfinished import changed_objects, journal_of
from ggshell.service.recovery import Recovery, undo_unfinished
from ggshell.service.steps import Journal, Unfinished
from ggshell.service.undo import RegisteredExtract

pytestmark = pytest.mark.slow
EXTRACT: dict[str, Any] = {
    "config": [
        "EXTRACT ext1",
        "USERIDALIAS north DOMAIN OracleGoldenGate",
        "EXTTRAIL ./dirdat/new/ea",
        "TABLE shop.*;",
    ],
    "source": "tranlogs",
    "credentials": {"alias": "north"},
    "registration": "default",
    "begin": "now",
    "critical": True,
    "targets": [{"name": "ea", "path": "./dirdat/new", "sizeMB": 5}],
}
REPLICAT: dict[str, Any] = {
    "config": ["REPLICAT rep1", "MAP shop.*, TARGET shop.*;"],
    "source": {"name": "ea", "path": "./dirdat"},
    "checkpoint": {"table": "ggadmin.ckpt"},
    "critical": True,
}
PATH: dict[str, Any] = {
    "source": {"uri": "trail://localhost/services/v2/sources?trail=./dirdat/ea"},
    "target": {"uri": "file://./dirdat/da"},
    "description": "to the south",
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that has been used: the folders that are created once exist."""
    root = tmp_path / "home"
    Home(root).ensure()
    state = service_state(root)
    carry_out(state, "POST", "/extracts/LOAD1", initial_load("LOAD1"))
    carry_out(state, "POST", "/extracts/LOAD2", {**initial_load("LOAD2"), "critical": True})
    state.close()
    return root


@pytest.fixture
def source(north: str, home: Path) -> str:
    CredentialStore(Home(home)).add("north", north, "x")
    return north


def slots(dsn: str) -> list[str]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        query = "SELECT slot_name FROM pg_replication_slots WHERE database = current_database()"
        return [name for (name,) in connection.execute(query)]


def content(home: Path, source: str = "") -> dict[str, Any]:
    """Everything that a request may change: files, groups, folders, slots.

    A group that is restored has a previous version of its checkpoint file, which it may not have had.
    """
    found = home_content(home, documents=True)
    files = {folder: [n for n in names if not n.endswith(".previous")] for folder, names in found["files"].items()}
    return {
        **found,
        "files": files,
        "parameters": {path.name: path.read_text() for path in (home / "dirprm").iterdir()},
        "settings": {path.name: path.read_text() for path in (home / "dirdb" / "service").rglob("*.json")},
        "folders": sorted(path for path in (home / "dirdat").rglob("*") if path.is_dir()),
        "slots": slots(source) if source else [],
        "unfinished": changed_objects(Home(home)),
    }


def recover(home: Path) -> None:
    """Do what the start of the service does."""
    state = service_state(home)
    for name in changed_objects(Home(home)):
        undo_unfinished(state, [name])
    state.close()


def kill_at_every_point(
    home: Path, method: str, path: str, body: dict[str, Any], source: str = "", step: int = 1
) -> int:
    """Kill a request at its points and recover; returns the number of the first point after which the request is complete."""
    before = content(home, source)
    with InterruptedRequests() as requests:
        for number in range(0, 200, step):
            code = requests.send(home, method, path, body, number)
            assert code in (0, -signal.SIGKILL)
            interrupted = bool(changed_objects(Home(home)))
            recover(home)
            after = content(home, source)
            if after != before:
                assert not interrupted, f"point {number} left something"
                return number
    raise AssertionError("the request never ended")


def undone(home: Path) -> set[str]:
    """What the events say that was undone."""
    lines = [line for line in (home / "ggserr.log").read_text().splitlines() if "GGS-00935" in line]
    assert all("by admin@h was interrupted: " in line for line in lines)
    return {line.rpartition("interrupted: ")[2] for line in lines}


def test_nothing_is_left_of_an_extract_whose_creation_was_killed(home: Path, source: str) -> None:
    assert kill_at_every_point(home, "POST", "/extracts/EXT1", EXTRACT, source) > 20
    assert undone(home) >= {
        "EXTRACT EXT1 is deleted.",
        "EXTRACT EXT1 is unregistered.",
        "dirprm/ext1.prm is removed.",
        "dirdat/new is removed.",
        "dirdb/service/groupSettings/EXTRACT%20EXT1.json is removed.",
    }
    found = content(home, source)
    assert len(found["slots"]) == 1
    assert [group.write[0].trail for group in found["groups"] if group.group == "EXT1"] == ["./dirdat/new/ea"]


def test_nothing_is_left_of_a_replicat_whose_creation_was_killed(home: Path) -> None:
    assert kill_at_every_point(home, "POST", "/replicats/REP1", REPLICAT) > 10
    assert undone(home) >= {"REPLICAT REP1 is deleted.", "dirprm/rep1.prm is removed."}


def test_nothing_is_left_of_a_path_whose_creation_was_killed(home: Path) -> None:
    assert kill_at_every_point(home, "POST", "/sources/DP1", PATH) > 5
    assert undone(home) >= {"DISTPATH DP1 is deleted."}


def test_an_extract_is_as_it_was_before_a_change_that_was_killed(home: Path, source: str) -> None:
    state = service_state(home)
    carry_out(state, "POST", "/extracts/EXT1", {**EXTRACT, "registration": "none", "targets": []})
    state.close()
    change = {
        **EXTRACT,
        "config": [*EXTRACT["config"], "TABLE hr.*;"],
        "begin": {"at": {"csn": "0/1"}},
        "description": "changed",
        "critical": False,
    }
    assert kill_at_every_point(home, "PATCH", "/extracts/EXT1", change, source, step=2) > 20
    assert undone(home) >= {
        "EXTRACT EXT1 was restored.",
        "EXTRACT EXT1 is unregistered.",
        "dirprm/ext1.prm was restored.",
        "dirdat/new is removed.",
    }


@pytest.fixture
def interrupted(home: Path) -> Path:
    """A home in which the creation of the Replicat REP1 was killed after the group was added."""
    with InterruptedRequests() as requests:
        for number in range(8, 200):  # the first points are before the group
            assert requests.send(home, "POST", "/replicats/REP1", REPLICAT, number) == -signal.SIGKILL
            if "REP1" in names(home):
                return home
            recover(home)
    raise AssertionError


def names(home: Path) -> list[str]:
    return [entry.group for entry in Home(home).groups()]


def test_a_group_that_a_shell_changes_is_not_undone(interrupted: Path) -> None:
    session = Session(Options(home=str(interrupted)))
    assert not execute(session, "ALTER REPLICAT rep1, DESC mine").errors
    session.close()
    assert changed_objects(Home(interrupted)) == []
    recover(interrupted)
    assert "REP1" in names(interrupted)


def test_the_next_change_undoes_first(interrupted: Path) -> None:
    state = service_state(interrupted)
    with pytest.raises(NotFoundError):
        carry_out(state, "DELETE", "/replicats/REP1", None)
    assert "REP1" not in names(interrupted)
    carry_out(state, "POST", "/replicats/REP1", REPLICAT)
    with pytest.raises(ConflictError):
        carry_out(state, "POST", "/replicats/REP1", REPLICAT)
    assert "REP1" in names(interrupted)
    state.close()


def test_a_parameter_file_that_was_edited_since_is_kept(interrupted: Path) -> None:
    file = interrupted / "dirprm" / "rep1.prm"
    file.write_text("REPLICAT rep1\nMAP hr.*, TARGET hr.*;\n")
    recover(interrupted)
    assert "hr.*" in file.read_text()
    assert "dirprm/rep1.prm is kept, because it was changed since." in undone(interrupted)


def test_a_damaged_journal_refuses_changes_until_it_is_removed(interrupted: Path) -> None:
    journal = journal_of(Home(interrupted), "replicats REP1")
    journal.write_bytes(b"{")
    state = service_state(interrupted)
    recovery = Recovery(state)
    recovery.start()
    until("the error is an event", lambda: "remove the file" in (interrupted / "ggserr.log").read_text())
    recovery.close()
    with pytest.raises(StoreError, match="replicats REP1"):
        carry_out(state, "PATCH", "/replicats/REP1", {"critical": True})
    journal.unlink()
    carry_out(state, "PATCH", "/replicats/REP1", {"critical": True})
    state.close()


def test_what_cannot_be_undone_refuses_changes_until_the_object_is_deleted(home: Path) -> None:
    journal = Journal(Home(home), "extracts EXT1")
    journal.write(Unfinished("POST", (RegisteredExtract("EXT1", "OracleGoldenGate.nobody"),)))
    state = service_state(home)
    with pytest.raises(NotFoundError, match="POST was interrupted and cannot be undone: alias nobody"):
        carry_out(state, "POST", "/extracts/EXT1", initial_load("EXT1"))
    with pytest.raises(NotFoundError, match="EXT1"):
        carry_out(state, "DELETE", "/extracts/EXT1", None)
    carry_out(state, "POST", "/extracts/EXT1", initial_load("EXT1"))
    assert not journal.path.exists()
    state.close()


def test_a_group_that_runs_is_not_undone(interrupted: Path) -> None:
    process = Home(interrupted).process("REP1", GroupKind.REPLICAT)
    write_process_file(process, own_process_file(interrupted, ProcessState.RUNNING, "", 0))
    recover(interrupted)
    assert ("REP1" in names(interrupted), (interrupted / "dirprm" / "rep1.prm").exists()) == (True, True)
    assert "REPLICAT REP1 is running: it was not undone" in (interrupted / "ggserr.log").read_text()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[RunningService]:
    running = RunningService(tmp_path / "served")
    yield running
    running.close()


def test_a_service_that_is_killed_while_the_database_creates_the_slot(service: RunningService, north: str) -> None:
    login = {"userid": north, "password": "x"}
    assert service.client().post("/credentials/OracleGoldenGate/north", login).status == 201
    log = service.home / "ggserr.log"
    with psycopg.connect(north) as connection, ThreadPoolExecutor(1) as pool:
        connection.execute("CREATE TABLE held (id int)")
        reply = pool.submit(service.client().post, "/extracts/EXT1", EXTRACT)
        until("the database waits for the transaction", lambda: "GGS-00419" in log.read_text())
        entry = read_process_file(service.home / "dirpcs" / "SERVICE.pcs")
        assert entry is not None
        os.kill(entry.pid, signal.SIGKILL)
        assert reply.exception(60) is not None
        service.run("START SERVICE")
        until("the slot cannot be dropped yet", lambda: "cannot be undone" in log.read_text())
        assert service.client().patch("/extracts/EXT1", {"critical": True}).status in (409, 503)
        connection.rollback()
    with psycopg.connect(north, autocommit=True) as connection:
        active = "SELECT count(*) FROM pg_replication_slots WHERE active AND database = current_database()"
        until("the slot is created", lambda: connection.execute(active).fetchone() == (0,))
    assert service.client().patch("/extracts/EXT1", {"critical": True}).status == 404
    assert (slots(north), (service.home / "dirprm" / "ext1.prm").exists()) == ([], False)
    assert service.client().post("/extracts/EXT1", EXTRACT).status == 201
    assert service.client().delete("/extracts/EXT1").status == 200
