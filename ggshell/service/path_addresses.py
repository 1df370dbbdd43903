"""The endpoints of distribution paths: URLs of trails, as clients give them and as statements name the trails."""

from __future__ import annotations

import ipaddress
import socket
from typing import Final
from urllib.parse import SplitResult, parse_qs, urlsplit

from ggshell.errors import UsageError
from ggshell.network.addresses import parse_receiver
from ggshell.service.call import Call
from ggshell.service.trail_names import known_trail, trail_fields

_RECEIVERS: Final = ("ws", "wss", "ogg")
_LOCAL: Final = ("trail", "file")


def source_trail(call: Call, url: str) -> str:
    """Return the trail of a source URL (``trail://host/services/v2/sources?trail=ea``). Raises UsageError."""
    parts = _split(url)
    if parts.scheme != "trail":
        raise UsageError(f"{url[:200]} is not a source of a path", hint="use trail://host/services/v2/sources?trail=ea")
    return known_trail(call.home, _trail(parts, url), otherwise="./dirdat")


def target_of(call: Call, url: str, source: str) -> str:
    """Return the target of a path as statements name it: a trail of this home, or the URL of another home's receiver.

    ``source``: the trail that the path reads. A target of this home without a folder that no group uses is put into the same
    folder. Raises UsageError.
    """
    parts = _split(url)
    if parts.scheme in _RECEIVERS and not _is_here(call, parts):
        parse_receiver(url)
        return url
    if parts.scheme not in (*_RECEIVERS, *_LOCAL):
        raise UsageError(
            f"{url[:200]} is not a target of a path", hint="use ws, wss or ogg, or trail:// for a local trail"
        )
    name = f"{parts.netloc}{parts.path}" if parts.scheme == "file" and not parts.query else _trail(parts, url)
    trail = known_trail(call.home, name, otherwise=str(trail_fields(source).get("path", "")), files=False)
    return trail if "/" in trail else f"./{trail}"  # without a folder, ADD DISTPATH would look in dirdat


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise UsageError(f"{url[:200]} is not a valid URL: {error}") from error
    return parts


def _trail(parts: SplitResult, url: str) -> str:
    names = parse_qs(parts.query).get("trail", [])
    if len(names) != 1:
        raise UsageError(f"{url[:200]} does not name a trail", hint="add ?trail=NAME")
    return names[0]


def _is_here(call: Call, parts: SplitResult) -> bool:
    """Whether the receiver is this service, which then needs no connection to itself."""
    own = urlsplit(call.request.address)
    ports = {call.state.settings.port, own.port}
    return parts.port in ports and parts.hostname is not None and _is_this_host(parts.hostname, own.hostname)


def _is_this_host(name: str, called: str | None) -> bool:
    if name in (called, "localhost", socket.gethostname(), socket.gethostname().partition(".")[0]):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
