"""Several users in one request."""

from __future__ import annotations

import pytest
from service_client import PASSWORD, RunningService, ServiceClient

pytestmark = pytest.mark.slow


def names(client: ServiceClient) -> set[str]:
    return {each["name"] for each in client.get("/authorizations/all").response["items"]}


def test_several_users_are_added_or_none(service: RunningService, client: ServiceClient) -> None:
    users = [{"type": "Basic", "user": name, "credential": PASSWORD} for name in ("ggmsa", "ggadmin")]
    assert client.post("/authorizations/User", {"users": users}).status == 201
    assert {"ggmsa", "ggadmin"} < names(client)
    assert service.client("ggmsa").get("/currentuser").response["role"] == "User"
    again = [{"user": "other", "credential": PASSWORD}, users[0]]
    assert client.post("/authorizations/User", {"users": again}).status == 409
    assert client.post("/authorizations/User", {"users": [{"credential": PASSWORD}]}).status == 400
    assert "other" not in names(client)


def roles(client: ServiceClient) -> dict[str, str]:
    return {each["name"]: each["role"] for each in client.get("/authorizations/all").response["items"]}


def test_no_request_changes_a_role(service: RunningService, client: ServiceClient) -> None:
    before = roles(client)
    for address in ("/authorizations/user/admin", "/authorizations/Security/uma"):
        assert (client.get(address).status, client.delete(address).status) == (404, 404)
        refused = client.patch(address, {"info": "me"})
        assert (refused.status, "ALTER USER" in refused.text) == (404, True)
        existing = client.post(address, {"credential": PASSWORD})
        assert (existing.status, "ROLE" in existing.text) == (409, True)
    assert service.client("uma").patch("/authorizations/Security/uma", {"credential": PASSWORD}).status == 404
    assert client.patch("/authorizations/nonsense/admin", {"info": "me"}).status == 400
    for role in ("User", "all"):
        assert client.patch(f"/authorizations/{role}/nobody", {"info": "me"}).status == 404
    assert client.delete("/authorizations/User/nobody").status == 404
    assert client.delete("/authorizations/all/nobody").status == 200  # oggrestapi deletes from the role, then from all
    assert roles(client) == before


def test_a_user_is_changed_with_the_own_role_or_all(service: RunningService, client: ServiceClient) -> None:
    for role in ("User", "all"):
        assert client.patch(f"/authorizations/{role}/uma", {"info": f"by {role}"}).status == 200
        assert client.get("/authorizations/User/uma/info").response["info"] == f"by {role}"
    assert service.client("uma").patch("/authorizations/user/uma", {"credential": "battery-staple-8"}).status == 200
    assert service.client("uma", "battery-staple-8").get("/currentuser").status == 200
    assert client.patch("/authorizations/User/uma", {"credential": PASSWORD}).status == 200


def test_a_description_is_removed_and_the_body_of_get_is_accepted(client: ServiceClient) -> None:
    address = "/authorizations/User/uma"
    assert client.patch(address, {"info": "reads reports"}).status == 200
    shown = client.get(address).response
    assert client.patch(address, shown).status == 200
    assert client.get(address).response == shown
    assert client.patch(address, {"info": ""}).status == 200
    assert client.get(f"{address}/info").response["info"] == ""
    assert client.patch(address, {**shown, "role": "Security"}).status == 400
    assert client.patch(address, {**shown, "username": "jane"}).status == 400


def test_a_token_is_issued_for_a_password_or_a_session_only(service: RunningService) -> None:
    client = service.client("jane")
    token = client.get("/authorization").response["accessToken"]
    client.session.auth = None
    assert (client.post("/authorization").status, client.get("/authorization").status) == (200, 403)
    assert client.send("HEAD", "/authorization").status == 405
    bearer = service.client("")
    headers = {"Authorization": f"Bearer {token}"}
    assert bearer.get("/currentuser", headers=headers).status == 200
    refused = {method: bearer.send(method, "/authorization", headers=headers).status for method in ("POST", "GET")}
    assert refused == {"POST": 403, "GET": 403}
    cookie = service.client("").post("/authorization", headers={"Cookie": f"ogg_session={token}"})
    assert cookie.status == 403
