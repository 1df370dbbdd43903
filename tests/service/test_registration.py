"""An Extract is registered with its source database by POST and PATCH, and released by DELETE."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from service_client import RunningService, ServiceClient

pytestmark = pytest.mark.slow
CONFIG = ["EXTRACT ext1", "USERIDALIAS north DOMAIN OracleGoldenGate", "EXTTRAIL ea", "TABLE shop.*;"]


@pytest.fixture
def source(north: str, client: ServiceClient) -> Iterator[str]:
    """A source database with an alias and an Extract that is not registered."""
    client.post("/credentials/OracleGoldenGate/north", {"userid": north, "password": "x"})
    assert client.post("/extracts/EXT1", {"config": CONFIG, "registration": "none"}).status == 201
    yield north
    client.delete("/extracts/EXT1")
    client.delete("/credentials/OracleGoldenGate/north")


def slots(dsn: str) -> int:
    with psycopg.connect(dsn, autocommit=True) as connection:
        query = "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()"
        return int(connection.execute(query).fetchall()[0][0])


def test_a_changed_registration_registers_the_extract_once(
    service: RunningService, client: ServiceClient, source: str
) -> None:
    assert client.patch("/extracts/EXT1", {"registration": "perhaps"}).status == 400
    assert client.get("/extracts/EXT1").response["registration"] == "none"
    assert service.client("otto").patch("/extracts/EXT1", {"registration": "default"}).status == 403
    assert slots(source) == 0
    assert "OGG-02003" in client.patch("/extracts/EXT1", {"registration": "default"}).codes
    assert client.patch("/extracts/EXT1", {"registration": "default"}).codes == []
    assert slots(source) == 1
    refused = client.patch("/extracts/EXT1", {"registration": "none"})
    assert (refused.status, "UNREGISTER EXTRACT EXT1" in refused.text, slots(source)) == (409, True, 1)
    assert client.delete("/extracts/EXT1").status == 200
    assert slots(source) == 0


def test_deleting_an_extract_without_a_slot_gives_no_warning(client: ServiceClient, source: str) -> None:
    reply = client.delete("/extracts/EXT1")
    assert (reply.status, "registered" in reply.text, "WARNING" in reply.text) == (200, False, False), reply.text


def test_an_extract_whose_file_names_no_alias_is_released_too(client: ServiceClient, source: str) -> None:
    assert client.delete("/extracts/EXT1").status == 200
    body = {"config": ["EXTRACT ext1", "TABLE shop.*;"], "registration": "default", "credentials": {"alias": "north"}}
    assert client.post("/extracts/EXT1", body).status == 201
    assert client.get("/extracts/EXT1").response["credentials"]["alias"] == "north"
    assert slots(source) == 1
    assert client.delete("/extracts/EXT1").status == 200
    assert slots(source) == 0


def test_an_extract_that_cannot_be_released_gives_a_warning(client: ServiceClient, source: str) -> None:
    assert client.patch("/extracts/EXT1", {"registration": "default"}).status == 200
    assert client.put("/config/files/EXT1.prm", {"lines": ["EXTRACT ext1", "TABLE shop.*;"]}).status == 200
    reply = client.delete("/extracts/EXT1")
    assert (reply.status, "still registered" in reply.text, slots(source)) == (200, True, 1), reply.text
    with psycopg.connect(source, autocommit=True) as connection:
        connection.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
