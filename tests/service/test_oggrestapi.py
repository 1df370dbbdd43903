"""The public client ``oggrestapi`` builds a replication from nothing, and removes it again."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from oggrestapi import OGGRestAPI
from processes import until
from service_client import PASSWORD, RunningService

pytestmark = pytest.mark.slow
TABLE = "CREATE SCHEMA ggadmin; CREATE SCHEMA shop; CREATE TABLE shop.orders (id int PRIMARY KEY, note text NOT NULL)"
NORTH, SOUTH = "OracleGoldenGate.north", "OracleGoldenGate.south"
EXTRACT = ["EXTRACT EXT1", "USERIDALIAS north DOMAIN OracleGoldenGate", "EXTTRAIL ea", "TABLE shop.*;"]
REPLICAT = ["REPLICAT REP1", "USERIDALIAS south DOMAIN OracleGoldenGate", "MAP shop.*, TARGET shop.*;"]

FORMS: dict[str, dict[str, Any]] = {
    "direct": {},
    "through a reverse proxy": {"reverse_proxy": True, "deployment": "Local"},
    "by discovery": {"auto_discovery": True, "deployment": "Local"},
}


@pytest.fixture(params=FORMS.values(), ids=FORMS)
def api(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OGGRestAPI]:
    """The client of a new home's service, in one of its forms of address."""
    service = RunningService(tmp_path_factory.mktemp("home"))
    with OGGRestAPI(service.url, username="admin", password=PASSWORD, timeout=60, **request.param) as client:
        yield client
    service.close()


@pytest.fixture
def databases(north: str, south: str) -> tuple[str, str]:
    for dsn in (north, south):
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(TABLE)
    return north, south


def count(dsn: str) -> int:
    with psycopg.connect(dsn, autocommit=True) as connection:
        return int(connection.execute("SELECT count(*) FROM shop.orders").fetchall()[0][0])


def insert(dsn: str, first: int, last: int) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("INSERT INTO shop.orders SELECT n, 'new' FROM generate_series(%s::int, %s) n", [first, last])


def prepare(api: OGGRestAPI, north: str, south: str) -> None:
    """Credentials, logging, checkpoint and heartbeat tables, and a key."""
    for alias, dsn in (("north", north), ("south", south)):
        api.create_alias(domain="OracleGoldenGate", alias=alias, userid=dsn, password="x")
    assert [each["name"] for each in api.list_connections()] == [NORTH, SOUTH]
    body = {"operation": "add", "schemaName": "shop", "allColumns": True}
    api.manage_schema_supplemental_logging(connection=NORTH, data=body)
    api.manage_checkpoint_table(connection=SOUTH, operation="add", name="ggadmin.checkpoints")
    for connection in (NORTH, SOUTH):
        api.create_heartbeat_table(connection=connection, frequency=1)
    api.create_master_key_version()


def extract(api: OGGRestAPI, **options: Any) -> Any:
    return api.create_extract(
        extract="EXT1",
        description="orders",
        config=EXTRACT,
        source="tranlogs",
        credentials={"alias": "north", "domain": "OracleGoldenGate"},
        registration="default",
        begin="now",
        targets=[{"name": "ea", "sizeMB": 5}],
        status="running",
        **options,
    )


def path(api: OGGRestAPI, **options: Any) -> Any:
    port = api.base_url.rpartition(":")[2]
    return api.create_distribution_path(
        distpath="DPATH",
        name="DPATH",
        description="north to south",
        source={"uri": "trail://localhost/services/Local/distsrvr/v2/sources?trail=ea"},
        target={
            "uri": f"ws://localhost:{port}/services/v2/targets?trail=da",
            "authenticationMethod": {"domain": "Network", "alias": "oggnet"},
            "details": {"trail": {"seqLength": 9, "sizeMB": 5}, "compression": {"enabled": True}},
        },
        begin={"sequence": 0, "offset": 0},
        encryption_profile="LocalWallet",
        status="running",
        **options,
    )


def replicat(api: OGGRestAPI, **options: Any) -> Any:
    return api.create_replicat(
        replicat="REP1",
        description="orders",
        config=REPLICAT,
        credentials={"alias": "south", "domain": "OracleGoldenGate"},
        mode={"type": "nonintegrated", "parallel": False},
        source={"name": "da"},
        checkpoint={"table": "ggadmin.checkpoints"},
        status="running",
        **options,
    )


