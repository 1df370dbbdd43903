"""What the fields of an Extract's and a Replicat's body mean, and what the answer says about them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from processes import until
from service_client import RunningService, ServiceClient
from trail_kit import small, write_trail

from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.trail.name import TrailName

pytestmark = pytest.mark.slow
PUMP: dict[str, Any] = {"source": {"name": "ea", "path": "dirdat/"}}
REPLICAT: dict[str, Any] = {**PUMP, "checkpoint": {"table": "ggadmin.ckpt"}}


@pytest.fixture(autouse=True)
def without_groups(service: RunningService, client: ServiceClient) -> Iterator[None]:
    """Remove what a test added."""
    yield
    for kind in ("extracts", "replicats"):
        for each in client.get(f"/{kind}").response["items"]:
            client.delete(f"/{kind}/{each['name']}")


TIMES = (
    ("2026-11-23 15:13:00", "2026-11-23 15:13:00"),
    ("2026-11-23T15:13:00", "2026-11-23 15:13:00"),
    ("2026-11-23T15:13:00Z", None),
    ("2026-11-23T15:13:00.250+02:00", None),
)


@pytest.mark.parametrize("kind", ["extracts", "replicats"])
@pytest.mark.parametrize(("time", "shown"), TIMES, ids=[time for time, _ in TIMES])
def test_a_group_begins_at_a_time_in_local_or_iso_form(
    client: ServiceClient, kind: str, time: str, shown: str | None
) -> None:
    local = shown or datetime.fromisoformat(time).astimezone().replace(tzinfo=None).isoformat(" ")
    reply = client.post(f"/{kind}/G1", {**REPLICAT, "begin": time} if kind == "replicats" else {**PUMP, "begin": time})
    assert reply.status == 201, reply.text
    assert client.get(f"/{kind}/G1").response["begin"] == local
    assert client.patch(f"/{kind}/G1", {"begin": "2026-11-22T01:02:03"}).status == 200
    assert client.get(f"/{kind}/G1").response["begin"] == "2026-11-22 01:02:03"
    assert client.patch(f"/{kind}/G1", {"begin": time}).status == 200
    assert client.get(f"/{kind}/G1").response["begin"] == local


@pytest.mark.parametrize("begin", ["tomorrow", "2026-13-01", "", {"sequence": "x"}, {"sequence": {}}])
def test_a_begin_that_is_no_position_is_refused(client: ServiceClient, begin: Any) -> None:
    reply = client.post("/extracts/G1", {**PUMP, "begin": begin})
    assert (reply.status, "begin" in reply.text) == (400, True), reply.text


@pytest.mark.parametrize("kind", ["extracts", "replicats"])
def test_a_begin_that_the_group_has_already_says_that_nothing_moved(client: ServiceClient, kind: str) -> None:
    client.post(f"/{kind}/G1", {**(REPLICAT if kind == "replicats" else PUMP), "begin": "now"})
    reply = client.patch(f"/{kind}/G1", {"begin": "now"})
    assert (reply.status, reply.codes) == (200, ["GGS-00932"])
    assert f"ALTER {kind[:-1].upper()} G1, BEGIN NOW moves it" in reply.text


def targets(client: ServiceClient) -> list[tuple[str, str]]:
    found = client.get("/extracts/G1").response["targets"]
    return [(each.get("path", ""), each["name"]) for each in found]


def test_a_trail_without_a_folder_is_the_one_of_the_parameter_file(client: ServiceClient) -> None:
    config = ["EXTRACT g1", "EXTTRAIL ./dirdat/ec", "TABLE s.*;"]
    body = {**PUMP, "config": config, "targets": [{"name": "ec", "sizeMB": 5}]}
    assert client.post("/extracts/G1", body).status == 201
    assert targets(client) == [("./dirdat", "ec")]
    for _ in range(2):
        assert client.patch("/extracts/G1", {"targets": [{"name": "ec", "sizeMB": 7}]}).status == 200
    config[1] = "EXTTRAIL dirdat/ec"
    assert client.patch("/extracts/G1", {"config": config, "targets": [{"name": "ec", "sizeMB": 8}]}).status == 200
    assert [each["sizeMB"] for each in client.get("/extracts/G1").response["targets"]] == [8]
    assert client.patch("/extracts/G1", {"targets": [{"name": "ed"}]}).status == 200
    assert targets(client) == [("./dirdat", "ec"), ("", "ed")]


def test_a_replicat_reads_the_trail_that_has_files_or_a_writer(client: ServiceClient, service: RunningService) -> None:
    without = {**REPLICAT, "source": {"name": "eb"}}
    client.post("/replicats/G2", without)
    write_trail(TrailName.parse("./dirdat/eb", service.home), [small(1, rows=1, size=10)])
    client.post("/replicats/G3", without)
    client.post("/replicats/G4", {**REPLICAT, "source": {"name": "ef"}})
    client.post("/extracts/G1", {**PUMP, "targets": [{"name": "ef", "path": "dirdat/"}]})
    client.post("/replicats/G5", {**REPLICAT, "source": {"name": "ef"}})
    read = [client.get(f"/replicats/G{number}").response["source"] for number in (2, 3, 4, 5)]
    assert read == [
        {"name": "eb"},
        {"name": "eb", "path": "./dirdat"},
        {"name": "ef"},
        {"name": "ef", "path": "dirdat"},
    ]
    assert client.delete("/trails/eb").status == 409


def test_a_trail_is_removed_from_its_extract(client: ServiceClient) -> None:
    client.post("/extracts/G1", {**PUMP, "targets": [{"name": "eg"}, {"name": "eg", "path": "dirdat"}]})
    refused = client.delete("/trails/eg")
    assert (refused.status, "?extract=" in refused.text) == (409, True)
    assert client.delete("/trails/eg?extract=OTHER").status == 404
    assert client.delete("/trails/eg?extract=g1").status == 200
    assert targets(client) == [("dirdat", "eg")]
    assert client.delete("/trails/eg?path=dirdat&extract=g1").status == 200
    assert targets(client) == []


@pytest.mark.parametrize(
    ("address", "body", "remedy"),
    [
        ("/extracts/G1", {}, "USERIDALIAS to config"),
        ("/replicats/G1", {"source": {"name": "ea"}}, '\\"checkpoint\\": {\\"table\\"'),
        ("/replicats/G1", {}, '\\"path\\": \\"dirdat/\\"'),
        ("/replicats/G1", {**REPLICAT, "mode": {"type": "parallel"}}, '\\"parallel\\": true'),
        ("/extracts/G1", {**PUMP, "registration": "yes"}, "default, none"),
        ("/replicats/G1", {**REPLICAT, "registration": "default"}, "leave registration out"),
        ("/commands/execute", {"name": "purge"}, '\\"purgeType\\": \\"trails\\"'),
        ("/commands/execute", {"name": "report"}, "checkpointTables"),
        ("/tasks/t1", {"command": {"name": "dance"}}, "name is one of start, stop, kill, restart, report, purge"),
    ],
)
def test_a_refusal_names_the_remedy(client: ServiceClient, address: str, body: dict[str, Any], remedy: str) -> None:
    reply = client.post(address, body)
    assert (reply.status in (400, 409), remedy in reply.text) == (True, True), reply.text


def test_a_deleted_group_leaves_its_parameter_file_and_says_so(client: ServiceClient, service: RunningService) -> None:
    config = ["EXTRACT g1", "EXTTRAIL ./dirdat/ec", "TABLE s.*;"]
    client.post("/extracts/G1", {**PUMP, "config": config})
    assert "Parameter file dirprm/g1.prm is kept." in client.delete("/extracts/G1").text
    assert (service.home / "dirprm" / "g1.prm").exists()
    (service.home / "dirprm" / "g1.prm").unlink()
    client.post("/extracts/G1", PUMP)
    assert "is kept" not in client.delete("/extracts/G1").text


def run_pump(client: ServiceClient, service: RunningService) -> None:
    """Create and start an Extract that copies a trail of three rows."""
    write_trail(TrailName.parse("./dirdat/eh", service.home), [small(1, rows=3, size=10)])
    config = ["EXTRACT g1", "PASSTHRU", "EXTTRAIL ./dirdat/ei", "TABLE *.*;"]
    source = {"name": "eh", "path": "./dirdat"}
    body = {"source": source, "config": config, "targets": [{"name": "ei"}], "status": "running"}
    assert client.post("/extracts/G1", body).status == 201


def test_statistics_are_data_and_text(client: ServiceClient, service: RunningService) -> None:
    run_pump(client, service)
    until("G1 reads its trail", lambda: processed(client, "G1"))
    found = client.post("/extracts/G1/command", {"command": "STATS"}).response
    assert set(found["replyData"]["sections"]) == {"total", "daily", "hourly", "latest"}
    assert any("G1" in line for line in found["reply"])
    table = found["replyData"]["tables"][0]["source"]
    arguments = f", TOTAL, TABLE {table}"
    chosen = client.post("/extracts/G1/command", {"command": "stats", "arguments": arguments}).response
    data, lines = chosen["replyData"], chosen["reply"]
    assert set(data["sections"]) == {"total"} == set(data["tables"][0]["counts"])
    assert any("Total statistics" in line for line in lines)
    assert not any("Daily statistics" in line for line in lines)
    none = client.post("/extracts/G1/command", {"command": "STATS", "arguments": "TABLE other.*"}).response
    assert (none["replyData"]["tables"], "No active extraction maps." in none["reply"]) == ([], True)
    refused = client.post("/extracts/G1/command", {"command": "SHOWTRANS"})
    assert (refused.status, "does not support the request SHOWTRANS" in refused.text) == (409, True)


def processed(client: ServiceClient, name: str) -> bool:
    found = client.post(f"/extracts/{name}/command", {"command": "LOGEND"}).response
    return bool(found["replyData"]["allRecordsProcessed"])


REPLIES = {
    "STATUS": "Sending STATUS request to EXTRACT G1 ...",
    "GETLAG": "Sending GETLAG request to EXTRACT G1 ...",
    "LOGEND": "YES",
    "REPORT": "Request processed.",
    "GETPARAMINFO": "Sending GETPARAMINFO request to EXTRACT G1 ...",
    "KILL": "Sending KILL request to EXTRACT G1 ...",
}


def test_every_command_replies_with_the_lines_of_its_statement(client: ServiceClient, service: RunningService) -> None:
    run_pump(client, service)
    until("G1 reads its trail", lambda: processed(client, "G1"))
    found = {each: client.post("/extracts/G1/command", {"command": each}).response for each in REPLIES}
    assert [each for each, line in REPLIES.items() if line not in found[each]["reply"]] == [], found
    assert found["STATUS"]["replyData"]["status"]["pid"] > 0
    assert found["GETLAG"]["replyData"]["at_eof"] is True


@pytest.mark.parametrize(
    ("user", "command", "arguments", "status"),
    [
        ("uma", "GETPARAMINFO", "", 409),
        ("uma", "GETPARAMINFO", "FILE dirprm/x.prm", 403),
        ("otto", "SHOWTRANS", "FILE dirprm/x.prm", 403),
        ("jane", "SHOWTRANS", "FILE dirprm/x.prm", 400),
        ("jane", "SHOWTRANS", "FILE dirrpt/x.txt", 409),
        ("jane", "SHOWTRANS", "FILE /tmp/x.prm", 403),
        ("admin", "SHOWTRANS", "FILE dirwlt/users.ggs", 400),
        ("uma", "BR", "BRSTATS", 409),
        ("uma", "BR", "BRSTOP", 403),
        ("otto", "BR", "BRSTOP", 409),
        ("uma", "STATUS", "STOP", 400),
        ("uma", "STATS", "TOTAL", 409),
        ("uma", "STATS", "TOTAL, RESET", 403),
        ("jane", "STATS", "TOTAL, RESET", 409),
        ("uma", "KILL", "", 403),
        ("uma", "SHOWTRANS", "; STOP EXTRACT G1", 400),
        ("uma", "BR", "BRSTATS\nBRSTOP", 400),
    ],
)
def test_a_command_requires_the_role_of_its_statement(
    client: ServiceClient, service: RunningService, user: str, command: str, arguments: str, status: int
) -> None:
    """The group does not run, so a command that passes the check answers 409."""
    client.post("/extracts/G1", PUMP)
    reply = service.client(user).post("/extracts/G1/command", {"command": command, "arguments": arguments})
    assert reply.status == status, reply.text
    assert not (service.home / "dirprm" / "x.prm").exists()


def test_a_replicat_whose_alias_is_gone_is_deleted_and_otherwise_conflicts(client: ServiceClient) -> None:
    lines = ["REPLICAT gone1", "USERIDALIAS nobody", "MAP a.*, TARGET a.*;"]
    body = {"source": {"name": "ea"}, "checkpoint": {"table": "a.b"}, "config": lines}
    assert client.post("/replicats/GONE1", body).status == 201
    refused = client.patch("/replicats/GONE1", {"description": "another"})
    assert (refused.status, "alias nobody" in refused.text) == (409, True), refused.text
    deleted = client.delete("/replicats/GONE1")
    assert (deleted.status, "checkpoint table was not deleted" in deleted.text) == (200, True), deleted.text
    assert client.get("/replicats/GONE1").status == 404


@pytest.mark.parametrize(("kind", "name"), [("extracts", "EXT1"), ("replicats", "REP1")])
def test_the_parameter_file_of_a_group_names_this_group(client: ServiceClient, kind: str, name: str) -> None:
    word = kind[:-1].upper()
    lines = [f"{word} other", "TABLE s.*;" if kind == "extracts" else "MAP s.*, TARGET s.*;"]
    body = {**(PUMP if kind == "extracts" else REPLICAT), "config": lines}
    refused = client.post(f"/{kind}/{name}", body)
    assert (refused.status, refused.codes) == (400, ["OGG-02288"]), refused.text
    assert client.get(f"/{kind}/{name}").status == 404
    lines[0] = f"{word} {name.lower()}"
    assert client.post(f"/{kind}/{name}", body).status == 201
    lines[0] = f"{word} other"
    for reply in (
        client.patch(f"/{kind}/{name}", {"config": lines}),
        client.put(f"/config/files/{name}.prm", {"lines": lines}),
    ):
        assert (reply.status, reply.codes) == (400, ["OGG-02288"]), reply.text


def test_the_parameter_file_of_an_old_group_with_a_reserved_name_is_not_written(
    client: ServiceClient, service: RunningService
) -> None:
    """A version that did not reserve these names could add such a group."""
    client.post("/extracts/OLD1", PUMP)
    home = Home(service.home)
    home.checkpoint("OLD1", GroupKind.EXTRACT).rename(home.checkpoint("SERVICE", GroupKind.EXTRACT))
    before = home.parameters("service").read_text()
    reply = client.patch("/extracts/SERVICE", {"config": ["EXTRACT service", "TABLE s.*;"]})
    assert (reply.status, "reserved" in reply.text) == (400, True), reply.text
    assert home.parameters("service").read_text() == before
    assert client.delete("/extracts/SERVICE").status == 200


@pytest.mark.parametrize("name", ["all", "ER", "Manager", "MGR", "GLOBALS", "jagent", "pmsrvr", "SERVICE"])
def test_reserved_names_are_refused_for_every_kind_of_group(client: ServiceClient, name: str) -> None:
    path = {"source": {"uri": "trail://h/services/v2/sources?trail=ea"}, "target": {"uri": "file://./dirdat/eb"}}
    for kind, body in (("extracts", PUMP), ("replicats", REPLICAT), ("sources", path)):
        reply = client.post(f"/{kind}/{name}", body)
        assert (reply.status, "reserved" in reply.text) == (400, True), reply.text
    for statement in (
        f"ADD EXTRACT {name}, EXTTRAILSOURCE ea",
        f"ADD REPLICAT {name}, EXTTRAIL ea",
        f"ADD DISTPATH {name}, SOURCE ea, TARGET eb",
    ):
        found = client.post("/ggshell/statements", {"statement": statement}).response["errors"]
        assert "reserved" in found[0]["message"], found


@pytest.mark.parametrize(("kind", "name"), [("extracts", "SERVICE"), ("replicats", "mgr")])
def test_a_group_cannot_have_the_parameter_file_of_another_process(
    client: ServiceClient, service: RunningService, kind: str, name: str
) -> None:
    """An Administrator must not change service.prm, which requires SECURITY, under the name of a group."""
    file = service.home / "dirprm" / f"{name.lower()}.prm"
    before = file.read_text() if file.exists() else None
    line, add = f"{kind[:-1].upper()} {name}", "EXTTRAILSOURCE" if kind == "extracts" else "EXTTRAIL"
    body = {"source": {"name": "ea"}, "config": [line, "TABLE a.*;"]}
    reply = service.client("jane").post(f"/{kind}/{name}", body)
    assert (reply.status, "reserved" in reply.text) == (400, True), reply.text
    assert (file.read_text() if file.exists() else None) == before
    assert "reserved" in service.run(f"ADD {line}, {add} ea", 3)
