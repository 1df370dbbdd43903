"""Deployments and their services over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest
from service_client import RunningService, ServiceClient

pytestmark = pytest.mark.slow

SERVICE = "/deployments/Local/services/adminsrvr"


def test_every_service_is_found_on_the_port_of_the_process(service: RunningService, client: ServiceClient) -> None:
    names = [each["name"] for each in client.get("/deployments").response["items"]]
    assert names == ["Local", "ServiceManager"]
    for deployment in names:
        for each in client.get(f"/deployments/{deployment}/services").response["items"]:
            config = client.get(f"/deployments/{deployment}/services/{each['name']}").response["config"]
            assert config["network"]["serviceListeningPort"] == [{"address": "127.0.0.1", "port": service.port}]
    listed = client.get("/installation/services?deployment=Local").response["services"]
    assert [each["serviceName"] for each in listed] == ["adminsrvr", "distsrvr", "recvsrvr", "pmsrvr"]
    assert listed[0]["listeners"] == [{"address": "127.0.0.1", "port": service.port}]
    assert len(client.get("/installation/deployments").response["deployments"]) == 2


@pytest.mark.parametrize(
    "path",
    [
        "/deployments/South",
        "/deployments/South/services",
        "/deployments/Local/services/none",
        "/deployments/Local/services/ServiceManager",
        "/deployments/Local/services/none/logs",
    ],
)
def test_what_does_not_exist_is_not_found(client: ServiceClient, path: str) -> None:
    assert client.get(path).status == 404


def with_timeout(config: dict[str, Any], seconds: object) -> dict[str, Any]:
    times = {"sessionInactiveSecs": seconds, "sessionDurationSecs": seconds}
    return {"config": {**config, "authorizationDetails": {**config["authorizationDetails"], **times}}}


def test_the_time_limit_of_sessions_is_changed_in_the_parameter_file_and_at_once(
    service: RunningService, client: ServiceClient
) -> None:
    config = client.get(SERVICE).response["config"]
    assert client.patch(SERVICE, with_timeout(config, 14_400)).status == 200
    assert client.get(SERVICE).response["config"]["authorizationDetails"]["sessionInactiveSecs"] == 14_400
    assert client.post("/authorization").response["expiresIn"] == 14_400
    written = (service.home / "dirprm" / "service.prm").read_text()
    assert client.patch(SERVICE, with_timeout(config, 14_400)).status == 200
    assert (service.home / "dirprm" / "service.prm").read_text() == written
    assert written.splitlines()[-1] == "SESSIONTIMEOUT 14400S"
    assert client.patch(SERVICE, with_timeout(config, 1)).status == 400
    assert client.patch(SERVICE, with_timeout(config, "x")).status == 400
    assert (service.home / "dirprm" / "service.prm").read_text() == written


def test_other_settings_of_a_service_cannot_be_changed(client: ServiceClient) -> None:
    assert client.patch(SERVICE, {"status": "running", "enabled": True}).status == 200
    assert client.patch(SERVICE, {"status": "stopped"}).status == 400
    reply = client.patch(SERVICE, {"config": {"network": {"serviceListeningPort": 1}}})
    assert (reply.status, "service.prm" in reply.body["messages"][0]["title"]) == (400, True)
    assert client.post(SERVICE, {"enabled": False}).codes == ["GGS-00904"]
    assert client.delete(SERVICE).codes == ["GGS-00904"]


def test_metrics_of_a_deployment_are_stored(service: RunningService, client: ServiceClient) -> None:
    assert client.get("/deployments/Local").response["metrics"] == {"enabled": False, "servers": []}
    given = {"enabled": True, "servers": [{"type": "statsd", "host": "127.0.0.1"}]}
    assert client.patch("/deployments/Local", {"metrics": given}).status == 200
    wanted = {"enabled": True, "servers": [{"type": "statsd", "host": "127.0.0.1", "port": 8125}]}
    assert client.get("/deployments/Local").response["metrics"] == wanted
    stored = json.loads((service.home / "dirdb/service/deployment/Local.json").read_bytes())
    assert stored == {"metrics": wanted}
    assert client.patch("/deployments/Local", {"metrics": {"enabled": False}}).status == 200
    assert client.get("/deployments/Local").response["metrics"] == {**wanted, "enabled": False}
    bad = {"metrics": {"servers": [{"type": "graphite", "host": "h"}]}}
    assert client.patch("/deployments/Local", bad).status == 400


def test_the_folders_of_a_deployment_cannot_be_changed(service: RunningService, client: ServiceClient) -> None:
    home = client.get("/deployments/Local").response["oggHome"]
    assert client.patch("/deployments/Local", {"oggHome": home, "enabled": True}).status == 200
    assert client.patch("/deployments/Local", {"oggDataHome": "/elsewhere"}).status == 400
    assert client.post("/deployments/South", {"oggHome": "/u01"}).codes == ["GGS-00904"]
    assert client.delete("/deployments/Local").codes == ["GGS-00904"]


def test_a_service_has_a_log(client: ServiceClient) -> None:
    assert [each["name"] for each in client.get(f"{SERVICE}/logs").response["items"]] == ["default"]
    text = client.get(f"{SERVICE}/logs/default", headers={"Accept": "text/plain"}).text
    assert "Service started" in text
