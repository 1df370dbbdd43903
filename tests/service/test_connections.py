"""Connections: logins, the logging of tables, checkpoint and heartbeat tables, and what a database contains."""

from __future__ import annotations

import time
from pathlib import Path

import psycopg
import pytest
from black_hole import BlackHole
from service_client import PASSWORD, RunningService, ServiceClient, service_here

pytestmark = pytest.mark.slow
TABLES = """CREATE SCHEMA shop; CREATE SCHEMA ggadmin; CREATE TABLE shop.orders (id int PRIMARY KEY, note text NOT NULL);
CREATE TABLE shop."Odd Name" (id int PRIMARY KEY); CREATE SCHEMA "Odd One";
CREATE TABLE "Odd One".t (id int PRIMARY KEY)"""


@pytest.fixture
def one(client: ServiceClient, north: str) -> str:
    """The address of a connection to a database with two tables."""
    with psycopg.connect(north, autocommit=True) as connection:
        connection.execute(TABLES)
    alias = f"a{north.rpartition('dbname=')[2].split()[0]}"
    reply = client.post(f"/credentials/OracleGoldenGate/{alias}", {"userid": north, "password": "x"})
    assert (reply.status, reply.codes) == (201, ["OGG-15114"])
    return f"/connections/OracleGoldenGate.{alias}"


def test_an_alias_is_a_connection_and_a_connection_an_alias(client: ServiceClient) -> None:
    login = {"credentials": {"userid": "postgresql://jane@127.0.0.1:1/x", "password": "p-1"}}
    assert client.post("/connections/Lab.west", login).status == 201
    assert client.post("/connections/Lab.west", login).status == 409
    assert client.get("/credentials/Lab/west").status == 200
    assert client.get("/connections/Lab.west").response["credentials"]["alias"] == "west"
    assert "Lab.west" in [each["name"] for each in client.get("/connections").response["items"]]
    assert client.put("/connections/Lab.west", login).status == 200
    assert client.delete("/connections/Lab.west").status == 200
    assert client.get("/connections/Lab.west").status == 404
    assert client.delete("/connections/Lab.west").status == 404


@pytest.mark.parametrize("password", ["hunter\"2'", "hunter\n2"])
def test_a_password_that_is_refused_is_not_repeated(client: ServiceClient, password: str) -> None:
    reply = client.post("/credentials/Lab/quotes", {"userid": "jane", "password": password})
    assert (reply.status, "hunter" in reply.text) == (400, False), reply.text


def test_a_connection_can_be_another_name_of_an_alias(client: ServiceClient) -> None:
    client.post("/credentials/Lab/east", {"userid": "postgresql://jane@127.0.0.1:1/x", "password": "p-1"})
    body = {"credentials": {"domain": "Lab", "alias": "east"}}
    assert client.post("/connections/Lab.second", body).status == 201
    assert client.put("/connections/Lab.second", body).status == 200
    shown = client.get("/connections/Lab.second").response["credentials"]
    assert (shown["domain"], shown["alias"]) == ("Lab", "east")
    assert client.put("/connections/Lab.east", body).status == 200
    assert client.put("/connections/Lab.east", {"credentials": {"alias": "none"}}).status == 404
    assert client.post("/connections/Lab.third", {"credentials": {}}).status == 400
    assert client.post("/connections/9", body).status == 400
    assert client.delete("/connections/Lab.second").status == 200
    assert client.get("/credentials/Lab/east").status == 200


def test_schema_trandata_is_reported_with_the_codes_of_the_vendor(client: ServiceClient, one: str) -> None:
    body = {"operation": "add", "schemaName": "shop", "allColumns": True, "prepareCsnMode": "nowait"}
    reply = client.post(f"{one}/trandata/schema", body)
    assert reply.status == 200
    assert {"OGG-01788", "OGG-01976", "OGG-01977", "GGS-00918"} <= set(reply.codes)
    info = client.post(f"{one}/trandata/schema", {"operation": "info", "schemaName": "shop"})
    assert info.response["schemas"][0]["all_columns"] is True
    assert client.post(f"{one}/trandata/schema", {"operation": "delete", "schemaName": "shop"}).codes == ["OGG-01786"]
    assert client.post(f"{one}/trandata/schema", {**body, "schemaName": '"Odd One"'}).status == 200
    assert client.post(f"{one}/trandata/schema", {**body, "schemaName": "shop.or!"}).status == 404
    assert client.post(f"{one}/trandata/schema", {**body, "schemaName": "none"}).status == 404
    assert client.post(f"{one}/trandata/schema", {**body, "operation": "drop"}).status == 400


