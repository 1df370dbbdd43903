"""What an Operator may change of a group: what ALTER changes, and no files."""

from __future__ import annotations

import pytest
from service_client import RunningService, ServiceClient

pytestmark = pytest.mark.slow
PARAMETERS = ["EXTRACT op1", "USERIDALIAS north", "TABLE s.t;"]


@pytest.fixture
def groups(service: RunningService, client: ServiceClient) -> None:
    """An Extract of a table and a Replicat, which exist for this test."""
    for name in ("/extracts/OP1", "/replicats/OP2"):
        client.delete(name)
    assert client.post("/extracts/OP1", {"source": {"name": "ea"}, "config": PARAMETERS}).status == 201
    replicat = {"source": {"name": "ea"}, "checkpoint": {"table": "ggadmin.ckpt"}}
    assert client.post("/replicats/OP2", replicat).status == 201


@pytest.mark.usefixtures("groups")
def test_an_operator_alters_groups_but_no_parameter_file(service: RunningService, client: ServiceClient) -> None:
    otto = service.client("otto")
    config = [*PARAMETERS, "-- added"]
    for address in ("/extracts/OP1", "/replicats/OP2"):
        assert otto.patch(address, {"description": "night run", "status": "stopped"}).status == 200
        assert otto.patch(address, {"config": config, "description": "other"}).status == 403
        assert client.get(address).response["description"] == "night run"
    assert otto.patch("/extracts/OP1", {"targets": [{"name": "zz"}]}).status == 403
    assert otto.patch("/extracts/OP1", {"begin": {"sequence": 1, "offset": 0}}).status == 200
    assert client.get("/extracts/OP1").response["config"] == PARAMETERS
    assert service.client("jane").patch("/extracts/OP1", {"config": config}).status == 200
    assert client.get("/extracts/OP1").response["config"] == config


@pytest.mark.usefixtures("groups")
def test_the_message_and_the_hint_of_an_error_are_one_sentence(client: ServiceClient) -> None:
    found = client.post("/extracts/OP1", {"source": {"name": "ea"}}).body["messages"][0]
    assert found["title"] == "EXTRACT OP1 already exists - use PATCH to change it"
    assert (found["text"], found["hint"]) == ("EXTRACT OP1 already exists.", "use PATCH to change it")


@pytest.mark.usefixtures("groups")
def test_a_trail_outside_the_home_requires_security_over_http_too(
    service: RunningService, client: ServiceClient
) -> None:
    outside = {"targets": [{"name": "zz", "path": f"{service.home.parent}/elsewhere"}]}
    assert service.client("jane").patch("/extracts/OP1", outside).status == 403
    assert not (service.home.parent / "elsewhere").exists()
    assert client.patch("/extracts/OP1", outside).status == 200
