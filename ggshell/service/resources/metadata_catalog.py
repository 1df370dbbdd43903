"""The description of the API: its resources, and the OpenAPI document."""

from __future__ import annotations

from typing import Any

import msgspec

from ggshell.errors import NotFoundError
from ggshell.home.users import Role
from ggshell.service.answers import JSON, Answer, RawAnswer, collection, item
from ggshell.service.call import Call
from ggshell.service.openapi import document
from ggshell.service.responses import Items, Resource
from ggshell.service.routes import resource, routes

_BASE = "/metadata-catalog"


class Metadata(Resource, tag="api:metadata"):
    """A resource of the API. ``paths``: its part of the OpenAPI document."""

    name: str
    paths: dict[str, Any]


@resource("GET", _BASE, role=Role.ANYONE, summary="List the resources of the API", returns=Items)
def list_resources(call: Call) -> Answer:
    names = sorted({route.path.split("/")[1] for route in routes()} - {""})
    return Answer(collection(item(call.url(_BASE), name) for name in names))


@resource(
    "GET",
    f"{_BASE}/{{resource}}",
    role=Role.ANYONE,
    summary="Describe a resource: its part of the OpenAPI document",
    returns=Metadata,
)
def describe(call: Call, name: str) -> Answer:
    paths = {path: found for path, found in document()["paths"].items() if path.split("/")[1] == name}
    if not paths:
        raise NotFoundError(f"resource {name} does not exist")
    return Answer(Metadata(name=name, paths=paths))


@resource("GET", "/openapi.json", role=Role.ANYONE, summary="Return the OpenAPI document", raw=True)
def get_document(call: Call) -> RawAnswer:
    return RawAnswer(msgspec.json.encode(document()), JSON)
