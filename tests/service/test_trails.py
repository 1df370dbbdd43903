"""Trails, paths between them, and purging, with trails that a test wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import until
from service_client import RunningService, ServiceClient
from trail_kit import small, write_trail

from ggshell.trail.name import TrailName

pytestmark = pytest.mark.slow


def write(home: Path, trail: str, transactions: int = 40) -> int:
    """Write a trail of several files and return how many there are."""
    name = TrailName.parse(trail, home)
    write_trail(name, [small(csn, rows=20, size=40) for csn in range(1, transactions + 1)], max_bytes=10_000)
    return len(name.sequences())


def names(client: ServiceClient, path: str) -> list[str]:
    return [each["name"] for each in client.get(path).response["items"]]


def body(client: ServiceClient, source: str = "ea", target: str = "da", **more: Any) -> dict[str, Any]:
    port = client.url.rpartition(":")[2]
    return {
        "source": {"uri": f"trail://localhost:{port}/services/v2/sources?trail={source}"},
        "target": {"uri": f"ws://127.0.0.1:{port}/services/v2/targets?trail={target}"},
        **more,
    }


@pytest.fixture
def files(service: RunningService, client: ServiceClient) -> Iterator[int]:
    """The number of files of trail ``./dirdat/ea``."""
    yield write(service.home, "./dirdat/ea")
    for path in names(client, "/sources"):
        client.delete(f"/sources/{path}")
    for trail in ("ea", "da"):
        client.delete(f"/trails/{trail}")


def test_a_trail_is_shown_with_its_files(client: ServiceClient, files: int) -> None:
    assert files > 3
    assert "ea" in names(client, "/trails")
    shown = client.get("/trails/ea").response
    assert (shown["path"], shown["sequenceMin"], shown["sequenceMax"]) == ("./dirdat", 0, files - 1)
    assert client.get("/trails?details=true").response["items"][0]["details"]["spaceUsed"] > 10_000
    assert names(client, "/trails/ea/sequences") == [str(number) for number in range(files)]
    second = client.get("/trails/ea/sequences/1").response
    assert (second["encrypted"], second["spaceUsed"] > 1000) == (False, True)
    for address in (
        "/trails/zz",
        "/trails/none",
        "/trails/ea/sequences/99",
        "/trails/ea/sequences/x",
        "/trails/ea?path=%00",
    ):
        assert client.get(address).status in (400, 404), address
    for address in ("/trails/ea/sequences/0?download=true",):
        assert client.get(address).codes == ["GGS-00904"]
    assert client.post("/trails/ea/sequences/99", {}).codes == ["GGS-00904"]


def test_files_in_the_home_folder_that_no_group_uses_are_listed(client: ServiceClient, service: RunningService) -> None:
    write(service.home, "tz")
    assert "tz" in names(client, "/trails")
    assert client.delete("/trails/tz").status == 200
    assert "tz" not in names(client, "/trails")


def test_a_trail_is_described_before_it_is_written(client: ServiceClient, files: int) -> None:
    assert client.post("/trails/HumanResources", {"name": "hr", "path": "north", "sizeMB": 20}).status == 201
    assert client.post("/trails/HumanResources", {"name": "hr", "path": "north"}).status == 409
    assert client.post("/trails/ea", {"path": "./dirdat"}).status == 409
    assert client.post("/trails/toolong", {}).status == 400
    for _ in range(2):
        assert client.patch("/trails/HumanResources", {"description": "people"}).status == 200
    shown = client.get("/trails/HumanResources").response
    assert (shown["name"], shown["path"], shown["sizeMB"], shown["description"]) == ("hr", "north", 20, "people")
    assert client.delete("/trails/HumanResources").status == 200
    assert client.get("/trails/HumanResources").status == 404


def test_files_that_a_reader_needs_are_kept(client: ServiceClient, service: RunningService, files: int) -> None:
    assert client.post("/sources/RD1", body(client)).status == 201
    assert client.delete("/trails/ea").status == 409
    assert client.delete("/trails/ea?path=dirprm/../dirdat").status == 409
    assert client.delete("/trails/ea/sequences/0").status == 409
    assert client.delete("/trails/ea/sequences/0?force=true").status == 200
    assert client.delete("/trails/ea/sequences/0?force=true").status == 404
    assert client.delete("/trails/ea/sequences").status == 400
    assert client.delete("/sources/RD1").status == 200
    assert client.delete("/trails/ea/sequences?first=0&last=1").status == 200
    assert names(client, "/trails/ea/sequences")[0] == "2"
    assert client.delete("/trails/ea").status == 200
    assert not list((service.home / "dirdat").glob("ea*"))


def test_a_path_copies_a_trail_and_reports_on_it(client: ServiceClient, service: RunningService, files: int) -> None:
    details = {"details": {"trail": {"sizeMB": 5}}}
    request = body(client, begin={"sequence": "0", "offset": "0"}, status="running", description="copy")
    request["target"] |= details
    assert client.post("/sources/cp1", request).status == 201
    assert client.post("/sources/CP1", request).status == 409
    assert client.get("/sources").response["items"][0]["status"] == "running"
    shown = client.get("/sources/cp1").response
    assert (shown["source"], shown["target"], shown["description"]) == (request["source"], request["target"], "copy")
    copy = TrailName.parse("./dirdat/da", service.home)
    until("the trail is copied", lambda: bool(copy.sequences()) and copy.file(0).stat().st_size > 10_000)
    until("it is counted", lambda: bool(client.get("/sources/cp1/stats").response["tables"]))
    info = client.get("/sources/cp1/info").response
    assert (info["status"], info["sourceExtractName"], info["processId"] > 0) == ("running", "", True)
    assert client.get("/sources/cp1/checkpoints").response["current"]["input"][0]["current"]["name"] == "ea"
    assert client.get("/mpoints/CP1/distsrvrNetworkStats").response["distsrvrNetworkStats"] == []
    for _ in range(2):
        assert client.patch("/sources/cp1", {"status": "stopped"}).status == 200
    assert client.patch("/sources/cp1", {"begin": {"sequence": 1, "offset": 0}}).status == 200
    assert client.get("/sources/cp1/stats").response["tables"] == []
    deleted = client.delete("/sources/cp1")
    assert (deleted.status, deleted.codes[-1]) == (200, "OGG-08516")
    assert client.get("/sources/cp1").status == 404


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"target": {"uri": "wss://elsewhere:9014/services/v2/targets"}}, "does not name a trail"),
        ({"target": {"uri": "ws://elsewhere:9014/services/v2/targets?trail=da"}}, "unencrypted"),
        ({"target": {"uri": "http://localhost/?trail=da"}}, "not a target"),
        ({"target": {"uri": "ws://localhost:99999/services/v2/targets?trail=da"}}, "not a valid URL"),
        ({"source": {"uri": "file:///ea"}}, "not a source"),
        ({"source": {"uri": "trail://localhost/services/v2/sources"}}, "trail"),
        ({"source": {"uri": "trail://localhost/services/v2/sources?trail=toolong"}}, "two characters"),
        ({"targetInitiated": True}, "initiates"),
        ({"ruleset": {"rules": [{"tags": ["00"]}]}}, "ruleset"),
        ({"ruleset": {"rules": [{"objectNames": ["a.b"]}, {"passthru": True}]}}, "one rule"),
        ({"ruleset": {"rules": [{"objectNames": ["a.b"], "action": "x"}]}}, "include or exclude"),
        ({"source": None}, "required"),
        ({"begin": {"at": {"csn": 7}}}, "begin"),
        ({"begin": {"sequence": "x"}}, ""),
        ({"status": "flying"}, "status"),
    ],
)
def test_a_path_that_cannot_be_built_is_refused_and_leaves_nothing(
    client: ServiceClient, files: int, change: dict[str, Any], named: str
) -> None:
    reply = client.post("/sources/BAD", {**body(client), **change})
    assert (reply.status, named in reply.text) == (400, True), reply.text
    assert client.get("/sources/BAD").status == 404


def test_an_operator_starts_a_path_and_an_administrator_changes_it(
    client: ServiceClient, service: RunningService, files: int
) -> None:
    client.post("/sources/OP1", body(client))
    operator = service.client("otto")
    assert operator.patch("/sources/OP1", {"status": "stopped"}).status == 200
    assert operator.patch("/sources/OP1", {"description": "x"}).status == 403
    assert client.patch("/sources/OP1", {"description": "x"}).status == 200
    assert client.patch("/sources/OP1", body(client)).status == 200
    assert client.patch("/sources/OP1", {"target": body(client, target="db")["target"]}).status == 200
    assert client.get("/sources/OP1").response["target"] == body(client, target="db")["target"]
    assert client.get("/sources/OP1").response["description"] == "x"


def test_a_path_to_another_home_signs_in_and_compresses_as_asked(client: ServiceClient, files: int) -> None:
    target = {
        "uri": "wss://south.example.com:9014/services/v2/targets?trail=da",
        "authenticationMethod": {"domain": "Network", "alias": "oggnet"},
        "details": {"trail": {"sizeMB": 5}, "compression": {"enabled": True}},
    }
    assert client.post("/sources/FAR", {**body(client), "target": target}).status == 201
    assert client.get("/sources/FAR").response["target"] == target
    other = {**target, "uri": "wss://west.example.com:9014/services/v2/targets?trail=db"}
    for _ in range(2):
        assert client.patch("/sources/FAR", {"target": other}).status == 200
    assert client.get("/sources/FAR").response["target"]["uri"] == other["uri"]
    assert client.patch("/sources/FAR", {"target": body(client)["target"]}).status == 200
    assert client.delete("/sources/FAR").status == 200


def test_a_ruleset_and_a_size_are_set_changed_and_shown(client: ServiceClient, files: int) -> None:
    ruleset = {"name": "r", "rules": [{"action": "exclude", "filters": [{"objectNames": ["hr.*", "a.b"]}]}]}
    assert client.post("/sources/RS1", body(client, ruleset=ruleset)).status == 201
    assert client.get("/sources/RS1").response["ruleset"] == ruleset
    other = {"rules": [{"objectNames": "sales.*"}]}
    sized = {**body(client)["target"], "details": {"trail": {"sizeMB": 7}}}
    for _ in range(2):
        assert client.patch("/sources/RS1", {"ruleset": other, "target": sized}).status == 200
    shown = client.get("/sources/RS1").response
    assert (shown["ruleset"], shown["target"]["details"]["trail"]["sizeMB"]) == (other, 7)
    assert client.patch("/sources/RS1", {"ruleset": {"rules": [{"passthru": True}]}}).status == 200
    assert client.patch("/sources/RS1", {"ruleset": {"rules": [{"columnValues": []}]}}).status == 400
    assert client.get("/sources/RS1").response["ruleset"] == {"rules": [{"passthru": True}]}
    assert client.delete("/sources/RS1").status == 200


def test_a_path_that_this_home_starts_is_a_target(client: ServiceClient) -> None:
    wanted = {
        "source": {
            "uri": "wss://north.example.com:9014/services/v2/sources?trail=ea",
            "authenticationMethod": {"domain": "Network", "alias": "oggnet"},
        },
        "target": {"uri": "trail://localhost/services/v2/targets?trail=eb"},
        "ruleset": {"rules": [{"objectNames": ["hr.*"], "action": "include"}]},
        "begin": {"sequence": 0, "offset": 0},
        "targetInitiated": True,
        "description": "from north",
    }
    assert client.post("/targets/RV1", wanted).status == 201
    assert client.post("/targets/RV1", wanted).status == 409
    assert {each["name"]: each["status"] for each in client.get("/targets").response["items"]} == {"RV1": "stopped"}
    shown = client.get("/targets/rv1").response
    assert {name: shown[name] for name in wanted} == wanted
    compressed = {**wanted["target"], "details": {"compression": {"enabled": True}, "trail": {"sizeMB": 9}}}
    for _ in range(2):
        assert (
            client.patch("/targets/RV1", {"target": compressed, "ruleset": {"rules": [{"passthru": True}]}}).status
            == 200
        )
    assert client.get("/targets/RV1").response["ruleset"] == {"rules": [{"passthru": True}]}
    assert client.patch("/targets/RV1", {"begin": "now"}).status == 200
    assert client.get("/targets/RV1").response["begin"] == "now"
    for part, field in (("info", "lag"), ("checkpoints", "current"), ("stats", "tables"), ("progress", "lag")):
        assert field in client.get(f"/targets/RV1/{part}").response
    for wrong in (
        {"source": {"uri": "trail://localhost/services/v2/sources?trail=ea"}},
        {"target": {"uri": "wss://x?trail=a"}},
    ):
        assert client.patch("/targets/RV1", wrong).status == 400
        assert client.post("/targets/RV2", {**wanted, **wrong}).status == 400
    assert client.post("/targets/RV2", {**wanted, "targetInitiated": False}).status == 400
    assert client.delete("/targets/RV1").status == 200
    assert client.get("/targets/RV1").status == 404


def test_trails_are_purged_by_rule(client: ServiceClient, service: RunningService, files: int) -> None:
    purge = {"name": "purge", "purgeType": "trails", "trails": [{"name": "ea"}], "useCheckpoints": False}
    keep = {**purge, "keep": [{"type": "min", "units": "files", "value": files - 2}]}
    assert service.client("otto").post("/commands/execute", purge).status == 403
    reply = service.client("jane").post("/commands/execute", keep)
    assert (reply.status, reply.codes) == (200, ["OGG-00957"] * 2)
    assert client.post("/commands/execute", {**keep, "keep": [{"units": "hours", "value": 1}]}).codes == []
    assert len(client.post("/commands/execute", {**purge, "trails": [{"name": "e*"}]}).codes) == files - 3
    assert client.post("/commands/execute", {**purge, "trails": []}).status == 400
    assert client.post("/commands/execute", {**purge, "trails": [{"name": "toolong"}]}).status in (200, 400)
    assert client.post("/commands/execute", {**purge, "purgeType": "history"}).status == 400


def test_commands_require_the_role_of_what_they_do(client: ServiceClient, service: RunningService, files: int) -> None:
    client.post("/sources/CM1", body(client))
    user, operator = service.client("uma"), service.client("otto")
    lag = {"name": "report", "reportType": "lag", "thresholds": [{"type": "critical", "units": "seconds", "value": 0}]}
    report = user.post("/commands/execute", lag)
    assert (report.response["items"][0]["level"], report.codes) == ("critical", ["OGG-00947"])
    start = {"name": "start", "processName": "CM1", "processType": "distpath"}
    assert user.post("/commands/execute", start).status == 403
    for command in (start, start, {**start, "name": "restart"}, {**start, "name": "stop"}, {**start, "name": "kill"}):
        reply = operator.post("/commands/execute", command)
        assert (reply.status, reply.response["processes"]) == (200, ["CM1"]), reply.text
    for bad in (
        {"name": "dance"},
        {"name": "start"},
        {**start, "after": 7},
        {"name": "report", "reportType": "weather"},
        {"name": "report", "reportType": "tables"},
    ):
        assert operator.post("/commands/execute", bad).status == 400, bad
    assert operator.post("/commands/execute", {"name": "stop", "processName": "NONE"}).status == 404


def test_a_receiver_path_that_does_not_exist_is_not_found(client: ServiceClient) -> None:
    assert names(client, "/targets") == []
    assert client.get("/targets/x/progress").status == 404
    assert client.post("/targets/x", {"name": "x"}).status == 400
    assert client.patch("/targets/x", {"status": "running"}).status == 404
    assert client.delete("/targets/x").status == 404


def test_the_document_names_the_parameters_of_an_address(client: ServiceClient) -> None:
    operation = client.get("//openapi.json").body["paths"]["/trails/{trail}/sequences"]["delete"]
    assert [(each["name"], each["in"]) for each in operation["parameters"]] == [
        ("trail", "path"),
        *((name, "query") for name in ("path", "force", "first", "last")),
    ]
