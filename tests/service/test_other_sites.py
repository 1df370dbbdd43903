"""Requests that a page of another site makes a browser send, and the headers that protect answers in a browser."""

from __future__ import annotations

import pytest
from service_client import RunningService, ServiceClient

pytestmark = pytest.mark.slow
CHANGES = [
    ("POST", "/ggshell/statements", {"statement": "INFO ALL"}),
    ("POST", "/ggshell/sessions", {}),
    ("PUT", "/config/files/none.prm", {"lines": []}),
    ("PATCH", "/extracts/NONE", {}),
    ("DELETE", "/extracts/NONE", None),
]


@pytest.mark.parametrize(("method", "path", "body"), CHANGES, ids=[f"{each[0]} {each[1]}" for each in CHANGES])
def test_a_change_from_another_site_is_refused(
    client: ServiceClient, service: RunningService, method: str, path: str, body: object
) -> None:
    others = ["http://evil.example", "null", "", f"https://127.0.0.1:{service.port}", "http://127.0.0.1"]
    for headers in ({"Sec-Fetch-Site": "cross-site"}, *({"Origin": each} for each in others)):
        reply = client.send(method, path, body, headers=headers)
        assert (reply.status, "another site" in reply.text) == (403, True), (headers, reply.text)
    for headers in ({}, {"Origin": service.url}, {"Origin": service.url, "Sec-Fetch-Site": "same-origin"}):
        assert client.send(method, path, body, headers=headers).status != 403, headers


def test_reading_does_not_depend_on_the_origin(client: ServiceClient) -> None:
    assert client.get("/extracts", headers={"Origin": "http://evil.example"}).status == 200


def test_every_answer_has_the_headers_that_protect_it(service: RunningService) -> None:
    client = service.client()
    replies = [
        client.get("/extracts"),
        client.get("/extracts/NONE"),
        client.get("//metrics"),
        client.get("//nothing"),
        client.send("OPTIONS", "/extracts"),
        client.send("HEAD", "/extracts"),
        client.post("/ggshell/sessions", {}),
        service.client("").get("/extracts"),
    ]
    for reply in replies:
        shown = {name.lower(): value for name, value in reply.headers.items()}
        assert (shown["x-content-type-options"], shown["cache-control"]) == ("nosniff", "no-store"), reply
