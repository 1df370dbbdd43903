"""Measuring points of running processes, in the shapes of the vendor's metrics service."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from processes import until
from service_client import RunningService, ServiceClient

from ggshell.service.resources.mpoints import KINDS, WITHOUT_MEANING

pytestmark = pytest.mark.slow
TABLE = "CREATE SCHEMA shop; CREATE TABLE shop.orders (id int PRIMARY KEY, note text)"


@pytest.fixture
def running(client: ServiceClient, service: RunningService, north: str) -> Iterator[str]:
    """The DSN of the source of a running Extract EXT1 that has captured ten rows."""
    with psycopg.connect(north, autocommit=True) as connection:
        connection.execute(TABLE)
    client.post("/credentials/OracleGoldenGate/north", {"userid": north, "password": "x"})
    logged = {"operation": "add", "tableName": "shop.orders"}
    assert client.post("/connections/OracleGoldenGate.north/trandata/table", logged).status == 200
    made = client.post(
        "/extracts/EXT1",
        {
            "config": ["EXTRACT EXT1", "USERIDALIAS north", "EXTTRAIL ea", "TABLE shop.*;"],
            "source": "tranlogs",
            "credentials": {"alias": "north"},
            "registration": "default",
            "begin": "now",
            "targets": [{"name": "ea"}],
            "status": "running",
        },
    )
    assert made.status == 201, made.text
    with psycopg.connect(north, autocommit=True) as connection:
        connection.execute("INSERT INTO shop.orders SELECT n, 'x' FROM generate_series(1, 10) n")
    point = "/mpoints/EXT1/statisticsExtract"
    until("the rows are captured", lambda: client.get(point).response["mappedTotalInserts"] == 10)
    yield north
    assert client.delete("/extracts/EXT1").status == 200
    client.delete("/credentials/OracleGoldenGate/north")


def test_every_measuring_point_answers_for_every_process(client: ServiceClient, running: str) -> None:
    names = [each["processName"] for each in client.get("/mpoints/processes").response["processes"]]
    assert {"EXT1", "MGR", "adminsrvr"} <= set(names)
    for name in names:
        for kind in KINDS:
            reply = client.get(f"/mpoints/{name}/{kind}")
            assert reply.status == 200 or (reply.status == 404 and name != "EXT1"), reply.text
            assert name != "EXT1" or reply.response["$schema"] == f"mpoints:{kind}"
            assert name != "EXT1" or not [each for each in reply.body["messages"] if each["severity"] == "WARNING"]
    assert {client.get(f"/mpoints/EXT1/{kind}").codes[0] for kind in WITHOUT_MEANING} == {"GGS-00904"}
    assert client.get("/mpoints/EXT1/nothing").status == client.get("/mpoints/NOBODY/process").status == 404


def test_an_extract_reports_what_it_does(client: ServiceClient, running: str) -> None:
    performance = client.get("/mpoints/EXT1/processPerformance").response
    assert performance["cpuTimeUs"] > 0
    assert performance["threadCount"] >= 2
    assert performance["workingSetSize"] > 10 << 20
    tables = client.get("/mpoints/EXT1/statisticsTableExtract").response["statisticsTableExtract"]
    assert (tables[0]["sourceTable"], tables[0]["totalInserts"]) == ("shop.orders", 10)
    written = client.get("/mpoints/EXT1/trailOutput").response["trailOutput"][0]
    assert (written["name"], written["sequence"]) == ("ea", 0)
    assert client.get("/mpoints/EXT1/serviceHealth").response["isHealthy"] is True


def test_open_transactions_are_listed_with_their_ids(client: ServiceClient, running: str) -> None:
    point = "/mpoints/EXT1/currentInflightTransactions"
    assert client.get(point).codes == ["OGG-25166"]
    with psycopg.connect(running) as writer:
        writer.execute("UPDATE shop.orders SET note = 'open'")
        xid = writer.execute("SELECT pg_current_xact_id()::text::bigint % 4294967296").fetchall()[0][0]
        found = client.get(point)
        assert found.status == 200, found.text
        assert [each["xid"] for each in found.response["currentInflightTransactions"]] == [str(xid)]
        assert found.response["currentInflightTransactions"][0]["startTime"]
        writer.rollback()
