"""What the service answers when files of the home are damaged: it says which."""

from __future__ import annotations

import pytest
from service_client import RunningService, ServiceClient

pytestmark = pytest.mark.slow


def test_a_damaged_group_is_listed_with_its_error_and_is_not_healthy(
    service: RunningService, client: ServiceClient
) -> None:
    service.run("ADD EXTRACT n1, SOURCEISTABLE")
    assert client.get("/config/health").response["healthy"]
    (service.home / "dirchk" / "N1.cpe").write_bytes(b"junk")
    listed = client.get("/extracts")
    assert [(each["name"], each["status"]) for each in listed.response["items"]] == [("N1", "abended")]
    assert [each["severity"] for each in listed.body["messages"]] == ["WARNING"]
    assert "N1" in listed.body["messages"][0]["title"]
    health = client.get("/config/health").response
    named = [each for each in health["criticalResources"] if each["name"] == "N1"]
    assert (health["healthy"], [each["status"] for each in named]) == (False, ["abended"])
    assert not client.get("/config/health/check").response["healthy"]


def test_open_metrics_do_not_need_the_users(service: RunningService, client: ServiceClient) -> None:
    file = service.home / "dirwlt" / "users.ggs"
    before = file.read_bytes()
    file.write_bytes(b"junk")
    try:
        assert client.get("//metrics").status == 200
        assert service.client("").get("//metrics").status == 200
        refused = client.get("/extracts")
        assert (refused.status, refused.body["$schema"]) == (503, "api:standardResponse")
    finally:
        file.write_bytes(before)
    assert client.get("/extracts").status == 200
