"""The address of a receiver of trails, as the target of a path names it."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import parse_qs, quote, urlsplit

from ggshell.errors import UsageError
from ggshell.network.service_url import ServiceUrl
from ggshell.trail.name import PREFIX_LENGTH

TARGETS: Final = "/services/v2/targets"
SOURCES: Final = "/services/v2/sources"
_SCHEMES: Final = {"ws": "http", "wss": "https", "ogg": "https"}
_LONGEST_TRAIL: Final = 255
_PORTS: Final = {"ws": 80, "wss": 443, "ogg": 443}


class ReceiverAddress(NamedTuple):
    """Where a trail is received: the service, the path of its endpoint, and the trail as the target names it."""

    service: ServiceUrl
    path: str
    trail: str

    @property
    def where(self) -> str:
        """The service, for messages."""
        return f"the {'source' if self.path.endswith('/sources') else 'receiver'} at {self.service.place}"

    @property
    def uri(self) -> str:
        """The address of the WebSocket."""
        scheme = "wss" if self.service.is_secure else "ws"
        named = f"?trail={quote(self.trail, safe='/.')}" if self.trail else ""
        return f"{scheme}://{self.service.place}{self.path}{named}"


def parse_source(text: str, *, needs_trail: bool = True) -> ReceiverAddress:
    """Parse the source of a path that its target starts: ``wss://host:port/services/v2/sources?trail=NAME``.

    ``needs_trail``: refuse an address without a trail, which an alias Extract has before its first start. Raises UsageError
    as ``parse_receiver`` does.
    """
    return parse_receiver(text, SOURCES, needs_trail=needs_trail)


def parse_receiver(text: str, endpoint: str = TARGETS, *, needs_trail: bool = True) -> ReceiverAddress:
    """Parse the target of a path: ``wss://host:port/services/v2/targets?trail=NAME``. Raises UsageError.

    ``ws`` is accepted for this machine only, because what it sends can be read on the way.
    """
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname
    except ValueError:
        parts, port, host = urlsplit(""), None, None
    trails = parse_qs(parts.query).get("trail", [])
    if parts.scheme not in _SCHEMES or not host or parts.username is not None or not text.isprintable():
        raise UsageError(
            f"{text[:200]} is not a valid address of a {'source' if endpoint == SOURCES else 'receiver'}",
            hint=f"use wss://host:port{endpoint}?trail=NAME",
        )
    if len(trails) != 1 and (needs_trail or trails):
        raise UsageError(f"{text[:200]} does not name a trail", hint="add ?trail=NAME")
    if not all(map(_is_trail, trails)):
        raise UsageError(
            f"{text[:200]} does not name a valid trail", hint="use ?trail=NAME, such as ?trail=./dirdat/ea"
        )
    service = ServiceUrl(_SCHEMES[parts.scheme], host, port or _PORTS[parts.scheme])
    if not service.is_secure and not service.is_local:
        raise UsageError(f"{text[:200]} would send the trail unencrypted over the network", hint="use wss://")
    return ReceiverAddress(service, parts.path.rstrip("/") or endpoint, trails[0] if trails else "")


def _is_trail(text: str) -> bool:
    """Whether a text can be the name of a trail in some home: the other home decides whether it accepts the folder."""
    is_short = text.isprintable() and len(text) <= _LONGEST_TRAIL
    last = text.replace("\\", "/").rpartition("/")[2]
    return is_short and len(last) == PREFIX_LENGTH and not last.startswith(".")
