"""Targets: the trails that arrive in this home. The sender connects, so a path cannot be created or changed here."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ggshell.cli.received_paths import ReceivedPath, received_paths
from ggshell.errors import NotFoundError
from ggshell.home.users import Role
from ggshell.service.answers import Answer, collection, status_item, utc_text
from ggshell.service.call import Call
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


@resource("GET", _BASE, role=Role.USER, summary="List the trails that arrive in this home", returns=StatusItems)
def list_targets(call: Call) -> Answer:
    base = call.url(_BASE)
    return Answer(collection(status_item(base, each.name, _status(each)) for each in received_paths(call.home)))


@resource("GET", _ONE, role=Role.USER, summary="Show a trail that arrives", returns=ReceiverPath)
def get_target(call: Call, path: str) -> Answer:
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
    found = _find(call, path)
    place = TrailPlace(**trail_fields(found.trail), sequence=found.position.seqno, offset=found.position.rba)
    return Answer(
        ReceiverInfo(
            status=_status(found), address=found.address or None, last_started=utc_text(found.since), position=place
        )
    )


for _part in ("/info", "/checkpoints", "/progress"):
    resource("GET", f"{_ONE}{_part}", role=Role.USER, summary="Show how far a trail has arrived", returns=ReceiverInfo)(
        _info
    )


@resource("GET", f"{_ONE}/stats", role=Role.USER, summary="Show what has arrived of a trail", returns=ReceiverStats)
def get_target_stats(call: Call, path: str) -> Answer:
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


@resource("DELETE", _ONE, role=Role.ADMINISTRATOR, summary="Forget the sender of a trail; its files are kept")
def delete_target(call: Call, path: str) -> Answer:
    found = _find(call, path)
    call.run(f"DELETE RECVPATH {word(found.trail)} !", told=True)
    return Answer()


def _unsupported(call: Call, path: str) -> Answer:
    raise not_here("a path that its target initiates", "create a distribution path with POST sources")


def _unchangeable(call: Call, path: str) -> Answer:
    _find(call, path)
    raise not_here("the change of a path by its target", "PATCH sources in the home that sends")


resource("POST", _ONE, role=Role.ADMINISTRATOR, summary="Receiver paths are not supported", body=dict[str, Any])(
    _unsupported
)
resource(
    "PATCH",
    _ONE,
    role=Role.OPERATOR,
    summary="Changing a path that delivers here is not supported",
    body=dict[str, Any],
)(_unchangeable)
