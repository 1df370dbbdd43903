"""Configuration values by type: profiles of managed processes, their descriptions, and the types of users."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from ggshell.errors import ConflictError, NotFoundError, StateError, UsageError
from ggshell.home.documents import Documents
from ggshell.home.home import Home
from ggshell.home.users import Role
from ggshell.parameters.process_profiles import DEFAULT_PROFILE, PROFILES
from ggshell.service.answers import Answer, Object, collection, item
from ggshell.service.bodies import Body
from ggshell.service.call import Call
from ggshell.service.profiles import (
    DESCRIPTIONS,
    ProcessSettings,
    converted,
    default_profile,
    plain,
    users_of,
    values_kind,
)
from ggshell.service.responses import Items, free
from ggshell.service.routes import resource

_BASE: Final = "/config/types"
_TYPES_KIND: Final = "configuration type"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_:.-]{0,95}")


class DataDescription(Body):
    """The description of a configuration value, and whether it is the default of its type."""

    description: str | None = None
    is_default: bool = False
    is_read_only: bool | None = None


_BUILT_IN: Final[dict[str, type[Body]]] = {PROFILES: ProcessSettings, DESCRIPTIONS: DataDescription}


TypeSchema = free("The JSON schema of the values, as the client that created the type sent it.")
ValueDocument = free("The value: $schema names its type, the other fields are those of that type.")


@resource("GET", _BASE, role=Role.USER, summary="List the configuration types", returns=Items)
def list_types(call: Call) -> Answer:
    names = {*_BUILT_IN, *Documents(call.home, _TYPES_KIND).names()}
    return Answer(collection(item(call.url(_BASE), name) for name in sorted(names)))


@resource(
    "GET", f"{_BASE}/{{type}}", role=Role.USER, summary="Show a configuration type: its JSON schema", returns=TypeSchema
)
def get_type(call: Call, name: str) -> Answer:
    if name in _BUILT_IN:
        schema = msgspec.json.schema(_BUILT_IN[name])
        return Answer({"id": name, "$schema": "http://json-schema.org/draft-04/schema#", **schema})
    return Answer(Documents(call.home, _TYPES_KIND).get(name))


@resource(
    "POST",
    f"{_BASE}/{{type}}",
    role=Role.ADMINISTRATOR,
    summary="Create a configuration type",
    body=dict[str, Any],
    status=201,
)
def create_type(call: Call, name: str) -> Answer:
    if name in _BUILT_IN:
        raise ConflictError(f"configuration type {name} already exists")
    Documents(call.home, _TYPES_KIND).create(_valid_name(name), call.body)
    return Answer(status=201)


@resource("DELETE", f"{_BASE}/{{type}}", role=Role.ADMINISTRATOR, summary="Delete a configuration type")
def delete_type(call: Call, name: str) -> Answer:
    types = Documents(call.home, _TYPES_KIND)
    if name not in _BUILT_IN:
        types.get(name)
    if name in _BUILT_IN or _values(call.home, name).names():
        why = "belongs to ggshell" if name in _BUILT_IN else "has values"
        raise StateError(f"configuration type {name} {why} and cannot be deleted", hint="delete its values")
    types.delete(name)
    return Answer()


@resource(
    "GET", f"{_BASE}/{{type}}/values", role=Role.USER, summary="List the values of a configuration type", returns=Items
)
def list_values(call: Call, name: str) -> Answer:
    names = {*_values(call.home, name).names(), *([DEFAULT_PROFILE] if name in _BUILT_IN else [])}
    return Answer(collection(item(call.url(f"{_BASE}/{name}/values"), value) for value in sorted(names)))


@resource(
    "GET",
    f"{_BASE}/{{type}}/values/{{value}}",
    role=Role.USER,
    summary="Show a configuration value",
    returns=ValueDocument,
)
def get_value(call: Call, name: str, value: str) -> Answer:
    return Answer({"$schema": name, **_value(call.home, name, value)})


@resource(
    "POST",
    f"{_BASE}/{{type}}/values/{{value}}",
    role=Role.ADMINISTRATOR,
    summary="Create a configuration value",
    body=dict[str, Any],
    status=201,
)
def create_value(call: Call, name: str, value: str) -> Answer:
    values = _values(call.home, name)
    if values.find(_valid_name(value)) is not None or (value == DEFAULT_PROFILE and name in _BUILT_IN):
        raise ConflictError(f"{name} {value} already exists", hint="use PUT to replace it")
    document = _checked(call, name)
    values.put(value, document)
    _keep_one_default(call.home, name, value, document)
    return Answer(status=201)


@resource(
    "PUT",
    f"{_BASE}/{{type}}/values/{{value}}",
    role=Role.ADMINISTRATOR,
    summary="Replace a configuration value",
    body=dict[str, Any],
)
def replace_value(call: Call, name: str, value: str) -> Answer:
    _value(call.home, name, value)
    document = _checked(call, name)
    _values(call.home, name).put(value, document)
    _keep_one_default(call.home, name, value, document)
    return Answer()


@resource(
    "DELETE", f"{_BASE}/{{type}}/values/{{value}}", role=Role.ADMINISTRATOR, summary="Delete a configuration value"
)
def delete_value(call: Call, name: str, value: str) -> Answer:
    values = _values(call.home, name)
    _value(call.home, name, value)
    if name == PROFILES and (users := users_of(call.home, value)):
        raise StateError(f"profile {value} is used by {', '.join(users)}", hint="give them another profile with PATCH")
    if value == DEFAULT_PROFILE and name in _BUILT_IN and values.find(value) is None:
        raise StateError(f"{name} {value} belongs to ggshell and cannot be deleted")
    values.delete(value)
    return Answer()


def _values(home: Home, name: str) -> Documents:
    """Return the values of a type. Raises NotFoundError."""
    if name not in _BUILT_IN:
        Documents(home, _TYPES_KIND).get(_valid_name(name))
    return Documents(home, values_kind(name))


def _value(home: Home, name: str, value: str) -> Object:
    """Return a value; the default profile and its description exist without a document. Raises NotFoundError."""
    found = _values(home, name).find(_valid_name(value))
    if found is None and value == DEFAULT_PROFILE:
        if name == PROFILES:
            found = plain(ProcessSettings())
        elif name == DESCRIPTIONS:
            found = {"description": "Default Profile", "isDefault": default_profile(home) == DEFAULT_PROFILE}
    if found is None:
        raise NotFoundError(f"{name} {value} does not exist")
    return found


def _valid_name(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise UsageError(f"{name[:100]} is not a valid name", hint="use letters, digits and _ : . -, at most 96")
    return name


def _checked(call: Call, name: str) -> Object:
    """Return the body as a document. Raises HttpError for one that does not match its type."""
    body: Object = call.body
    if body.get("$schema", name) != name:
        raise UsageError(f"$schema is {body['$schema']!a}, not {name}")
    if name not in _BUILT_IN:
        return body
    return plain(converted(call, body, _BUILT_IN[name]))


def _keep_one_default(home: Home, name: str, value: str, document: Object) -> None:
    """Take the default mark from the other descriptions of the same type."""
    if name != DESCRIPTIONS or not document.get("isDefault"):
        return
    values, subject = Documents(home, values_kind(name)), value.rpartition(":")[0]
    for other in values.names():
        found = values.get(other)
        if other != value and other.rpartition(":")[0] == subject and found.get("isDefault"):
            values.put(other, {**found, "isDefault": False})
