"""A request that fails half way leaves the home, and the source database, as they were."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import psycopg
import pytest
from black_hole import BlackHole
from home_content import home_content
from service_client import RunningService, ServiceClient, initial_load

from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home

pytestmark = pytest.mark.slow
CONFIG = ["EXTRACT ext1", "USERIDALIAS north DOMAIN OracleGoldenGate", "EXTTRAIL ea", "TABLE shop.*;"]
BODY: dict[str, Any] = {
    "config": CONFIG,
    "source": "tranlogs",
    "credentials": {"alias": "north"},
    "registration": "default",
    "begin": "now",
    "targets": [{"name": "ea", "sizeMB": 5}],
}


@pytest.fixture
def source(north: str, client: ServiceClient) -> Iterator[str]:
    """A source database and its alias."""
    with psycopg.connect(north, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA shop; CREATE TABLE shop.orders (id int PRIMARY KEY)")
    client.put("/credentials/OracleGoldenGate/north", {"userid": north, "password": "x"})
    client.post("/credentials/OracleGoldenGate/north", {"userid": north, "password": "x"})
    yield north
    client.delete("/credentials/OracleGoldenGate/north")


def slots(dsn: str) -> list[str]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        query = "SELECT slot_name FROM pg_replication_slots WHERE database = current_database()"
        return [name for (name,) in connection.execute(query)]


def folders(home: Path) -> list[Path]:
    """The folders for trails; the others are created once."""
    return sorted(path for path in (home / "dirdat").rglob("*") if path.is_dir())


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"config": ["EXTRACT ext1", "NO SUCH PARAMETER"]}, id="parameters"),
        pytest.param({"begin": {"at": {"csn": "FF/FF"}}}, id="a position after the end of the log"),
        pytest.param({"begin": {"where": 1}}, id="a begin without a meaning"),
        pytest.param({"targets": [{"name": "ea"}, {"name": "ea"}]}, id="a trail twice"),
        pytest.param({"targets": [{"name": "ea", "sizeMB": -5}]}, id="a size below zero"),
        pytest.param({"credentials": {"alias": "nobody"}}, id="an alias that does not exist"),
        pytest.param({"description": "a\nb"}, id="a description of two lines"),
        pytest.param({"targets": [{"name": "ea", "path": "./dirdat/a/b"}, {"name": "long"}]}, id="a trail name"),
        pytest.param({"targets": [{"name": "ea", "path": "./dirdat/a/b", "sizeMB": -5}]}, id="a size in a new folder"),
        pytest.param({"targets": [{"name": "ea", "path": "./GLOBALS/a"}]}, id="a folder below a file"),
        pytest.param({"status": "sleeping"}, id="a status that does not exist"),
    ],
)
def test_nothing_is_left_of_an_extract_that_could_not_be_created(
    service: RunningService, client: ServiceClient, source: str, change: dict[str, Any]
) -> None:
    (service.home / "GLOBALS").touch()
    before = home_content(service.home, documents=True), folders(service.home)
    reply = client.post("/extracts/EXT1", {**BODY, **change})
    assert 400 <= reply.status < 500 or reply.status == 503, reply.text
    assert (home_content(service.home, documents=True), folders(service.home)) == before
    assert slots(source) == []


def test_a_parameter_file_that_is_refused_leaves_the_former_one(
    service: RunningService, client: ServiceClient, source: str
) -> None:
    assert client.post("/extracts/EXT1", BODY).status == 201
    before = home_content(service.home, documents=True)
    file = service.home / "dirprm" / "ext1.prm"
    text = file.read_text()
    assert client.patch("/extracts/EXT1", {"config": ["EXTRACT ext1", "BAD"], "description": "x"}).status == 400
    assert (file.read_text(), home_content(service.home, documents=True)) == (text, before)
    assert client.delete("/extracts/EXT1").status == 200
    assert slots(source) == []


def test_a_source_that_does_not_answer_gives_503_and_leaves_nothing(
    service: RunningService, client: ServiceClient, source: str
) -> None:
    hole = BlackHole()
    login = f"postgresql://u@127.0.0.1:{hole.port}/x"
    client.post("/credentials/OracleGoldenGate/hole", {"userid": login, "password": "x"})
    before = home_content(service.home, documents=True)
    config = [line.replace("north", "hole") for line in CONFIG]
    reply = client.post("/extracts/EXT1", {**BODY, "config": config, "credentials": {"alias": "hole"}})
    hole.close()
    assert (reply.status, "retry-after" in reply.headers) == (503, True), reply.text
    assert home_content(service.home, documents=True) == before
    client.delete("/credentials/OracleGoldenGate/hole")


def test_a_group_that_exists_is_not_changed_by_another_creation(service: RunningService, client: ServiceClient) -> None:
    body = {"source": "tables", "config": ["EXTRACT load1", "TABLE s.*;"]}
    assert client.post("/extracts/LOAD1", body).status == 201
    before = home_content(service.home, documents=True)
    reply = client.post("/extracts/LOAD1", {"source": "tables", "config": ["EXTRACT load1", "TABLE t.*;"]})
    assert (reply.status, home_content(service.home, documents=True)) == (409, before)
    assert (service.home / "dirprm" / "load1.prm").read_text().splitlines()[1] == "TABLE s.*;"
    client.delete("/extracts/LOAD1")


def test_nothing_is_left_of_a_group_that_the_home_cannot_note(service: RunningService, client: ServiceClient) -> None:
    assert client.post("/extracts/HELD", initial_load("HELD")).status == 201
    assert client.delete("/extracts/HELD").status == 200
    before = home_content(service.home, documents=True)
    notes = service.home / "dirdb" / "groups"
    notes.rename(notes.with_name("aside"))
    notes.symlink_to("missing")
    try:
        reply = client.post("/extracts/HELD", initial_load("HELD"))
    finally:
        notes.unlink()
        notes.with_name("aside").rename(notes)
    assert (reply.status, home_content(service.home, documents=True)) == (503, before), reply.text
    assert client.post("/extracts/HELD", initial_load("HELD")).status == 201
    assert client.delete("/extracts/HELD").status == 200


def test_parallel_requests_create_all_groups_and_aliases(service: RunningService) -> None:
    signed_in = Barrier(24)

    def create(number: int) -> tuple[int, int]:
        client = service.client()
        client.get("/extracts")
        signed_in.wait(60)
        group = client.post(f"/extracts/W{number}", initial_load(f"W{number}"))
        alias = client.post(f"/credentials/Y/y{number}", {"userid": "u", "password": "x"})
        return group.status, alias.status

    with ThreadPoolExecutor(24) as pool:
        assert list(pool.map(create, range(24))) == [(201, 201)] * 24
    client = service.client()
    names = {each["name"] for each in client.get("/extracts").response["items"]}
    assert {f"W{number}" for number in range(24)} <= names
    assert {f"y{number}" for number in range(24)} <= {
        each.alias for each in CredentialStore(Home(service.home)).entries()
    }