def test_table_trandata_is_added_shown_and_deleted(client: ServiceClient, one: str) -> None:
    for name in ("shop.orders", 'shop."Odd Name"'):
        added = client.post(f"{one}/trandata/table", {"operation": "add", "tableName": name, "primaryKey": True})
        assert (added.status, len(added.response["tables"])) == (200, 1), added.text
    info = client.post(f"{one}/trandata/table", {"operation": "info", "tableName": "shop.*"})
    assert {each["enabled"] for each in info.response["tables"]} == {True}
    assert client.post(f"{one}/trandata/table", {"operation": "delete", "tableName": "shop.*"}).status == 200
    assert client.post(f"{one}/trandata/table", {"operation": "add", "tableName": "shop.none"}).status == 404
    assert client.post(f"{one}/trandata/table", {"operation": "add", "tableName": "a; b"}).status == 400


def test_procedural_logging_has_no_meaning_here(client: ServiceClient, one: str) -> None:
    reply = client.post(f"{one}/trandata/procedure", {"operation": "info"})
    assert (reply.status, reply.codes) == (404, ["GGS-00904"])


def test_a_checkpoint_table_is_added_shown_and_deleted(client: ServiceClient, one: str) -> None:
    body = {"operation": "add", "name": "ggadmin.checkpoints"}
    assert client.post(f"{one}/tables/checkpoint", body).status == 200
    assert client.post(f"{one}/tables/checkpoint", body).status == 409
    info = client.post(f"{one}/tables/checkpoint", {**body, "operation": "info"})
    assert info.response["groups"] == []
    assert client.post(f"{one}/tables/checkpoint", {**body, "operation": "delete"}).status == 200
    assert client.post(f"{one}/tables/checkpoint", {**body, "operation": "delete"}).status == 404


RECEIVED = """ALTER TABLE ggadmin.gg_heartbeat_history DISABLE TRIGGER ALL;
INSERT INTO ggadmin.gg_heartbeat_history (local_database, remote_database, heartbeat_received_ts, incoming_extract,
  incoming_replicat, incoming_heartbeat_ts, incoming_extract_ts, incoming_replicat_ts)
SELECT 'here', 'there', time + '3 s'::interval, 'EXT1', 'REP1', time, time + '1 s'::interval, time + '2 s'::interval
  FROM generate_series('2030-01-01'::timestamp, '2030-01-01 00:02', '1 min') AS time"""


def test_heartbeat_data_is_the_history_from_the_newest(client: ServiceClient, north: str, one: str) -> None:
    assert client.post(f"{one}/tables/heartbeat", {"targetOnly": True}).status == 201
    with psycopg.connect(north, autocommit=True) as connection:
        connection.execute(RECEIVED)
    found = client.get(f"{one}/tables/heartbeatData?limit=2").response["heartbeats"]
    assert [each["receivedTimestamp"][:19] for each in found] == ["2030-01-01T00:02:03", "2030-01-01T00:01:03"]
    assert (found[0]["source"], found[0]["target"], found[0]["path"]) == ("there", "here", "==> EXT1 ==> REP1 ==>")
    assert (found[0]["lagSeconds"], found[0]["lagExtract"], found[0]["processName"]) == (3.0, 1.0, "REP1")
    (oldest,) = client.get(f"{one}/tables/heartbeat/rep1?limit=5&offset=2").response["heartbeats"]
    assert oldest["receivedTimestamp"].startswith("2030-01-01T00:00:03")
    assert client.get(f"{one}/tables/heartbeat/REP2").response["heartbeats"] == []


def test_a_heartbeat_table_is_added_changed_and_deleted(
    client: ServiceClient, service: RunningService, one: str
) -> None:
    base = f"{one}/tables/heartbeat"
    assert client.get(base).status == 404
    added = client.post(base, {"frequency": 30})
    assert (added.status, added.codes[-1]) == (201, "OGG-14101"), added.text
    assert "GGSCHEMA ggadmin" in (service.home / "GLOBALS").read_text()
    assert client.post(base, {"frequency": 30}).status == 409
    for _ in range(2):
        assert client.patch(base, {"purgeFrequency": 7, "frequency": 20}).status == 200
    shown = client.get(base).response
    assert (shown["frequency"], shown["purgeFrequency"], shown["targetOnly"]) == (20, 7, False)
    assert client.get(f"{base}/EXT1").response["heartbeats"] == []
    assert client.delete(f"{base}/EXT1").status == 200
    assert client.get(f"{one}/tables/heartbeatData?limit=5").response["$schema"] == "ogg:processHeartbeat"
    assert client.get(f"{one}/tables/heartbeatData?limit=x").status == 400
    assert client.get(f"{one}/tables/heartbeatData?offset=999999999").response["heartbeats"] == []
    assert client.patch(base, {"frequency": -1}).status == 400
    assert client.delete(base).status == 200
    assert client.delete(base).status == 404
    assert client.get(f"{one}/tables/heartbeatData").status == 404


