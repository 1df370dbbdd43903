"""Oracle's MCP server for GoldenGate, unchanged, over its standard input and output: its tools work on the service."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from network.two_homes import fingerprint
from processes import until
from service_client import PASSWORD, RunningService
from trail_kit import read_all, small, write_trail

from ggshell.home.home import Home
from ggshell.home.peers import Peers
from ggshell.trail.name import TrailName

pytestmark = pytest.mark.slow
TABLE = "CREATE SCHEMA ggadmin; CREATE SCHEMA shop; CREATE TABLE shop.orders (id int PRIMARY KEY, note text NOT NULL)"
DOMAIN = "OracleGoldenGate"


class McpServer:
    """A running MCP server: one JSON object a line in each direction."""

    def __init__(self, url: str) -> None:
        environment = {**os.environ, "OGG_BASE_URL": url, "OGG_USERNAME": "admin", "OGG_PASSWORD": PASSWORD}
        script = Path(sys.executable).with_name("oracle.oracle-goldengate-mcp-server")
        self._process = subprocess.Popen(
            [script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            text=True,
        )
        self._number = 0
        client = {"name": "test", "version": "1"}
        self._ask("initialize", {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": client})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def tools(self) -> set[str]:
        return {each["name"] for each in self._ask("tools/list", {})["tools"]}

    def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool; returns the JSON of its answer. Fails with the text of a refusal."""
        result = self.result(tool, **arguments)
        text = result["content"][0]["text"]
        assert not result.get("isError"), f"{tool}: {text}"
        return json.loads(text)

    def result(self, tool: str, **arguments: Any) -> Any:
        return self._ask("tools/call", {"name": tool, "arguments": arguments})

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)

    def _ask(self, method: str, parameters: dict[str, Any]) -> Any:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": parameters})
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
        raise AssertionError("the MCP server has ended")

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()


@pytest.fixture
def mcp(service: RunningService) -> Iterator[McpServer]:
    server = McpServer(service.url)
    yield server
    server.close()


@pytest.fixture
def databases(north: str, south: str) -> tuple[str, str]:
    for dsn in (north, south):
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(TABLE)
    return north, south


def rows(dsn: str) -> int:
    with psycopg.connect(dsn, autocommit=True) as connection:
        return int(connection.execute("SELECT count(*) FROM shop.orders").fetchall()[0][0])


def test_a_replication_is_built_watched_and_stopped(
    mcp: McpServer, service: RunningService, databases: tuple[str, str]
) -> None:
    north, south = databases
    for alias, dsn in (("north", north), ("south", south)):
        mcp.call("create_connection", domain=DOMAIN, connection=alias, userid=dsn, connectionPassword="x")
    assert mcp.call("list_domains")
    assert "north" in json.dumps(mcp.call("list_connections", domain=DOMAIN))
    mcp.call("add_trandata_schema", domain=DOMAIN, connection="north", schemaName="shop")
    mcp.call("add_trandata_table", domain=DOMAIN, connection="north", schemaName="shop", tableName="orders")
    admin = service.client()
    created = admin.post(f"/connections/{DOMAIN}.south/tables/checkpoint", {"operation": "add", "name": "ggadmin.ckpt"})
    assert created.status in (200, 201)
    assert "ckpt" in json.dumps(mcp.call("list_checkpoint_tables", domainName=DOMAIN, connectionName="south"))

    named = {"domainName": DOMAIN, "trailName": "ea"}
    mcp.call("create_extract", extractName="EXT1", connectionName="north", tableStatement="TABLE shop.*;", **named)
    mapping = {"mapStatement": "MAP shop.*, TARGET shop.*;", "checkpointTable": "ggadmin.ckpt"}
    mcp.call("create_replicat", replicatName="REP1", connectionName="south", **mapping, **named)
    for name in ("EXT1", "REP1"):
        mcp.call("start", processName=name)
    with psycopg.connect(north, autocommit=True) as connection:
        connection.execute("INSERT INTO shop.orders SELECT n, 'new' FROM generate_series(1, 100) n")
    until("the rows arrive", lambda: rows(south) == 100)

    for kind, name in (("extract", "EXT1"), ("replicat", "REP1")):
        one = {f"{kind}Name": name}
        assert name in json.dumps(mcp.call(f"list_{kind}s"))
        assert mcp.call(f"get_{kind}_details", **one)
        for tool in ("status", "lag", "stats", "report"):
            assert mcp.call(f"get_{kind}_{tool}", **one), tool
    assert "ea" in json.dumps(mcp.call("list_trails"))
    assert isinstance(mcp.call("list_distribution_paths"), dict | list)
    assert isinstance(mcp.call("list_data_streams"), dict | list)

    for name in ("EXT1", "REP1"):
        mcp.call("stop", processName=name)
    mcp.call("update_extract", extractName="EXT1", connectionName="north", tableStatement="TABLE shop.orders;", **named)
    assert "TABLE shop.orders;" in (service.home / "dirprm" / "ext1.prm").read_text()
    for address in ("/extracts/EXT1", "/replicats/REP1"):
        assert admin.delete(address).status == 200


def test_a_path_to_another_home_is_created_started_stopped_and_deleted(
    mcp: McpServer, service: RunningService, tmp_path: Path
) -> None:
    """The tool names one trail for both ends, so the ends are in different homes."""
    source, target = TrailName(service.home / "dirdat", "eb"), RunningService(tmp_path / "target", "")
    write_trail(source, [small(1), small(2)])
    Peers(Home(service.home)).add("target", f"127.0.0.1:{target.port}", fingerprint(target.home))
    mcp.call("create_connection", domain="Network", connection="net", userid="dora", connectionPassword=PASSWORD)
    try:
        ends = {"sourceURI": "localhost", "sourceTrailName": "eb", "targetURI": "127.0.0.1", "targetPort": target.port}
        login = {"targetAuthenticationMethod": "Alias", "targetDomain": "Network", "targetAlias": "net"}
        mcp.call("create_distribution_path", distributionPathName="DP1", **ends, **login)
        assert "DP1" in json.dumps(mcp.call("list_distribution_paths"))
        mcp.call("start_distribution_path", processName="DP1")
        written = TrailName(target.home / "dirdat", "eb")
        until("the rows arrive", lambda: written.file(0).exists() and read_all(written) == read_all(source))
        mcp.call("stop_distribution_path", processName="DP1")
        assert service.client().delete("/sources/DP1").status == 200
    finally:
        target.close()


def test_every_tool_is_offered(mcp: McpServer) -> None:
    assert {"create_extract", "create_replicat", "create_distribution_path", "start", "stop"} <= mcp.tools()
