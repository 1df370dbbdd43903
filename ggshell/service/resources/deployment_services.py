"""The services of a deployment. One process serves all of them, so they have the same port and the same settings."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from ggshell.errors import NotFoundError, UsageError
from ggshell.home.users import Role
from ggshell.parameters.loading import load_service
from ggshell.service.answers import Answer, Object, collection, link, status_item
from ggshell.service.bodies import Body
from ggshell.service.call import Call
from ggshell.service.installation import deployments, identifier, services_of
from ggshell.service.refusals import not_here
from ggshell.service.resources.deployments import require_unchanged
from ggshell.service.responses import Link, Resource, Response, StatusItems
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


class Listener(Response):
    """Where a service accepts connections."""

    address: str
    port: int


class Network(Response):
    """The addresses of a service."""

    service_listening_port: list[Listener]


class Sessions(Response):
    """The time limits of sessions in seconds."""

    session_inactive_secs: int
    session_duration_secs: int


class ServiceConfig(Response):
    """The settings of a service. ``security``: it uses TLS."""

    network: Network
    security: bool
    authorization_enabled: bool
    authorization_details: Sessions
    asynchronous_operation_enabled: bool
    task_manager_enabled: bool


class ShownService(Resource, tag="ogg:service"):
    """A service of a deployment."""

    id: str
    enabled: bool
    status: str
    critical: bool
    locked: bool
    quiet: bool
    config: ServiceConfig


class InstalledDeployment(Response):
    """A deployment in the list of the installation."""

    deployment_name: str
    deployment_id: str
    enabled: bool
    status: str


class InstallationDeployments(Resource, tag="ogg:installationDeployments"):
    """The deployments of the installation."""

    deployments: list[InstalledDeployment]


class InstalledService(Response):
    """A service in the list of the installation."""

    service_name: str
    service_id: str
    deployment_name: str
    deployment_id: str
    critical: bool
    enabled: bool
    locked: bool
    status: str
    is_ssl: bool
    listeners: list[Listener]
    links: list[Link]


class InstallationServices(Resource, tag="ogg:installationServices"):
    """The services of the installation."""

    services: list[InstalledService]


@resource("GET", _BASE, role=Role.USER, summary="List the services of a deployment", returns=StatusItems)
def list_services(call: Call, deployment: str) -> Answer:
    names = services_of(call.state.settings, deployment)
    if not names:
        raise NotFoundError(f"deployment {deployment} does not exist", hint="list them with GET deployments")
    base = call.url(_BASE.format(deployment=deployment))
    return Answer(collection(status_item(base, name, "running") for name in names))


@resource(
    "GET",
    f"{_BASE}/{{service}}",
    role=Role.USER,
    summary="Show a service: its port and its settings",
    returns=ShownService,
)
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
    returns=InstallationDeployments,
)
def list_installation_deployments(call: Call) -> Answer:
    wanted = call.request.query.get("deployment")
    found = [
        InstalledDeployment(
            deployment_name=name, deployment_id=identifier(call.home, name), enabled=True, status="running"
        )
        for name in deployments(call.state.settings)
        if wanted in (None, name)
    ]
    return Answer(InstallationDeployments(deployments=found))


@resource(
    "GET",
    "/installation/services",
    role=Role.USER,
    summary="List the services with their ports",
    query={"deployment": "only the services of this deployment", "service": "the name of the only service to list"},
    returns=InstallationServices,
)
def list_installation_services(call: Call) -> Answer:
    settings, query = call.state.settings, call.request.query
    found = [
        _listed(call, deployment, service)
        for deployment in deployments(settings)
        for service in services_of(settings, deployment)
        if query.get("deployment") in (None, deployment) and query.get("service") in (None, service)
    ]
    return Answer(InstallationServices(services=found))


def _listed(call: Call, deployment: str, service: str) -> InstalledService:
    settings = call.state.settings
    return InstalledService(
        service_name=service,
        service_id=identifier(call.home, service),
        deployment_name=deployment,
        deployment_id=identifier(call.home, deployment),
        critical=True,
        enabled=True,
        locked=False,
        status="running",
        is_ssl=not settings.plaintext,
        listeners=[Listener(address=settings.address, port=settings.port)],
        links=[link("canonical", call.url(""))],
    )


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
