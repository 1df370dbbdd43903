"""What every request meets: addresses, methods, bodies, sign-in and roles."""

from __future__ import annotations

import time

import pytest
from service_client import RunningService, ServiceClient

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "form",
    [
        "//services/v2/extracts",
        "//services/adminsrvr/v2/extracts",
        "//services/Local/adminsrvr/v2/extracts",
        "//services/ServiceManager/v2/extracts",
        "//services/v2//extracts",
    ],
)
def test_every_form_of_address_leads_to_the_resource(client: ServiceClient, form: str) -> None:
    reply = client.get(form)
    assert (reply.status, reply.response["$schema"]) == (200, "ogg:collection")
    assert reply.body["links"][1]["href"] == f"{client.url}{form[1:]}"


def test_another_deployment_does_not_exist(client: ServiceClient) -> None:
    assert client.get("//services/South/adminsrvr/v2/extracts").status == 404


def test_a_method_that_a_resource_does_not_have_is_refused_with_those_that_it_has(client: ServiceClient) -> None:
    reply = client.post("/extracts", {})
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD, OPTIONS")


def test_head_gives_the_headers_of_get(client: ServiceClient) -> None:
    reply = client.send("HEAD", "/extracts")
    assert (reply.status, reply.text) == (200, "")
    assert reply.headers["content-length"] == client.get("/extracts").headers["content-length"]


def test_options_names_the_methods(client: ServiceClient) -> None:
    reply = client.send("OPTIONS", "/extracts/EXT1")
    assert (reply.status, reply.headers["allow"]) == (204, "DELETE, GET, HEAD, OPTIONS, PATCH, POST")


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/x-www-form-urlencoded"])
def test_a_body_is_read_as_json_whatever_its_content_type(client: ServiceClient, content_type: str) -> None:
    headers = {"Content-Type": content_type}
    reply = client.post("/extracts/EXT1", '{"source": 7}', headers=headers)
    assert (reply.status, reply.codes) == (400, ["GGS-00903"])
    assert "source" in reply.body["messages"][0]["title"]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"{", "not complete"),
        (b'{"colour": 1}', "colour"),
        (b"[]", "not a list"),
        (b"\xff\xfe", ""),
        (b"", "requires a body"),
        (b'{"targets": [{"name": "ea", "sizeMB": "x"}]}', "targets"),
    ],
)
def test_a_body_that_is_not_valid_is_refused_by_name(client: ServiceClient, body: bytes, named: str) -> None:
    reply = client.post("/extracts/EXT1", body)
    assert (reply.status, reply.codes) == (400, ["GGS-00903"])
    assert named in reply.body["messages"][0]["title"]


@pytest.mark.parametrize("name", ["..", "a%2Fb", "%00", "x" * 10_000, "a%0Ab", "%ff"])
def test_a_name_that_is_not_valid_is_refused(client: ServiceClient, name: str) -> None:
    address = f"{client.url}/services/v2/extracts/{name}"
    prepared = client.session.prepare_request(__import__("requests").Request("GET", address))
    prepared.url = address
    assert client.session.send(prepared).status_code in (400, 404)


def test_a_body_that_is_too_large_is_refused_before_it_is_read(client: ServiceClient) -> None:
    def blocks() -> object:
        for _ in range(1000):
            yield b" " * (1 << 20)

    try:
        answer = client.session.post(f"{client.url}/services/v2/extracts/EXT1", data=blocks(), timeout=20)
    except OSError:
        return  # the server closed the connection while the client was still sending
    assert answer.status_code == 413


def test_without_credentials_a_request_is_refused_with_a_challenge(service: RunningService) -> None:
    reply = service.client("").get("/extracts")
    assert reply.status == 401
    assert reply.headers["www-authenticate"].startswith("Basic")


def test_a_wrong_password_is_refused_and_the_sixth_attempt_must_wait(service: RunningService) -> None:
    statuses = [service.client("uma", f"wrong-{number}").get("/extracts").status for number in range(6)]
    assert statuses == [401, 401, 401, 401, 401, 429]
    waiting = service.client("uma").get("/extracts")
    assert (waiting.status, "retry-after" in waiting.headers) == (429, True)


def test_a_session_is_used_instead_of_the_password_until_the_user_signs_out(service: RunningService) -> None:
    client = service.client("jane")
    assert client.get("/currentuser").response["role"] == "Administrator"
    client.session.auth = None
    assert client.get("/currentuser").status == 200
    assert client.delete("/currentuser").status == 200
    assert client.get("/currentuser").status == 401


def test_a_bearer_token_signs_in(service: RunningService) -> None:
    token = service.client("otto").post("/authorization").response["accessToken"]
    reply = service.client("").get("/currentuser", headers={"Authorization": f"Bearer {token}"})
    assert reply.response["user"] == "otto"
    assert service.client("").get("/currentuser", headers={"Authorization": "Bearer x"}).status == 401


def test_a_role_that_is_too_low_is_refused(service: RunningService) -> None:
    reply = service.client("otto").post("/extracts/EXT9", {"source": "tables"})
    assert (reply.status, "requires Administrator" in reply.body["messages"][0]["title"]) == (403, True)


def test_a_change_is_recorded_with_the_user_and_the_address(service: RunningService) -> None:
    service.client("jane").post("/extracts/AUDIT", {"source": "tables", "config": ["EXTRACT audit", "TABLE s.*;"]})
    log = (service.home / "ggserr.log").read_text()
    assert "POST /v2/extracts/AUDIT by jane@127.0.0.1: 201" in log
    assert "GGSCI command (jane@127.0.0.1): ADD EXTRACT AUDIT, SOURCEISTABLE." in log


def test_an_answer_does_not_wait_for_the_acknowledgement_of_its_headers(client: ServiceClient) -> None:
    client.get("/extracts")
    times = []
    for _ in range(20):
        begun = time.monotonic()
        client.get("/extracts")
        times.append(time.monotonic() - begun)
    assert min(times) < 0.035  # a delayed acknowledgement takes 40 ms


@pytest.mark.parametrize("path", ["extracts", "replicats", "sources", "trails", "connections", "enckeys"])
def test_a_name_that_is_too_long_for_a_file_does_not_exist(client: ServiceClient, path: str) -> None:
    name = "x" * 250
    statuses = {client.get(f"/{path}/{name}").status, client.delete(f"/{path}/{name}").status}
    assert statuses <= {400, 404}
    assert client.post(f"/{path}/{name}", {}).status in (400, 404)
