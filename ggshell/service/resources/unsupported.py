"""Resources of the vendor's API that have no meaning in ggshell. Each says what to use instead.

The list of such objects is empty, since clients list what there is before they decide what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from ggshell.home.users import Role
from ggshell.service.answers import Answer, collection
from ggshell.service.call import Call
from ggshell.service.refusals import not_here
from ggshell.service.responses import Items
from ggshell.service.routes import CHANGES, resource


class _Unsupported(NamedTuple):
    """Addresses that are not supported. ``methods``: by address, the methods that the vendor has."""

    what: str
    instead: str
    role: Role
    methods: dict[str, str]


_ALL: Final = "GET POST PATCH DELETE"
_MODELS: Final = "/installation/aiservice/models"
_PROVIDERS: Final = "/installation/aiservice/providers"
_CLUSTER: Final = "/installation/cluster"
_BACKENDS: Final = "/installation/configuration/backends"
_PROFILES: Final = "/deployments/{deployment}/authorization/profiles"
_TEMPLATES: Final = "/deployments/{deployment}/plugin/templates"
_TABLE: Final = (
    _Unsupported(
        "the AI service",
        "ggshell calls no language models",
        Role.USER,
        {
            "/aiservice/models": "GET",
            "/aiservice/models/{model}": "GET",
            "/installation/aiservice/health": "GET",
            _MODELS: "GET",
            f"{_MODELS}/{{model}}": _ALL,
            _PROVIDERS: "GET",
            f"{_PROVIDERS}/{{provider}}": _ALL,
        },
    ),
    _Unsupported(
        "a cluster of Service Managers",
        "run one home per machine and connect them with distribution paths",
        Role.ADMINISTRATOR,
        {
            _CLUSTER: "GET POST DELETE",
            f"{_CLUSTER}/actions/memberAdd": "POST",
            f"{_CLUSTER}/role/{{member}}": "GET PATCH DELETE",
        },
    ),
    _Unsupported(
        "the Configuration Service",
        "the configuration of a home is in its folder: use config/files and deployments",
        Role.ADMINISTRATOR,
        {
            "/installation/configuration": "GET PATCH",
            _BACKENDS: "GET POST",
            f"{_BACKENDS}/{{backend}}": "GET PATCH DELETE",
            f"{_BACKENDS}/{{backend}}/actions/replaces": "POST",
        },
    ),
    _Unsupported(
        "a plugin",
        "HELP lists what this version contains",
        Role.ADMINISTRATOR,
        {
            "/installation/plugins": "GET",
            "/installation/plugins/{plugin}": "GET",
            _TEMPLATES: "GET",
            f"{_TEMPLATES}/{{plugin}}": "GET POST PUT DELETE",
        },
    ),
    _Unsupported(
        "an authorization profile",
        "users sign in with passwords, tokens or certificates: use authorizations",
        Role.SECURITY,
        {_PROFILES: "GET", f"{_PROFILES}/{{profile}}": _ALL, f"{_PROFILES}/{{profile}}/valid": "GET"},
    ),
    _Unsupported(
        "a data stream",
        "use a Replicat that delivers to a lake, or TRAIL SQL",
        Role.USER,
        {
            "/stream": "GET",
            "/stream/{stream}": _ALL,
            "/stream/{stream}/info": "GET",
            "/stream/{stream}/info/errors": "GET",
            "/stream/{stream}/yaml": "GET PATCH",
        },
    ),
    _Unsupported(
        "a data target type",
        "the login of a Replicat chooses its target: HELP USERIDALIAS",
        Role.USER,
        {"/dataTargetTypes": "GET", "/dataTargetTypes/{dataTargetType}": "GET"},
    ),
    _Unsupported(
        "a datastore for performance data",
        "use /metrics with Prometheus",
        Role.USER,
        {"/datastore": "GET PATCH"},
    ),
    _Unsupported(
        "a diagnostic file",
        "use the report, SEND … STATUS and SEND … SHOWTRANS",
        Role.USER,
        {
            "/extracts/{extract}/info/diagnostics/{diagnostic}": "GET",
            "/replicats/{replicat}/info/diagnostics/{diagnostic}": "GET",
        },
    ),
    _Unsupported(
        "the content of the web interface", "use ggshell or a client of this API", Role.USER, {"/content": "GET"}
    ),
)


def _declare(row: _Unsupported, method: str, path: str) -> None:
    """Declare a route that answers 404 with the reason, or an empty list. A change requires at least the role Administrator."""
    changes = method in CHANGES
    role = max(row.role, Role.ADMINISTRATOR) if changes else row.role
    body = dict[str, Any] if changes and method != "DELETE" else None

    listed = method == "GET" and is_collection(path, row.methods)
    summary = "List objects that are not supported: always empty" if listed else "Not supported"

    @resource(method, path, role=role, summary=summary, body=body, optional=True, returns=Items if listed else None)
    def handler(call: Call, *parts: str) -> Answer:
        if listed:
            return Answer(collection(()))
        raise not_here(row.what, row.instead)


def is_collection(path: str, paths: Iterable[str]) -> bool:
    """Whether an address lists objects: another address has it and a name."""
    return any(re.fullmatch(re.escape(path) + r"/\{\w+\}", other) for other in paths)


for _row in _TABLE:
    for _path, _methods in _row.methods.items():
        for _method in _methods.split():
            _declare(_row, _method, _path)
