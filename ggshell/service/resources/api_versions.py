"""The versions of the API."""

from __future__ import annotations

from ggshell.home.users import Role
from ggshell.service.answers import Answer, link
from ggshell.service.call import Call
from ggshell.service.routes import resource


@resource("GET", "/", role=Role.ANYONE, summary="List the versions of the API")
def list_versions(call: Call) -> Answer:
    return Answer({"$schema": "api:versions", "items": [_version(call)]})


@resource("GET", "/version", role=Role.ANYONE, summary="Describe this version of the API")
def get_version(call: Call) -> Answer:
    return Answer({"$schema": "api:version", **_version(call)})


def _version(call: Call) -> dict[str, object]:
    catalog = {"links": [link("canonical", call.url("/metadata-catalog"))]}
    return {"version": "v2", "isLatest": True, "lifecycle": "active", "catalog": catalog}