def test_a_replication_is_built_used_and_removed(api: OGGRestAPI, databases: tuple[str, str]) -> None:
    north, south = databases
    prepare(api, north, south)
    for create in (extract, path, replicat):
        create(api)
    insert(north, 1, 100)
    until("the rows arrive", lambda: count(south) == 100)
    shown(api)
    asked_everything(api)
    changed(api, north, south)
    recreated(api, north, south)
    users(api)
    removed(api, north)


def recreated(api: OGGRestAPI, north: str, south: str) -> None:
    """Delete the path and the Extract, and create them again; rows inserted afterwards arrive, and no row twice."""
    api.recreate_wait_seconds = 0
    for create in (path, extract):
        assert create(api, if_exists="recreate")["status"] == "recreated"
    assert api.create_heartbeat_table(connection=NORTH, frequency=1, if_exists="recreate")["status"] == "recreated"
    insert(north, 151, 160)
    until("the rows arrive again", lambda: count(south) == 160)


def shown(api: OGGRestAPI) -> None:
    """What the client can ask about a running replication."""
    assert api.get_extract("EXT1")["status"] == api.get_replicat("REP1")["status"] == "running"
    assert api.get_distribution_path("DPATH")["status"] == "running"
    assert api.get_distribution_path_info("DPATH")["sourceExtractName"] == "EXT1"
    until("EXT1 is at the end", lambda: bool(api.is_extract_logend("EXT1")))
    until("REP1 is at the end", lambda: bool(api.is_replicat_at_eof("REP1")))
    for lag in (api.get_extract_lag("EXT1"), api.get_replicat_lag("REP1"), api.get_distribution_path_lag("DPATH")):
        assert 0 <= lag < 120
    thresholds = [{"type": "info", "units": "seconds", "value": 0}]
    lags = api.execute_command(data={"name": "report", "reportType": "lag", "thresholds": thresholds})
    assert {each["name"]: each["status"] for each in lags} == dict.fromkeys(("DPATH", "EXT1", "REP1"), "running")
    assert {each["name"] for each in api.list_trails()} == {"ea", "da"}
    assert "EXT1" in str(api.get_current_extract_report("EXT1"))
    assert api.get_distribution_path_checkpoint("DPATH")["current"]["input"][0]["current"]["name"] == "ea"
    assert api.list_extract_trails()["extracts"][0]["trails"][0]["name"] == "ea"
    until("heartbeats arrive", lambda: bool(api.get_process_heartbeat_records(SOUTH, "REP1")["heartbeats"]))
    assert api.get_heartbeat_data(SOUTH, limit=5)["heartbeats"][0]["lagSeconds"] >= 0


ARGUMENTS: dict[str, Any] = {
    "alias": "south",
    "certificate": "default",
    "connection": SOUTH,
    "deployment": "Local",
    "distpath": "DPATH",
    "domain": "OracleGoldenGate",
    "extract": "EXT1",
    "file": "ext1.prm",
    "item": "EXT1",
    "key_version": 1,
    "message": "OGG-00975",
    "parameter": "EXTRACT",
    "process": "REP1",
    "profile": "LocalWallet",
    "replicat": "REP1",
    "role": "Security",
    "sequence": 0,
    "service": "adminsrvr",
    "trail": "ea",
    "type": "server",
    "user": "admin",
}
"""What the client is asked about, by the names of its arguments; others are unknown to the service."""


def asked_everything(api: OGGRestAPI) -> None:
    """Call every method of the client that reads: none ends with an error of the service, or with an answer it cannot read."""
    asked, refused = 0, []
    for name, method in inspect.getmembers(api, inspect.ismethod):
        if not re.search(r"^\s*GET /services", method.__doc__ or "", re.MULTILINE):
            continue
        parameters = inspect.signature(method).parameters.values()
        arguments = {each.name: ARGUMENTS.get(each.name, "none") for each in parameters if each.default is each.empty}
        answer = method(**arguments, raw_response=True)
        asked += 1
        if answer.status_code >= 500 or not answer.json()["links"]:
            refused.append((name, answer.status_code, answer.text))
    assert (refused, asked > 180) == ([], True), (asked, refused)


