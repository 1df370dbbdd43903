"""The OpenAPI document of the API, made from the declarations of the routes and the types of their bodies."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

import msgspec

from ggshell import __version__
from ggshell.home.users import Role
from ggshell.service.routes import LONGEST_NAME, Route, routes

_REF: Final = "#/components/schemas/{name}"
_MESSAGE: Final = {
    "type": "object",
    "required": ["code", "title", "severity"],
    "properties": {
        "code": {"type": "string"},
        "title": {"type": "string"},
        "text": {"type": "string"},
        "hint": {"type": "string"},
        "severity": {"enum": ["INFO", "WARNING", "ERROR"]},
        "issued": {"type": "string"},
        "type": {"type": "string"},
    },
}
_ENVELOPE: Final = {
    "type": "object",
    "required": ["$schema", "links", "messages"],
    "properties": {
        "$schema": {"const": "api:standardResponse"},
        "links": {"type": "array", "items": {"type": "object"}},
        "messages": {"type": "array", "items": {"$ref": _REF.format(name="Message")}},
        "response": {},
    },
}
_REFUSALS: Final = {
    "400": "The request is not valid.",
    "401": "The credentials are missing or not valid.",
    "403": "The role of the user is too low.",
    "404": "The resource does not exist.",
    "408": "The body did not arrive in time.",
    "409": "The resource exists already, or its state does not allow the request.",
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
    bodies = sorted({route.body for route in declared if _is_named(route.body)}, key=lambda body: body.__name__)
    _, schemas = msgspec.json.schema_components(bodies, ref_template=_REF)
    paths: dict[str, Any] = {}
    for route in declared:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
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
            "schemas": {**schemas, "Message": _MESSAGE, "StandardResponse": _ENVELOPE},
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "bearer": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "ogg_session"},
            },
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    envelope = {"$ref": _REF.format(name="StandardResponse")}
    refusal: dict[str, Any] = {"application/json": {"schema": envelope}, "text/plain": {"schema": {"type": "string"}}}
    answer = {**refusal, "application/json": {"schema": {}}} if route.raw else refusal
    successes = {str(route.status), "202"} if route.changes else {str(route.status)}
    answers = {status: {"description": _success(route, status), "content": answer} for status in sorted(successes)}
    answers |= {status: {"description": text, "content": refusal} for status, text in _REFUSALS.items()}
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
        schema = {"$ref": _REF.format(name=route.body.__name__)} if _is_named(route.body) else {"type": "object"}
        found["requestBody"] = {"required": not route.optional, "content": {"application/json": {"schema": schema}}}
    return found


def _success(route: Route, status: str) -> str:
    """Return what an answer of success means."""
    if status == "202" and route.status != 202:
        return "The request takes longer and continues; its result is at the address in the Location header."
    if route.summary.startswith("Not supported"):
        return "Never answered: the request is not supported. The answer 404 says what to use instead."
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


def _is_named(body: Any) -> bool:
    """Whether the type of a body has its own schema; a body of any form (``dict[str, Any]``) has none."""
    return isinstance(body, type) and issubclass(body, msgspec.Struct)


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
