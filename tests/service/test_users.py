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