def changed(api: OGGRestAPI, north: str, south: str) -> None:
    """Creating what exists updates or verifies it; restarted processes deliver what was inserted meanwhile."""
    for create in (extract, path, replicat):
        assert create(api, if_exists="skip")["status"] == "skipped"
        assert create(api, if_exists="verify")["status"] == "verified"
        assert create(api, if_exists="update")["status"] in ("unchanged", "updated")
    assert api.create_heartbeat_table(connection=NORTH, frequency=1, if_exists="verify")["status"] == "verified"
    assert api.create_heartbeat_table(connection=NORTH, frequency=2, if_exists="update")["status"] == "updated"
    with pytest.raises(RuntimeError, match="differs"):
        api.create_heartbeat_table(connection=NORTH, frequency=3, if_exists="verify")
    for stop, name in _stops(api):
        stop(name)
    insert(north, 101, 150)
    api.execute_command(data={"name": "start", "processName": "*"})
    api.start_distribution_path("DPATH")
    until("more rows arrive", lambda: count(south) == 150)


def _stops(api: OGGRestAPI) -> list[tuple[Callable[[str], Any], str]]:
    return [(api.stop_replicat, "REP1"), (api.stop_distribution_path, "DPATH"), (api.stop_extract, "EXT1")]


def users(api: OGGRestAPI) -> None:
    """A user that exists is updated, verified and created again in its role, and never moved to another role."""
    data = {"credential": "long-enough-11", "info": "nights"}
    api.create_user("User", "ogg", data=data)
    for choice, status in (("update", "updated"), ("verify", "verified"), ("recreate", "recreated")):
        assert api.create_user("User", "ogg", data=data, if_exists=choice)["status"] == status
        with pytest.raises(Exception, match="does not have the role Operator"):
            api.create_user("Operator", "ogg", data=data, if_exists=choice)
    assert api.update_user("User", "ogg", data={"info": "days"}) is not None
    assert {each["username"]: each["info"] for each in api.list_users("User")}["ogg"] == "days"
    api.delete_user("all", "ogg")


def removed(api: OGGRestAPI, north: str) -> None:
    """Delete everything; the source keeps no slot."""
    for stop, name in _stops(api):
        stop(name)
    api.delete_replicat("REP1")
    api.delete_distribution_path("DPATH")
    api.delete_extract("EXT1")
    assert api.list_extracts() == api.list_replicats() == api.list_distribution_paths() == []
    for name in ("ea", "da"):
        api.purge_trail(name, use_checkpoints=False)
    for connection in (NORTH, SOUTH):
        api.delete_heartbeat_table(connection)
    api.manage_checkpoint_table(connection=SOUTH, operation="delete", name="ggadmin.checkpoints")
    api.manage_schema_supplemental_logging(connection=NORTH, data={"operation": "delete", "schemaName": "shop"})
    with psycopg.connect(north, autocommit=True) as connection:
        assert connection.execute(
            "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()"
        ).fetchall() == [(0,)]
    for alias in ("north", "south"):
        api.delete_alias(domain="OracleGoldenGate", alias=alias)
    assert api.list_connections() == []


def test_receiver_paths_are_created_changed_and_deleted(api: OGGRestAPI) -> None:
    """The methods of the client for the receiver service, with a path that this home starts."""
    api.create_receiver_path(
        path="RPATH",
        name="RPATH",
        source={"uri": "wss://north.example.com:9014/services/v2/sources?trail=ea"},
        target={"uri": "trail://localhost:9015/services/v2/targets?trail=eb"},
        begin={"sequence": "0", "offset": "0"},
        target_initiated=True,
        status="stopped",
    )
    assert [each["name"] for each in api.list_receiver_paths()] == ["RPATH"]
    assert api.get_receiver_path("RPATH")["targetInitiated"] is True
    api.update_receiver_path("RPATH", ruleset={"rules": [{"objectNames": ["hr.*"], "action": "exclude"}]})
    assert api.get_receiver_path("RPATH")["ruleset"]["rules"][0]["action"] == "exclude"
    assert api.get_receiver_path_info("RPATH")["status"] == "stopped"
    assert "current" in api.get_receiver_path_checkpoint("RPATH")
    assert api.get_receiver_path_stats("RPATH")["tables"] == []
    api.delete_receiver_path("RPATH")
    assert api.list_receiver_paths() == []
