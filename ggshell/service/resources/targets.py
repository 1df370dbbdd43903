"""Targets: the trails that arrive in this home, and the paths that this home starts to fetch them (RECVPATH).

A sender connects for a trail of the first kind, so that can neither be created nor changed here.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ggshell.cli.groups import RECVPATH
from ggshell.cli.received_paths import ReceivedPath, received_paths
from ggshell.errors import NotFoundError
from ggshell.home.users import Role
from ggshell.service import receiver_paths
from ggshell.service.answers import Answer, collection, status_item, utc_text
from ggshell.service.call import Call
from ggshell.service.group_facts import entries
from ggshell.service.group_responses import DistPath, DistPathCheckpoints, DistPathInfo, DistPathStats
from ggshell.service.path_bodies import PathBody
from ggshell.service.refusals import not_here
from ggshell.service.responses import Resource, Response, StatusItems, TrailPlace
from ggshell.service.routes import resource
from ggshell.service.statement_words import word
from ggshell.service.trail_names import trail_fields

_BASE: Final = "/targets"
_ONE: Final = f"{_BASE}/{{path}}"


class ReceiverEnd(Response):
    """An end of a path, as a URL."""

    uri: str


class ReceiverPath(Resource, tag="ogg:recvPath", kw_only=True):
    """A trail that arrives. ``source_home``, ``source_host``, ``source_group``: who sends it."""

    name: str
    source: ReceiverEnd
    target: ReceiverEnd
    status: str
    target_initiated: bool
    source_home: str
    source_host: str
    source_group: str


class ReceiverInfo(Resource, tag="ogg:recvPathInfo", kw_only=True):
    """The connection of a trail that arrives, and its durable end."""

    status: str
    address: str | None
    last_started: str | None
    position: TrailPlace


class ReceiverStats(Resource, tag="ogg:recvPathStats"):
    """What has arrived since the service started."""

    status: str
    connections: int
    total_messages_received: int
    total_bytes_received: int
    syncs: int
    last_data_timestamp: str | None = msgspec.field(name="lastDataTimestamp", default=None)


def _status(found: ReceivedPath) -> str:
    return "running" if found.connected else "stopped"


def _find(call: Call, name: str) -> ReceivedPath:
    """Return the path of a name. Raises NotFoundError."""
    found = [each for each in received_paths(call.home) if each.name == name.upper() or each.name == name]
    if not found:
        raise NotFoundError(f"receiver path {name[:80]} does not exist", hint="paths of this home are sources")
    return found[0]


@resource(
    "GET", _BASE, role=Role.USER, summary="List the receiver paths and the trails that arrive", returns=StatusItems
)
def list_targets(call: Call) -> Answer:
    base = call.url(_BASE)
    arriving = [(each.name, _status(each)) for each in received_paths(call.home)]
    return Answer(collection(status_item(base, *each) for each in (*entries(call, RECVPATH), *arriving)))


@resource(
    "GET", _ONE, role=Role.USER, summary="Show a receiver path or a trail that arrives", returns=ReceiverPath | DistPath
)
def get_target(call: Call, path: str) -> Answer:
    if receiver_paths.is_own(call, path):
        return receiver_paths.shown(call, path)
    found = _find(call, path)
    return Answer(
        ReceiverPath(
            name=found.name,
            source=ReceiverEnd(uri=f"trail://{found.sender.host}/services/v2/sources"),
            target=ReceiverEnd(uri=f"trail://localhost/services/v2/targets?trail={found.trail}"),
            status=_status(found),
            target_initiated=False,
            source_home=found.sender.home,
            source_host=found.sender.host,
            source_group=found.sender.group,
        )
    )


def _info(call: Call, path: str) -> Answer:
    if receiver_paths.is_own(call, path):
        is_place = call.request.address.rstrip("/").endswith("/checkpoints")
        return receiver_paths.checkpoints(call, path) if is_place else receiver_paths.info(call, path)
    found = _find(call, path)
    place = TrailPlace(**trail_fields(found.trail), sequence=found.position.seqno, offset=found.position.rba)
    return Answer(
        ReceiverInfo(
            status=_status(found), address=found.address or None, last_started=utc_text(found.since), position=place
        )
    )


for _part in ("/info", "/checkpoints", "/progress"):
    resource(
        "GET",
        f"{_ONE}{_part}",
        role=Role.USER,
        summary="Show the position up to which a trail has arrived",
        returns=ReceiverInfo | DistPathInfo | DistPathCheckpoints,
    )(_info)


@resource(
    "GET",
    f"{_ONE}/stats",
    role=Role.USER,
    summary="Show the data that has arrived for a trail",
    returns=ReceiverStats | DistPathStats,
)
def get_target_stats(call: Call, path: str) -> Answer:
    if receiver_paths.is_own(call, path):
        return receiver_paths.stats(call, path)
    found = _find(call, path)
    return Answer(
        ReceiverStats(
            status=_status(found),
            connections=found.connections,
            total_messages_received=found.messages,
            total_bytes_received=found.bytes,
            syncs=found.syncs,
            last_data_timestamp=utc_text(found.last),
        )
    )


@resource("DELETE", _ONE, role=Role.ADMINISTRATOR, summary="Delete a receiver path, or forget the sender of a trail")
def delete_target(call: Call, path: str) -> Answer:
    if receiver_paths.is_own(call, path):
        return receiver_paths.delete(call, path)
    found = _find(call, path)
    call.run(f"DELETE RECVPATH {word(found.trail)} !", told=True)
    return Answer()


@resource("POST", _ONE, role=Role.ADMINISTRATOR, summary="Create a receiver path", body=PathBody, status=201)
def create_target(call: Call, path: str) -> Answer:
    return receiver_paths.create(call, path)


@resource("PATCH", _ONE, role=Role.OPERATOR, summary="Change a receiver path", body=PathBody)
def update_target(call: Call, path: str) -> Answer:
    if receiver_paths.is_own(call, path):
        return receiver_paths.update(call, path)
    _find(call, path)
    raise not_here("the change of a path by its target", "PATCH sources in the home that sends")
