"""Parameter files that are written through the service: which files they may include, and what their errors show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from service_client import RunningService, ServiceClient

pytestmark = pytest.mark.slow
SECRET = "topsecret-line"
GROUP = "/extracts/INC1"
HEAD = ["EXTRACT inc1", "EXTTRAIL ./dirdat/ec"]
BODY: dict[str, Any] = {"source": "tables", "config": [*HEAD, "TABLE s.*;"]}


@pytest.fixture(scope="module", autouse=True)
def outside(service: RunningService) -> Path:
    """A group, and files with a secret: outside the home, in its closed folders, and in the home."""
    client = service.client()
    assert client.post(GROUP, BODY).status == 201
    (service.home / "dirdb").mkdir(exist_ok=True)
    for folder in ("dirwlt", "dircrd", "dirdb", "dirpcs", "dirdef", "dirprm", "../outside"):
        (service.home / folder).mkdir(exist_ok=True)
        (service.home / folder / "x.txt").write_text(f"{SECRET} a b c\n")
    (service.home / "ENCKEYS").write_text(f"{SECRET} 0x11\n")
    (service.home / "dirdef" / "link.txt").symlink_to("../../outside/x.txt")
    return service.home.parent / "outside" / "x.txt"


def ways(client: ServiceClient, name: str) -> list[Any]:
    """Send a line that includes a file in every way in which a client can write a parameter file."""
    lines = [*HEAD, f"INCLUDE {name}", "TABLE s.*;"]
    return [
        client.patch(GROUP, {"config": lines}),
        client.post("/extracts/INC2", {**BODY, "config": lines}),
        client.post("/replicats/INC3", {"source": {"name": "ea"}, "config": ["REPLICAT inc3", f"OBEY {name}"]}),
        client.put("/config/files/INC1.prm", {"lines": lines}),
        client.post("/config/files/free.prm", {"lines": lines}),
        client.post("/config/files/GLOBALS", {"lines": [f"INCLUDE {name}"]}),
        client.post("/config/files/free.inc", {"lines": [f"  include '{name}' ; -- x"]}),
    ]


@pytest.mark.parametrize(
    "name",
    [
        "/etc/shadow",
        "../outside/x.txt",
        "../outside/none.txt",
        "dirdef/link.txt",
        *(f"{folder}/x.txt" for folder in ("dirwlt", "dircrd", "dirdb", "dirpcs", "DIRWLT", "./dirdef/../dirwlt")),
        "ENCKEYS",
    ],
)
def test_files_outside_the_home_and_files_with_secrets_are_not_included(
    client: ServiceClient, service: RunningService, name: str
) -> None:
    for reply in ways(client, name):
        assert (reply.status, SECRET in reply.text) == (400, False), reply.text
        assert "outside the home" in reply.text or "does not show" in reply.text or "cannot include" in reply.text
    assert client.get(GROUP).response["config"] == BODY["config"]
    assert not (service.home / "dirprm" / "free.inc").exists()


def test_an_absolute_name_of_a_file_outside_is_refused_whether_it_exists_or_not(
    client: ServiceClient, outside: Path
) -> None:
    for name in (outside, outside.with_name("none.txt")):
        assert {(reply.status, "outside the home" in reply.text) for reply in ways(client, str(name))} == {(400, True)}


def test_errors_do_not_quote_included_files(client: ServiceClient) -> None:
    for lines in (["INCLUDE dirdef/x.txt"], ["GETTRUNCATES &", "INCLUDE dirdef/x.txt"], ["TABLE &", "INCLUDE x.txt"]):
        for reply in (
            client.patch(GROUP, {"config": [*HEAD, *lines, "TABLE s.*;"]}),
            client.put("/config/files/INC1.prm", {"lines": [*HEAD, *lines, "TABLE s.*;"]}),
        ):
            assert (reply.status, SECRET in reply.text.lower()) == (400, False), reply.text
            assert "included file is not valid" in reply.text


def test_an_error_of_the_file_itself_is_quoted(client: ServiceClient) -> None:
    assert client.post("/config/files/good.inc", {"lines": ["REPORTCOUNT EVERY 1000 RECORDS"]}).status == 201
    for name in ("good.inc", "dirprm/good.inc"):
        assert client.patch(GROUP, {"config": [*HEAD, f"INCLUDE {name}", "TABLE s.*;"]}).status == 200
    reply = client.patch(GROUP, {"config": [*HEAD, "INCLUDE good.inc", "NONSENSE x", "TABLE s.*;"]})
    assert (reply.status, "NONSENSE" in reply.text) == (400, True)
    reply = client.patch(GROUP, {"config": [*HEAD, "INCLUDE none.inc", "TABLE s.*;"]})
    assert (reply.status, "none.inc" in reply.text) == (400, True)
