"""The requests of a public script (create_replication2.sh of GoldenGateRestAPI), and the answers of its transcript."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from processes import until
from service_client import PASSWORD, RunningService, ServiceClient

pytestmark = pytest.mark.slow
TABLES = "CREATE SCHEMA hr; CREATE SCHEMA oggadmin; CREATE TABLE hr.employees (id int PRIMARY KEY, name text)"
PROFILE = {
    "autoStart": {"enabled": True, "delay": 60},
    "autoRestart": {
        "enabled": True,
        "retries": 9,
        "delay": 60,
        "window": 3600,
        "onSuccess": False,
        "disableOnFailure": True,
    },
}
DEFAULT = {"$schema": "ogg:configDataDescription", "description": "WEST Profile", "isDefault": True}
TYPES = "//services/Local/adminsrvr/v2/config/types"
VALUE = "ogg:managedProcessSettings:WEST-profile"


@pytest.fixture
def script(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceClient]:
    """A client that sends bodies as curl does without a Content-Type."""
    service = RunningService(tmp_path_factory.mktemp("home"))
    client = service.client()
    client.session.headers["Content-Type"] = "application/x-www-form-urlencoded"
    yield client
    service.close()


def post(client: ServiceClient, path: str, body: Any = None) -> tuple[int, list[str]]:
    reply = client.post(path, body)
    return reply.status, reply.codes


def regions(client: ServiceClient, databases: dict[str, str]) -> None:
    """Prepare each region as the script does."""
    for name, dsn in databases.items():
        login = {"userid": dsn, "password": PASSWORD}
        assert post(client, f"/credentials/OracleGoldenGate/{name}", login) == (201, ["OGG-15114"])
        base = f"/connections/OracleGoldenGate.{name}"
        status, codes = post(
            client, f"{base}/trandata/schema", {"operation": "add", "schemaName": "hr", "allColumns": True}
        )
        assert (status, [code for code in codes if code in ("OGG-01788", "OGG-01976", "OGG-01977")]) == (
            200,
            ["OGG-01788", "OGG-01976", "OGG-01977"],
        )
        status, codes = post(client, f"{base}/tables/heartbeat", {"frequency": 60})
        assert (status, codes[-1]) == (201, "OGG-14101")
        assert post(client, f"{base}/tables/checkpoint", {"operation": "add", "name": "oggadmin.checkpoints"})[0] == 200
    user = {"credential": PASSWORD, "info": "Distribution Path User"}
    assert post(client, "/authorizations/Operator/oggnet", user) == (201, [])
    assert post(client, "/credentials/Network/oggnet", {"userid": "oggnet", "password": PASSWORD}) == (
        201,
        ["OGG-15114"],
    )
    assert post(client, f"{TYPES}/ogg:managedProcessSettings/values/{VALUE}", PROFILE)[0] == 201
    assert post(client, f"{TYPES}/ogg:configDataDescription/values/{VALUE}", DEFAULT)[0] == 201
    reply = client.post("/masterkey")
    assert (reply.codes[-1], reply.response["items"][0]["name"]) == ("OGG-06142", "1")


def groups(client: ServiceClient) -> None:
    """Create the Extract, the path and the Replicat as the script does."""
    extract = {
        "description": "Extract Demo",
        "config": [
            "EXTRACT EWEST",
            "ENCRYPTTRAIL AES256",
            "EXTTRAIL ew",
            "USERIDALIAS WEST DOMAIN OracleGoldenGate",
            "TRANLOGOPTIONS EXCLUDETAG 00",
            "DDL INCLUDE MAPPED",
            "TABLE HR.*;",
        ],
        "source": "tranlogs",
        "credentials": {"alias": "WEST"},
        "registration": "default",
        "begin": "now",
        "targets": [{"name": "ew", "sizeMB": 5}],
        "critical": False,
        "managedProcessSettings": "WEST-profile",
        "encryptionProfile": "LocalWallet",
        "status": "running",
    }
    status, codes = post(client, "/extracts/EWEST", extract)
    assert (status, set(codes) >= {"OGG-08100", "OGG-02003", "OGG-10183", "OGG-00975", "OGG-15426"}) == (201, True), (
        codes
    )
    port = client.url.rpartition(":")[2]
    path = {
        "name": "DPWE",
        "description": "DIST PATH DPWE",
        "source": {"uri": "trail://localhost/services/WEST/distsrvr/v2/sources?trail=ew"},
        "target": {
            "uri": f"ws://localhost:{port}/services/v2/targets?trail=dw",
            "authenticationMethod": {"domain": "Network", "alias": "oggnet"},
            "details": {"trail": {"seqLength": 9, "sizeMB": 5}, "compression": {"enabled": True}},
        },
        "begin": {"sequence": 0, "offset": 0},
        "encryptionProfile": "LocalWallet",
        "status": "running",
    }
    status, codes = post(client, "/sources/DPWE", path)
    assert (status, "OGG-08511" in codes) == (201, True), codes
    replicat = {
        "description": "Replicat Demo",
        "config": [
            "REPLICAT RWEST",
            "USERIDALIAS EAST DOMAIN OracleGoldenGate",
            "DDL INCLUDE MAPPED",
            "MAP hr.*, TARGET hr.*;",
        ],
        "credentials": {"alias": "EAST"},
        "mode": {"parallel": True, "type": "nonintegrated"},
        "source": {"name": "dw"},
        "checkpoint": {"table": "oggadmin.checkpoints"},
        "managedProcessSettings": "WEST-profile",
        "status": "running",
    }
    status, codes = post(client, "/replicats/RWEST", replicat)
    assert (status, set(codes) >= {"OGG-08100", "OGG-10183", "OGG-00975", "OGG-15445"}) == (201, True), codes


def test_a_public_script_builds_a_replication(script: ServiceClient, north: str, south: str) -> None:
    for dsn in (north, south):
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(TABLES)
    regions(script, {"WEST": north, "EAST": south})
    groups(script)
    with psycopg.connect(north, autocommit=True) as source, psycopg.connect(south, autocommit=True) as target:
        source.execute("INSERT INTO hr.employees SELECT n, 'x' FROM generate_series(1, 50) n")
        count = "SELECT count(*) FROM hr.employees"
        until("the rows arrive", lambda: target.execute(count).fetchall() == [(50,)])
    for path in ("/replicats/RWEST", "/sources/DPWE", "/extracts/EWEST"):
        assert script.delete(path).status == 200
    purge = {"name": "purge", "purgeType": "trails", "trails": [{"name": "ew"}], "useCheckpoints": False}
    assert (
        post(script, "/commands/execute", {**purge, "keep": [{"type": "min", "units": "files", "value": 0}]})[0] == 200
    )
