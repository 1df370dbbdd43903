"""Configuration files over HTTP: reading, writing with checks and versions, deleting."""

from __future__ import annotations

import pytest
from service_client import RunningService, ServiceClient

pytestmark = pytest.mark.slow

EXTRACT = ["EXTRACT cfg", "USERID postgres, PASSWORD secret-5", "TABLE s.*;"]


@pytest.fixture(scope="module", autouse=True)
def group(service: RunningService) -> None:
    """An Extract CFG whose parameter file contains a password."""
    assert service.client().post("/extracts/CFG", {"source": "tables", "config": EXTRACT}).status == 201


def names(client: ServiceClient) -> list[str]:
    return [each["name"] for each in client.get("/config/files").response["items"]]


def test_a_file_is_created_read_as_json_and_text_replaced_and_deleted(client: ServiceClient) -> None:
    assert client.post("/config/files/core.inc", {"lines": ["ReportCount Every 1000 Records"]}).status == 201
    assert "core.inc" in names(client)
    assert client.get("/config/files/core.inc").response["lines"] == ["ReportCount Every 1000 Records"]
    assert client.put("/config/files/core.inc", {"lines": "-- empty"}).status == 200
    assert client.get("/config/files/core.inc", headers={"Accept": "text/plain"}).text == "-- empty\n"
    assert client.delete("/config/files/core.inc").status == 200
    assert client.get("/config/files/core.inc").status == 404


def test_what_exists_cannot_be_created_and_what_does_not_exist_cannot_be_replaced(client: ServiceClient) -> None:
    assert client.post("/config/files/cfg.prm", {"lines": EXTRACT}).status == 409
    assert client.put("/config/files/none.inc", {"lines": []}).status == 404
    assert client.delete("/config/files/none.inc").status == 404


@pytest.mark.parametrize("name", ["x", "a.txt", "..prm", "a%2Fb.prm", "service.prm.bak", f"{'a' * 200}.prm"])
def test_a_name_of_another_file_is_refused(client: ServiceClient, name: str) -> None:
    assert client.get(f"/config/files/{name}").status == 400
    assert client.post(f"/config/files/{name}", {"lines": []}).status == 400


def test_passwords_are_not_shown_and_survive_a_change_by_a_client_that_does_not_see_them(
    service: RunningService, client: ServiceClient
) -> None:
    lines = client.get("/config/files/CFG.prm").response["lines"]
    assert "secret-5" not in str(lines)
    assert client.put("/config/files/CFG.prm", {"lines": [*lines, "TABLE t.*;"]}).status == 200
    written = (service.home / "dirprm" / "cfg.prm").read_text()
    assert written.splitlines() == [*EXTRACT, "TABLE t.*;"]
    masked = lines[1].replace("postgres", "other")
    assert client.put("/config/files/CFG.prm", {"lines": [EXTRACT[0], masked]}).status == 400


def test_a_file_of_a_group_with_errors_is_refused_and_the_old_one_stays(
    service: RunningService, client: ServiceClient
) -> None:
    before = (service.home / "dirprm" / "cfg.prm").read_bytes()
    reply = client.put("/config/files/CFG.prm", {"lines": ["EXTRACT cfg", "TABEL s.*;"]})
    assert (reply.status, "TABEL" in reply.body["messages"][0]["title"]) == (400, True)
    assert (service.home / "dirprm" / "cfg.prm").read_bytes() == before
    assert client.post("/config/files/GLOBALS", {"lines": ["GGSHEMA x"]}).status == 400
    assert client.post("/config/files/mgr.prm", {"lines": ["PORT x"]}).status == 400


def test_a_file_of_no_group_is_written_and_its_errors_are_messages(client: ServiceClient) -> None:
    reply = client.post("/config/files/later.prm", {"lines": ["EXTRACT later", "TABEL s.*;"]})
    assert (reply.status, [each["severity"] for each in reply.body["messages"]]) == (201, ["WARNING"])
    assert client.put("/config/files/later.prm", {"lines": ["EXTRACT later", "TABLE s.*;"]}).codes == ["OGG-10183"]


def test_the_file_of_a_group_cannot_be_deleted(client: ServiceClient) -> None:
    reply = client.delete("/config/files/cfg.prm")
    assert (reply.status, "DELETE EXTRACT CFG" in reply.body["messages"][0]["title"]) == (409, True)


def test_a_change_of_another_version_is_refused(client: ServiceClient) -> None:
    assert client.post("/config/files/GLOBALS", {"lines": ["GGSCHEMA ggs"]}).status == 201
    first = client.get("/config/files/GLOBALS").headers["etag"]
    unchanged = client.get("/config/files/GLOBALS", headers={"If-None-Match": first})
    assert (unchanged.status, unchanged.text) == (304, "")
    changed = client.put("/config/files/GLOBALS", {"lines": ["GGSCHEMA other"]}, headers={"If-Match": first})
    assert (changed.status, changed.headers["etag"]) == (200, client.get("/config/files/GLOBALS").headers["etag"])
    assert client.put("/config/files/GLOBALS", {"lines": []}, headers={"If-Match": first}).status == 412
    assert client.send("DELETE", "/config/files/GLOBALS", headers={"If-Match": first}).status == 412
    assert client.post("/config/files/GLOBALS", {"lines": []}, headers={"If-None-Match": "*"}).status == 412
    assert client.delete("/config/files/GLOBALS").status == 200


def test_only_the_role_security_changes_the_settings_of_the_service(service: RunningService) -> None:
    jane = service.client("jane")
    assert "METRICS OPEN" in jane.get("/config/files/service.prm").response["lines"]
    assert jane.put("/config/files/service.prm", {"lines": []}).status == 403
    assert jane.delete("/config/files/SERVICE.prm").status == 403
