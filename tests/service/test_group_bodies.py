"""What the fields of an Extract's and a Replicat's body mean, and what the answer says about them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from service_client import RunningService, ServiceClient

pytestmark = pytest.mark.slow
PUMP: dict[str, Any] = {"source": {"name": "ea", "path": "dirdat/"}}
REPLICAT: dict[str, Any] = {**PUMP, "checkpoint": {"table": "ggadmin.ckpt"}}


@pytest.fixture(autouse=True)
def without_groups(service: RunningService, client: ServiceClient) -> Iterator[None]:
    """Remove what a test added."""
    yield
    for kind in ("extracts", "replicats"):
        for each in client.get(f"/{kind}").response["items"]:
            client.delete(f"/{kind}/{each['name']}")


TIMES = (
    ("2026-11-23 15:13:00", "2026-11-23 15:13:00"),
    ("2026-11-23T15:13:00", "2026-11-23 15:13:00"),
    ("2026-11-23T15:13:00Z", None),
    ("2026-11-23T15:13:00.250+02:00", None),
)


@pytest.mark.parametrize("kind", ["extracts", "replicats"])
@pytest.mark.parametrize(("time", "shown"), TIMES, ids=[time for time, _ in TIMES])
def test_a_group_begins_at_a_time_in_local_or_iso_form(
    client: ServiceClient, kind: str, time: str, shown: str | None
) -> None:
    local = shown or datetime.fromisoformat(time).astimezone().replace(tzinfo=None).isoformat(" ")
    reply = client.post(f"/{kind}/G1", {**REPLICAT, "begin": time} if kind == "replicats" else {**PUMP, "begin": time})
    assert reply.status == 201, reply.text
    assert client.get(f"/{kind}/G1").response["begin"] == local
    assert client.patch(f"/{kind}/G1", {"begin": "2026-11-22T01:02:03"}).status == 200
    assert client.get(f"/{kind}/G1").response["begin"] == "2026-11-22 01:02:03"
    assert client.patch(f"/{kind}/G1", {"begin": time}).status == 200
    assert client.get(f"/{kind}/G1").response["begin"] == local


@pytest.mark.parametrize("begin", ["tomorrow", "2026-13-01", "", {"sequence": "x"}, {"sequence": {}}])
def test_a_begin_that_is_no_position_is_refused(client: ServiceClient, begin: Any) -> None:
    reply = client.post("/extracts/G1", {**PUMP, "begin": begin})
    assert (reply.status, "begin" in reply.text) == (400, True), reply.text


@pytest.mark.parametrize("kind", ["extracts", "replicats"])
def test_a_begin_that_the_group_has_already_says_that_nothing_moved(client: ServiceClient, kind: str) -> None:
    client.post(f"/{kind}/G1", {**(REPLICAT if kind == "replicats" else PUMP), "begin": "now"})
    reply = client.patch(f"/{kind}/G1", {"begin": "now"})
    assert (reply.status, reply.codes) == (200, ["GGS-00932"])
    assert f"ALTER {kind[:-1].upper()} G1, BEGIN NOW moves it" in reply.text
