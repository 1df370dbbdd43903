"""The base types of responses: msgspec structs whose fields have the vendor's names, and those that many resources share.

A route declares the type of its response; the OpenAPI document describes it, and tests check every answer against it. A field
whose default is None is left out of an answer when it has no value; a field without a default is null then.
"""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec

T = TypeVar("T")


class Response(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    """A response, or an object in one. It has the fields that its class names, and no others."""


class Resource(Response, tag_field="$schema", tag=""):
    """An object that names its schema; each derived class has its own ``tag``."""


class Link(Response):
    """A link to another address of the API."""

    rel: str
    href: str
    media_type: str


Severity = Annotated[str, msgspec.Meta(extra_json_schema={"enum": ["INFO", "WARNING", "ERROR"]})]


class Message(Resource, tag="ogg:message", kw_only=True):
    """A message of the envelope. ``text`` and ``hint``: the two parts of ``title``, if the message has a hint."""

    title: str
    code: str
    severity: Severity
    issued: str
    type: str
    text: str | None = None
    hint: str | None = None


class StandardResponse(Resource, tag="api:standardResponse", kw_only=True):
    """The envelope of every answer."""

    links: list[Link]
    messages: list[Message]
    response: Any = None


class Item(Resource, tag="ogg:collectionItem"):
    """An entry of a collection."""

    links: list[Link]
    name: str


class StatusItem(Item, tag="ogg:collectionItem"):
    """An entry with a status."""

    status: str


class Collection(Resource, Generic[T], tag="ogg:collection"):
    """A list of objects."""

    items: list[T]


Items = Collection[Item]
StatusItems = Collection[StatusItem]


class TrailRef(Response, kw_only=True):
    """A trail: its name, and its folder unless that is the home's."""

    name: str
    path: str | None = None


class TrailPlace(TrailRef):
    """A place in a trail, or in the log of a source."""

    sequence: int
    offset: int


class LongRequest(Response):
    """A request that continues; its result is at the address in the Location header."""

    name: str
    status: Literal["inProgress", "completed", "failed"]


def free(text: str) -> Any:
    """Return the type of an object whose fields are not known in advance; ``text``: what it has."""
    return Annotated[dict[str, Any], msgspec.Meta(description=text)]
