"""Configuration values by type, and the health of the service."""

from __future__ import annotations

import pytest
from service_client import RunningService, ServiceClient

pytestmark = pytest.mark.slow

PROFILES = "/config/types/ogg:managedProcessSettings/values"
DESCRIPTIONS = "/config/types/ogg:configDataDescription/values"
SETTINGS = {
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


def name_of(profile: str) -> str:
    return f"ogg:managedProcessSettings:{profile}"


def test_a_profile_becomes_the_default_and_the_one_before_loses_the_mark(client: ServiceClient) -> None:
    created = client.post(f"{PROFILES}/{name_of('WEST-profile')}", SETTINGS)
    assert (created.status, created.codes) == (201, [])
    shown = client.get(f"{PROFILES}/{name_of('WEST-profile')}").response
    assert shown == {"$schema": "ogg:managedProcessSettings", **SETTINGS}
    description = {"$schema": "ogg:configDataDescription", "description": "WEST Profile", "isDefault": True}
    assert client.post(f"{DESCRIPTIONS}/{name_of('WEST-profile')}", description).status == 201
    assert client.get(f"{DESCRIPTIONS}/{name_of('Default')}").response["isDefault"] is False
    assert client.post(f"{DESCRIPTIONS}/{name_of('EAST')}", {"isDefault": True}).status == 201
    assert client.get(f"{DESCRIPTIONS}/{name_of('WEST-profile')}").response["isDefault"] is False


def test_the_default_profile_exists_can_be_replaced_and_not_deleted(client: ServiceClient) -> None:
    listed = [each["name"] for each in client.get(PROFILES).response["items"]]
    assert name_of("Default") in listed
    assert client.delete(f"{PROFILES}/{name_of('Default')}").status == 409
    assert client.post(f"{PROFILES}/{name_of('Default')}", SETTINGS).status == 409
    assert client.put(f"{PROFILES}/{name_of('Default')}", {"autoStart": {"delay": 5}}).status == 200
    assert client.get(f"{PROFILES}/{name_of('Default')}").response["autoStart"] == {"enabled": False, "delay": 5}


@pytest.mark.parametrize(
    ("body", "named"),
    [({"autoStart": {"delay": 9999}}, "delay"), ({"autoStop": {}}, "autoStop"), ({"$schema": "x"}, "$schema")],
)
def test_a_profile_that_is_not_valid_is_refused(client: ServiceClient, body: object, named: str) -> None:
    reply = client.post(f"{PROFILES}/{name_of('Bad')}", body)
    assert (reply.status, named in reply.body["messages"][0]["title"]) == (400, True)


def test_a_profile_that_a_group_uses_cannot_be_deleted(client: ServiceClient) -> None:
    assert client.post(f"{PROFILES}/{name_of('Used')}", {}).status == 201
    extract = {"source": "tables", "config": ["EXTRACT user1", "TABLE s.*;"], "managedProcessSettings": "Used"}
    assert client.post("/extracts/USER1", extract).status == 201
    assert client.delete(f"{PROFILES}/{name_of('Used')}").status == 409
    assert client.delete("/extracts/USER1").status == 200
    assert client.delete(f"{PROFILES}/{name_of('Used')}").status == 200


def test_users_add_types_with_values(client: ServiceClient) -> None:
    schema = {"id": "custom:config", "type": "object"}
    assert client.get("/config/types/custom:config/values").status == 404
    assert client.post("/config/types/custom:config", schema).status == 201
    assert client.get("/config/types/custom:config").response == schema
    assert client.post("/config/types/custom:config/values/v1", {"lines": ["--"]}).status == 201
    assert client.post("/config/types/custom:config/values/v1", {"lines": []}).status == 409
    assert client.put("/config/types/custom:config/values/v2", {"lines": []}).status == 404
    assert client.get("/config/types/custom:config/values/v1").response["lines"] == ["--"]
    assert client.delete("/config/types/custom:config").status == 409
    assert client.delete("/config/types/custom:config/values/v1").status == 200
    assert client.delete("/config/types/custom:config").status == 200


@pytest.mark.parametrize("name", ["a%20b", ":x", "x" * 97, ":" * 90, "a" + ":" * 95])
def test_a_name_of_a_value_that_is_not_valid_is_refused(client: ServiceClient, name: str) -> None:
    assert client.post(f"{PROFILES}/{name}", {}).status == 400
    assert client.get(f"{PROFILES}/{name}").status == 400


def test_a_critical_group_that_does_not_run_makes_the_service_unhealthy(service: RunningService) -> None:
    client = service.client()
    assert client.get("/config/health").response["healthy"] is True
    extract = {"source": "tables", "config": ["EXTRACT vital", "TABLE s.*;"], "critical": True}
    assert client.post("/extracts/VITAL", extract).status == 201
    health = client.get("/config/health").response
    assert health["criticalResources"][1:] == [
        {"name": "VITAL", "type": "extract", "status": "stopped", "healthy": False}
    ]
    assert health["healthy"] is False
    assert service.client("").get("/config/health/check").response["healthy"] is False
    assert client.delete("/extracts/VITAL").status == 200
    assert client.get("//services/ServiceManager/v2/config/health/check").response["deploymentName"] == "ServiceManager"


def test_the_summary_names_the_version(client: ServiceClient) -> None:
    build = client.get("/config/summary").response["build"]
    assert build["label"].startswith("ggshell")
    assert {"PostgreSQL", "MySQL", "Oracle"} <= set(build["dbms"].split(", "))
