"""The versions of the API."""

from __future__ import annotations

from typing import Any

from ggshell.home.users import Role
from ggshell.service.answers import Answer, link
from ggshell.service.call import Call
from ggshell.service.responses import Link, Resource, Response
from ggshell.service.routes import resource


class Catalog(Response):
    """Where the description of the API is."""

    links: list[Link]


class VersionFields(Response):
    """A version of the API."""

    version: str
    is_latest: bool
    lifecycle: str
    catalog: Catalog


class Versions(Resource, tag="api:versions"):
    """The versions of the API."""

    items: list[VersionFields]


class Version(VersionFields, tag_field="$schema", tag="api:version"):
    """This version of the API."""


@resource("GET", "/", role=Role.ANYONE, summary="List the versions of the API", returns=Versions)
def list_versions(call: Call) -> Answer:
    return Answer(Versions(items=[VersionFields(**_version(call))]))


@resource("GET", "/version", role=Role.ANYONE, summary="Describe this version of the API", returns=Version)
def get_version(call: Call) -> Answer:
    return Answer(Version(**_version(call)))


def _version(call: Call) -> dict[str, Any]:
    catalog = Catalog(links=[link("canonical", call.url("/metadata-catalog"))])
    return {"version": "v2", "is_latest": True, "lifecycle": "active", "catalog": catalog}
