"""The services of a deployment. One process serves all of them, so they have the same port and the same settings."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from ggshell.errors import NotFoundError, UsageError
from ggshell.home.users import Role
from ggshell.parameters.loading import load_service
from ggshell.service.answers import Answer, Object, collection, item
from ggshell.service.bodies import Body
from ggshell.service.call import Call
from ggshell.service.installation import deployments, identifier, services_of
from ggshell.service.refusals import not_here
from ggshell.service.resources.deployments import require_unchanged
from ggshell.service.routes import resource

_BASE: Final = "/deployments/{deployment}/services"
_INSTEAD: Final = "one process serves all services: use START SERVICE, STOP SERVICE and dirprm/service.prm"
_TIMEOUT: Final = re.compile(r"^[ \t]*SESSIONTIMEOUT\b.*$", re.IGNORECASE | re.MULTILINE)
_AUTHORIZATION: Final = "authorizationDetails"
_INACTIVE: Final = "sessionInactiveSecs"
_DURATION: Final = "sessionDurationSecs"


class ServiceBody(Body):
    """The properties of a service; only the time limit of sessions can be changed."""

    config: Object | None = None
    quiet: bool | None = None
    enabled: bool | None = None
    id: str | None = None
    status: str | None = None
    critical: bool | None = None
    restart: Object | None = None
    locked: bool | None = None
    config_force: bool | None = None


@resource("GET", _BASE, role=Role.USER, summary="List the services of a deployment")
def list_services(call: Call, deployment: str) -> Answer:
    names = services_of(call.state.settings, deployment)
    if not names:
        raise NotFoundError(f"deployment {deployment} does not exist", hint="list them with GET deployments")
    base = call.url(_BASE.format(deployment=deployment))
    return Answer(collection(item(base, name, status="running") for name in names))


@resource("GET", f"{_BASE}/{{service}}", role=Role.USER, summary="Show a service: its port and its settings")
def get_service(call: Call, deployment: str, service: str) -> Answer:
    return Answer({"$schema": "ogg:service", **_fields(call, deployment, service)})


@resource(
    "PATCH",
    f"{_BASE}/{{service}}",
    role=Role.ADMINISTRATOR,
    summary="Change the time limit of sessions",
    body=ServiceBody,
)
def update_service(call: Call, deployment: str, service: str) -> Answer:
    body: ServiceBody = call.body
    now = _fields(call, deployment, service)
    given: Object = msgspec.to_builtins(body)
    config = dict(given.pop("config") or {})
    sessions = config.pop(_AUTHORIZATION, None) or {}
    seconds = _session_seconds(sessions, now["config"][_AUTHORIZATION])
    rest = {key: value for key, value in sessions.items() if key not in (_INACTIVE, _DURATION)}
    require_unchanged({key: value for key, value in given.items() if key != "$schema"}, now, service)
    require_unchanged(
        {**config, _AUTHORIZATION: rest}, now["config"], f"{service}: config", "change dirprm/service.prm"
    )
    if seconds != now["config"][_AUTHORIZATION][_INACTIVE]:
        _set_session_timeout(call, seconds)
    return Answer()


@resource(
    "POST", f"{_BASE}/{{service}}", role=Role.ADMINISTRATOR, summary="Not supported", body=dict[str, Any], optional=True
)
def create_service(call: Call, deployment: str, service: str) -> Answer:
    raise not_here("creating a service", _INSTEAD)


@resource("DELETE", f"{_BASE}/{{service}}", role=Role.ADMINISTRATOR, summary="Not supported")
def delete_service(call: Call, deployment: str, service: str) -> Answer:
    raise not_here("deleting a service", _INSTEAD)


@resource(
    "GET",
    "/installation/deployments",
    role=Role.USER,
    summary="List the deployments",
    query={"deployment": "the name of the only deployment to list"},
)
def list_installation_deployments(call: Call) -> Answer:
    wanted = call.request.query.get("deployment")
    found = [
        {"deploymentName": name, "deploymentId": identifier(call.home, name), "enabled": True, "status": "running"}
        for name in deployments(call.state.settings)
        if wanted in (None, name)
    ]
    return Answer({"$schema": "ogg:installationDeployments", "deployments": found})


@resource(
    "GET",
    "/installation/services",
    role=Role.USER,
    summary="List the services with their ports",
    query={"deployment": "only the services of this deployment", "service": "the name of the only service to list"},
)
def list_installation_services(call: Call) -> Answer:
    settings, query = call.state.settings, call.request.query
    found = [
        _listed(call, deployment, service)
        for deployment in deployments(settings)
        for service in services_of(settings, deployment)
        if query.get("deployment") in (None, deployment) and query.get("service") in (None, service)
    ]
    return Answer({"$schema": "ogg:installationServices", "services": found})


def _listed(call: Call, deployment: str, service: str) -> Object:
    settings = call.state.settings
    return {
        "serviceName": service,
        "serviceId": identifier(call.home, service),
        "deploymentName": deployment,
        "deploymentId": identifier(call.home, deployment),
        "critical": True,
        "enabled": True,
        "locked": False,
        "status": "running",
        "isSsl": not settings.plaintext,
        "listeners": [{"address": settings.address, "port": settings.port}],
        "links": [{"rel": "canonical", "href": call.url(""), "mediaType": "application/json"}],
    }


def _fields(call: Call, deployment: str, service: str) -> Object:
    """Return the properties of a service. Raises NotFoundError."""
    settings = call.state.settings
    if service not in services_of(settings, deployment):
        raise NotFoundError(f"service {service} of deployment {deployment} does not exist")
    seconds = int(settings.session_seconds)
    return {
        "id": identifier(call.home, service),
        "enabled": True,
        "status": "running",
        "critical": True,
        "locked": False,
        "quiet": False,
        "config": {
            "network": {"serviceListeningPort": [{"address": settings.address, "port": settings.port}]},
            "security": not settings.plaintext,
            "authorizationEnabled": True,
            _AUTHORIZATION: {_INACTIVE: seconds, _DURATION: seconds},
            "asynchronousOperationEnabled": True,
            "taskManagerEnabled": True,
        },
    }


def _session_seconds(given: Object, now: Object) -> int:
    """Return the wanted time limit. A session and a token have one limit, so both fields mean the same.

    Raises UsageError for a value that is not a number of seconds, and for two different new values.
    """
    changed = {key: given[key] for key in (_INACTIVE, _DURATION) if given.get(key) not in (None, now[key])}
    if not changed:
        return int(now[_INACTIVE])
    for key, value in changed.items():
        if type(value) is not int:
            raise UsageError(f"{key} is {str(value)[:40]!a}, not a number of seconds")
    if len(set(changed.values())) > 1:
        raise UsageError(f"{_INACTIVE} and {_DURATION} must be equal")
    return int(next(iter(changed.values())))


def _set_session_timeout(call: Call, seconds: int) -> None:
    """Set SESSIONTIMEOUT in service.prm, and use it from now on. Raises ParameterError for a time outside its range."""
    path = call.home.parameters("service")
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    line = f"SESSIONTIMEOUT {seconds}S"
    new, count = _TIMEOUT.subn(line, text)
    if not count:
        new = f"{text.rstrip()}\n{line}\n" if text.strip() else f"{line}\n"
    with call.steps() as steps:
        steps.write_file(path, new)
        settings = load_service(path)
    call.state.settings = call.state.settings._replace(session_seconds=settings.session_seconds)
    call.state.sign_in.session_seconds = settings.session_seconds
