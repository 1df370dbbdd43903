"""The OpenAPI document of the API, made from the declarations of the routes, with the types of bodies and responses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

import msgspec

from ggshell import __version__
from ggshell.home.users import Role
from ggshell.service.responses import LongRequest, StandardResponse
from ggshell.service.routes import CONTINUES, LONGEST_NAME, Route, routes

Schema = dict[str, Any]
_REF: Final = "#/components/schemas/{name}"
_REFUSED: Final = "Refused{status}"
"""The name of the answer that all operations share for a status."""
_REFUSALS: Final = {
    "400": "The request is not valid.",
    "401": "The credentials are missing or not valid.",
    "403": "The role of the user is too low.",
    "404": "The resource does not exist.",
    "408": "The body did not arrive in time.",
    "409": "The resource already exists, or its state does not allow the request.",
    "413": "The body is too large.",
    "422": "The database refuses the request.",
    "429": "Too many failed attempts to sign in.",
    "500": "An internal error.",
    "503": "A database or a process does not answer; repeat the request after Retry-After seconds.",
}


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of every route below ``/services/v2``."""
    declared = routes()
    types = _types(declared)
    found, schemas = msgspec.json.schema_components(types, ref_template=_REF)
    schema_of = dict(zip(types, found, strict=True))
    paths: dict[str, Any] = {}
    for route in declared:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schema_of)
    for route in declared:
        if route.method in ("POST", "PUT") and route.parts:
            paths[route.path][route.method.lower()]["responses"][str(route.status)]["links"] = _links(route, declared)
    return {
        "openapi": "3.1.0",
        "info": {"title": "ggshell: the REST API of GoldenGate", "version": __version__},
        "servers": [{"url": "/services/v2"}],
        "security": [{"basic": []}, {"bearer": []}, {"session": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": _refusals(schema_of[StandardResponse]),
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "bearer": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "ogg_session"},
            },
        },
    }


def _refusals(envelope: Schema) -> Schema:
    """Return the answers of refused requests, to which the operations refer."""
    content = _content(envelope)
    return {_REFUSED.format(status=each): {"description": text, "content": content} for each, text in _REFUSALS.items()}


def _types(declared: Iterable[Route]) -> list[Any]:
    """Return the types of bodies and responses, each once."""
    found: dict[Any, None] = {StandardResponse: None, LongRequest: None}
    for route in declared:
        found |= dict.fromkeys(each for each in (route.body, route.returns) if each is not None)
    return list(found)


def _operation(route: Route, schema_of: Mapping[Any, Schema]) -> Schema:
    answers = {
        str(status): {"description": _success(route, status), "content": _success_content(route, status, schema_of)}
        for status in route.successes
    }
    answers |= {each: {"$ref": f"#/components/responses/{_REFUSED.format(status=each)}"} for each in _REFUSALS}
    found: dict[str, Any] = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "description": f"Required role: {'none' if route.role is Role.ANYONE else route.role.title}.",
        "tags": [route.tag],
        "responses": answers,
        "parameters": [*map(_parameter, route.parts), *(_query(*each) for each in route.query.items())],
    }
    if route.role is Role.ANYONE:
        found["security"] = []
    if route.body is not None:
        body = {"application/json": {"schema": schema_of[route.body]}}
        found["requestBody"] = {"required": not route.optional, "content": body}
    return found


def _content(schema: Schema) -> Schema:
    """Return the forms of an answer: JSON, and text for clients that ask for it."""
    return {"application/json": {"schema": schema}, "text/plain": {"schema": {"type": "string"}}}


def _success_content(route: Route, status: int, schema_of: Mapping[Any, Schema]) -> Schema:
    """Return the content of an answer of success: the envelope with the route's ``response``."""
    if route.raw:
        return _content({})
    envelope, returned = schema_of[StandardResponse], route.returned(status)
    if returned is None:
        return _content({"allOf": [envelope, {"not": {"required": ["response"]}}]})
    part: Schema = {"properties": {"response": schema_of[returned]}}
    if route.returns_always or status == CONTINUES:
        part["required"] = ["response"]
    return _content({"allOf": [envelope, part]})


def _success(route: Route, status: int) -> str:
    """Return what an answer of success means."""
    if status == CONTINUES != route.status:
        return "The request takes longer and continues; its result is at the address in the Location header."
    if route.summary.startswith("Not supported"):
        return "Never answered: the request is not supported. The 404 response names the alternative."
    if "not possible" in route.summary or "cannot" in route.summary:
        return "Only if the request changes nothing."
    if route.raw:
        return "The content, without an envelope."
    if route.method == "GET":
        return "The list." if route.summary.startswith("List") else "The object that was requested."
    done = {"DELETE": "It is deleted.", "PATCH": "It is as requested.", "PUT": "It is as requested."}
    made = "It exists now." if route.status == 201 else "It was carried out; response has the result, if there is one."
    return f"{done.get(route.method, made)} The messages say what was done."


def _links(made: Route, declared: Iterable[Route]) -> dict[str, Any]:
    """Return the requests that can follow one that made an object: those to its address, and to what is below it."""
    names = {name: f"$request.path.{name}" for name in made.parts}
    return {
        _operation_id(route): {"operationId": _operation_id(route), "parameters": names}
        for route in declared
        if (route.path == made.path or route.path.startswith(f"{made.path}/"))
        and set(route.parts) <= names.keys()
        and route is not made
    }


def _operation_id(route: Route) -> str:
    words = re.sub(r"[^A-Za-z0-9]+", " ", route.path).title().replace(" ", "")
    return f"{route.method.lower()}{words}"


def _parameter(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME},
    }


def _query(name: str, meaning: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": meaning, "required": False, "schema": {"type": "string"}}
