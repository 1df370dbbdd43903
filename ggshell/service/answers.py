"""Answers of the REST API: the vendor's envelope around a response and messages.

The shapes are those of the vendor's API: ``api:standardResponse`` with links, messages (``ogg:message``) and a response, which
for a list is an ``ogg:collection``. Public clients read these fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

from ggshell.service.responses import Collection, Item, Link, Message, StandardResponse, StatusItem, T

if TYPE_CHECKING:
    from ggshell.errors import GgsError

JSON: Final = "application/json"
Object = dict[str, Any]
DONE: Final = "OGG-08100"
"""The code of messages about what a request did to a group."""


class Said(NamedTuple):
    """A message of an answer. ``severity``: INFO, WARNING or ERROR. ``hint``: the action to take, for an error."""

    code: str
    title: str
    severity: str = "INFO"
    hint: str = ""

    @classmethod
    def of(cls, error: GgsError, severity: str = "ERROR") -> Said:
        """Return the message of an error."""
        return cls(error.code, error.located, severity, error.hint)

    @property
    def text(self) -> str:
        """The message with its hint: clients of the vendor's API show the title only."""
        return f"{self.title.removesuffix('.')} - {self.hint}" if self.hint else self.title


class Answer(NamedTuple):
    """What a handler returns.

    ``response``: the value of the envelope's ``response``; None leaves it out. ``text``: the same for clients that accept
    ``text/plain``, None if there is no such form. ``headers`` are added to the HTTP answer.
    """

    response: Any = None
    messages: tuple[Said, ...] = ()
    status: int = 200
    text: str | None = None
    headers: Mapping[str, str] = {}


class RawAnswer(NamedTuple):
    """An answer without the envelope (metrics, the OpenAPI document)."""

    body: bytes
    media_type: str
    status: int = 200
    headers: Mapping[str, str] = {}


def utc_text(microseconds: int) -> str | None:
    """Format a time in microseconds since 1970 as the API does (ISO 8601, UTC); None for 0."""
    if not microseconds:
        return None
    return datetime.fromtimestamp(microseconds / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def link(relation: str, href: str) -> Link:
    return Link(rel=relation, href=href, media_type=JSON)


def links_of(base: str, name: str) -> list[Link]:
    """Return the links of an entry of a collection. ``base``: the address of the collection."""
    return [link("parent", base), link("canonical", f"{base}/{quote(name, safe='')}")]


def item(base: str, name: str) -> Item:
    """Return an entry of a collection. ``base``: the address of the collection."""
    return Item(links=links_of(base, name), name=name)


def status_item(base: str, name: str, status: str) -> StatusItem:
    """Return an entry with a status."""
    return StatusItem(links=links_of(base, name), name=name, status=status)


def collection(items: Iterable[T]) -> Collection[T]:
    return Collection(items=list(items))


def message(said: Said, issued: int, base: str) -> Message:
    """Return a message of the envelope. ``base``: the address of the API, for the link to the message's page.

    ``text`` and ``hint``, which a connected shell shows, are ggshell's own fields.
    """
    return Message(
        title=said.text,
        code=said.code,
        severity=said.severity,
        issued=datetime.fromtimestamp(issued / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        type=f"{base}/oggerr/{said.code}",
        text=said.title if said.hint else None,
        hint=said.hint or None,
    )


def envelope(address: str, base: str, messages: Iterable[Said], now: int, response: Any) -> StandardResponse:
    """Return the envelope. ``address``: the request's URL; ``base``: the URL of the API; ``now``: microseconds."""
    return StandardResponse(
        links=[link("canonical", address), link("self", address)],
        messages=[message(each, now, base) for each in messages],
        response=response,
    )