def test_a_database_is_shown_with_its_schemas_tables_and_columns(client: ServiceClient, one: str) -> None:
    (database,) = [each["name"] for each in client.get(f"{one}/databases").response["items"]]
    base = f"{one}/databases/{database}"
    assert [each["name"] for each in client.get(base).response["items"]] == ["Odd One", "shop"]
    assert [each["name"] for each in client.get(f"{base}/shop?name=o*").response["items"]] == ["orders"]
    columns = client.get(f"{base}/shop/orders").response["columns"]
    assert columns[0] == {"name": "id", "type": "integer", "nullable": False, "primaryKey": True}
    assert client.get(f"{base}/none").status == 404
    assert client.get(f"{base}/shop/none").status == 404
    assert client.get(f"{one}/databases/other").status == 404
    refused = client.post(f"{base}/shop/orders/instantiationCsn", {"command": "set", "csn": 1, "source": "x"})
    assert (refused.status, refused.codes) == (404, ["GGS-00904"])


def test_open_transactions_are_shown(client: ServiceClient, north: str, one: str) -> None:
    assert client.get(f"{one}/activeTransactions").response["activeTransactions"] == []
    with psycopg.connect(north) as connection:
        connection.execute("INSERT INTO shop.orders VALUES (1, 'open')")
        (found,) = client.get(f"{one}/activeTransactions").response["activeTransactions"]
        assert (found["status"], found["processId"]) == ("ACTIVE", connection.info.backend_pid)


def test_a_database_that_does_not_answer_is_503_and_not_a_hang(tmp_path: Path) -> None:
    hole = BlackHole()
    with service_here(tmp_path, 30.0, silence=1.0) as (url, _):
        client = ServiceClient(url)
        for name, port, least in (("closed", 1, 0.0), ("silent", hole.port, 1.0)):
            userid = f"postgresql://jane@127.0.0.1:{port}/x"
            client.post(f"/credentials/Away/{name}", {"userid": userid, "password": PASSWORD})
            body = {"operation": "add", "schemaName": "shop"}
            for method, path, given in (("GET", "databases", None), ("POST", "trandata/schema", body)):
                begun = time.monotonic()
                reply = client.send(method, f"/connections/Away.{name}/{path}", given)
                assert (reply.status, "retry-after" in reply.headers) == (503, True), reply.text
                assert least <= time.monotonic() - begun < 20
        assert client.get("/connections/Away.none/databases").status == 404
    assert hole.connections >= 2
    hole.close()


REQUESTS = (
    ("POST", "/trandata/schema", {"operation": "add", "schemaName": "shop", "allColumns": True}),
    ("POST", "/trandata/table", {"operation": "delete", "tableName": "shop.orders"}),
    ("POST", "/trandata/table", {"operation": "add", "tableName": "shop.orders", "keyColumns": ["id"]}),
    ("POST", "/tables/checkpoint", {"operation": "add", "name": "ggadmin.checkpoints"}),
    ("POST", "/tables/heartbeat", {"frequency": 30, "retentionTime": 5}),
    ("PATCH", "/tables/heartbeat", {"purgeFrequency": 2}),
)
STATEMENTS = """ADD SCHEMATRANDATA shop ALLCOLS
DELETE TRANDATA shop.orders
ADD TRANDATA shop.orders, KEYCOLS (id)
ADD CHECKPOINTTABLE ggadmin.checkpoints
ADD HEARTBEATTABLE, FREQUENCY 30, RETENTION_TIME 5
ALTER HEARTBEATTABLE, PURGE_FREQUENCY 2"""
CONTENT = (
    "SELECT schemaname, tablename FROM pg_publication_tables ORDER BY 1, 2",
    "SELECT relname, relkind, relreplident FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
    " WHERE nspname IN ('shop', 'ggadmin') ORDER BY 1",
    "SELECT evtname FROM pg_event_trigger ORDER BY 1",
    "SELECT job_name, every_seconds, retention_days FROM ggadmin.gg_heartbeat_jobs ORDER BY 1",
)


def test_requests_leave_the_database_that_their_statements_leave(
    client: ServiceClient, service: RunningService, one: str, north: str, south: str
) -> None:
    with psycopg.connect(south, autocommit=True) as connection:
        connection.execute(TABLES)
    client.post("/credentials/Other/south", {"userid": south, "password": "x"})
    for method, path, body in REQUESTS:
        assert client.send(method, f"{one}{path}", body).status in (200, 201), path
    service.run(f"DBLOGIN USERIDALIAS south DOMAIN Other\n{STATEMENTS}")
    found = []
    for dsn in (north, south):
        with psycopg.connect(dsn, autocommit=True) as connection:
            found.append([connection.execute(query).fetchall() for query in CONTENT])
    assert found[0] == found[1]
