"""Bad input is refused with 400 and the envelope, whatever it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
import requests
from service_client import RunningService, ServiceClient

pytestmark = pytest.mark.slow
PUMP: dict[str, Any] = {"source": {"name": "ea", "path": "dirdat/"}}
BODIES = {"extracts": PUMP, "replicats": {**PUMP, "checkpoint": {"table": "ggadmin.ckpt"}}}
POSITIONS: list[Any] = [
    {"sequence": "abc"},
    {"sequence": [1]},
    {"sequence": None},
    {"sequence": -1},
    {"sequence": 1.5},
    {"sequence": True},
    {"sequence": 1, "offset": {}},
    {"sequence": 1, "offset": "x"},
    {"sequence": 1_000_000_000},
    {"sequence": 1, "offset": 1 << 63},
    {"sequence": 10**30},
    {"at": {"csn": {}}},
    {"at": 7},
    {},
]


@pytest.mark.parametrize("kind", ["extracts", "replicats"])
def test_a_begin_that_is_not_a_position_is_refused(client: ServiceClient, kind: str) -> None:
    address = f"/{kind}/BAD"
    assert client.post(address, BODIES[kind]).status == 201
    before = client.get(address).response
    for begin in POSITIONS:
        replies = [
            client.patch(address, {"begin": begin}),
            client.post(f"/{kind}/NEW", {**BODIES[kind], "begin": begin}),
        ]
        assert [each.status for each in replies] == [400, 400], f"{begin}: {replies}"
    assert client.get(address).response == before
    largest = {"sequence": 999_999_999, "offset": (1 << 63) - 1}
    assert client.patch(address, {"begin": largest}).status == 200
    assert client.get(address).response["begin"] == largest
    assert client.delete(address).status == 200


def test_a_statement_refuses_a_position_beyond_the_last_file(service: RunningService) -> None:
    assert "999999999" in service.run("ADD REPLICAT far, EXTTRAIL ./dirdat/ea, EXTSEQNO 1000000000, NODBCHECKPOINT", 1)


@pytest.mark.parametrize("levels", [101, 900, 5_000, 150_000])
@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_a_body_that_is_nested_too_deep_is_refused(client: ServiceClient, levels: int, brackets: str) -> None:
    opening = "[" if brackets == "[]" else '{"a":'
    nested = opening * levels + "1" + brackets[1] * levels
    for address, field in (("/extracts/DEEP", "source"), ("/tasks/deep", "command")):
        reply = client.post(address, f'{{"{field}": {{"x": {nested}}}}}')
        assert (reply.status, reply.codes) == (400, ["GGS-00903"]), reply.text


@pytest.mark.parametrize("path", ["/authorization", "/currentuser/reauthorize"])
def test_a_malformed_body_is_refused_even_where_none_is_required(client: ServiceClient, path: str) -> None:
    assert client.post(path, "{").status == 400
    assert client.post(path, {"any": 1}).status == 200
    assert client.post(path).status == 200


def test_brackets_in_texts_are_not_levels(client: ServiceClient) -> None:
    config = ["EXTRACT FLAT", "-- " + "[{" * 200 + '\\"', "TABLE s.*;"]
    reply = client.post("/extracts/FLAT", json.dumps({"source": "tables", "config": config}))
    assert reply.status == 201, reply.text
    assert client.delete("/extracts/FLAT").status == 200


def test_a_host_that_is_not_valid_is_refused_with_the_envelope(service: RunningService) -> None:
    answer = requests.get(f"{service.url}/services/v2/extracts", headers={"Host": "["}, timeout=20)
    assert answer.status_code in (400, 401)
    assert answer.json()["$schema"] == "api:standardResponse"


def test_an_alias_of_credentials_that_config_does_not_use_is_refused(client: ServiceClient) -> None:
    config = ["EXTRACT ali", "USERIDALIAS south", "EXTTRAIL ./dirdat/eb", "TABLE s.*;"]
    reply = client.post("/extracts/ALI", {"source": "tables", "config": config, "credentials": {"alias": "north"}})
    assert reply.status == 400
    assert "OracleGoldenGate.north" in reply.text
    assert "OracleGoldenGate.south" in reply.text
    same = {"source": "tables", "config": config, "credentials": {"alias": "south"}}
    assert client.post("/extracts/ALI", same).status == 201
    assert client.delete("/extracts/ALI").status in (200, 404, 422)


def test_a_group_without_a_parameter_file_does_not_start(service: RunningService, client: ServiceClient) -> None:
    service.run("ADD EXTRACT nofile, SOURCEISTABLE")
    start = client.post("/commands/execute", {"name": "start", "processName": "NOFILE"})
    assert (start.status, start.codes) == (409, ["GGS-00306"])
    patch = client.patch("/extracts/NOFILE", {"status": "running"})
    assert (patch.status, patch.codes[-1]) == (409, "GGS-00306")
    assert client.delete("/extracts/NOFILE").status == 200
