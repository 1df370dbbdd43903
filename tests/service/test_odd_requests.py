"""Requests that ordinary clients do not send: other forms of addresses, other methods, and what is not HTTP at all."""

from __future__ import annotations

import base64
import socket

import pytest
from service_client import PASSWORD, RunningService, ServiceClient

pytestmark = pytest.mark.slow
BASIC = base64.b64encode(f"admin:{PASSWORD}".encode()).decode()


def answer(service: RunningService, request: str) -> str:
    """Send bytes on a connection of their own; returns everything that comes back until the service closes it."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=20) as connection:
        connection.sendall(request.encode("latin-1"))
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


def request_of(method: str, address: str) -> str:
    return f"{method} {address} HTTP/1.1\r\nHost: h\r\nAuthorization: Basic {BASIC}\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize("host", ["http://127.0.0.1:7810", "HTTPS://other"])
def test_an_address_with_scheme_and_host_is_accepted(service: RunningService, host: str) -> None:
    found = answer(service, request_of("GET", f"{host}/services/v2/extracts"))
    assert found.startswith("HTTP/1.1 200")
    assert '"href":"http://h/services/v2/extracts"' in found


@pytest.mark.parametrize(
    ("method", "address", "status"),
    [
        ("TRACE", "/services/v2/extracts", 405),
        ("BREW", "/services/v2/extracts", 405),
        ("GET", "/services/v2/config/files/%0a.prm", 400),
        ("GET", "/a%0D%0AX:%20y", 404),
        ("GET", "http://h", 200),
        ("CONNECT", "h:1", 404),
        ("OPTIONS", "*", 404),
    ],
)
def test_every_request_is_answered_with_the_envelope(
    service: RunningService, method: str, address: str, status: int
) -> None:
    found = answer(service, request_of(method, address))
    assert found.startswith(f"HTTP/1.1 {status}")
    assert '"api:standardResponse"' in found
    assert "x-content-type-options: nosniff" in found.lower()


@pytest.mark.parametrize(("header", "closes"), [("Content-Length: 2", False), ("Transfer-Encoding: chunked", True)])
def test_a_body_of_a_get_is_not_received_without_a_limit(service: RunningService, header: str, closes: bool) -> None:
    text = f"GET /services/v2/version HTTP/1.1\r\nHost: h\r\n{header}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", service.port), timeout=20) as connection:
        connection.sendall(text.encode())
        headers = connection.recv(65536).decode().partition("\r\n\r\n")[0].lower()
    assert headers.startswith("http/1.1 200")
    assert ("connection: close" in headers) is closes


def test_what_is_not_http_is_refused_and_recorded_once_a_minute(service: RunningService) -> None:
    output = service.home / "dirrpt" / "SERVICE.out"
    before = output.stat().st_size
    for request in (
        "\x16\x03\x01" + "a" * 100,
        "GET\r\n\r\n",
        request_of("GET", "/").replace("Host", "Upgrade: x\r\nX"),
    ):
        assert answer(service, request).startswith("HTTP/1.1 400")
    assert output.stat().st_size == before
    recorded = [line for line in (service.home / "ggserr.log").read_text().splitlines() if "GGS-00943" in line]
    assert len(recorded) == 1
    assert recorded[0].endswith("127.0.0.1 sent data that is not an HTTP request")


@pytest.mark.parametrize("body", [b'{"a": 1}', b"\xff", b"1"])
def test_a_body_that_a_new_master_key_does_not_have_is_refused(client: ServiceClient, body: bytes) -> None:
    assert client.post("/masterkey", body).status == 400
    assert client.get("/masterkey").response["items"] == []
