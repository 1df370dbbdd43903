"""Deployments: this home, and the Service Manager that the vendor's clients expect next to it."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ggshell.errors import NotFoundError, UsageError
from ggshell.home.documents import Documents
from ggshell.home.users import Role
from ggshell.parameters.service_parameters import STATSD_PORT
from ggshell.service.answers import Answer, Object, collection, status_item
from ggshell.service.bodies import Body
from ggshell.service.call import Call
from ggshell.service.installation import MANAGER, deployments, identifier, services_of
from ggshell.service.refusals import not_here
from ggshell.service.responses import Resource, Response, StatusItems
from ggshell.service.routes import resource

_BASE: Final = "/deployments"
SETTINGS: Final = "deployment"
"""The kind of the documents with the settings of deployments; ``metrics`` names the servers that receive StatsD gauges."""
_INSTEAD: Final = "a deployment is a home: start ggshell in another folder"


class MetricsServer(Body):
    """A server that receives metrics."""

    host: str
    type: str = "statsd"
    port: int = STATSD_PORT


class Metrics(Body):
    """Whether metrics are sent, and where."""

    enabled: bool | None = None
    servers: list[MetricsServer | None] | None = None


class DeploymentBody(Body):
    """The properties of a deployment; only ``metrics`` can be changed."""

    metrics: Metrics | None = None
    ogg_home: str | None = None
    ogg_etc_home: str | None = None
    ogg_conf_home: str | None = None
    ogg_ssl_home: str | None = None
    ogg_shared_ssl_home: str | None = None
    ogg_var_home: str | None = None
    ogg_data_home: str | None = None
    ogg_archive_home: str | None = None
    enabled: bool | None = None
    status: str | None = None
    id: str | None = None
    environment: list[Any] | None = None
    password_regex: str | None = None
    cluster: list[Any] | None = None
    configuration: Object | None = None


class ShownServer(Response):
    """A server that receives metrics."""

    type: str
    host: str
    port: int


class ShownMetrics(Response):
    """Whether metrics are sent, and where."""

    enabled: bool
    servers: list[ShownServer]


class ShownDeployment(Resource, tag="ogg:deployment"):
    """A deployment: a home, with its folders."""

    id: str
    enabled: bool
    status: str
    ogg_home: str
    ogg_etc_home: str
    ogg_conf_home: str
    ogg_ssl_home: str
    ogg_var_home: str
    ogg_data_home: str
    metrics: ShownMetrics


@resource("GET", _BASE, role=Role.USER, summary="List the deployments", returns=StatusItems)
def list_deployments(call: Call) -> Answer:
    names = deployments(call.state.settings)
    return Answer(collection(status_item(call.url(_BASE), name, "running") for name in names))


@resource("GET", f"{_BASE}/{{deployment}}", role=Role.USER, summary="Show a deployment", returns=ShownDeployment)
def get_deployment(call: Call, name: str) -> Answer:
    return Answer({"$schema": "ogg:deployment", **_fields(call, name)})


@resource(
    "PATCH",
    f"{_BASE}/{{deployment}}",
    role=Role.ADMINISTRATOR,
    summary="Change where a deployment sends metrics",
    body=DeploymentBody,
)
def update_deployment(call: Call, name: str) -> Answer:
    body: DeploymentBody = call.body
    now = _fields(call, name)
    given: Object = msgspec.to_builtins(body)
    require_unchanged({key: value for key, value in given.items() if key not in ("$schema", "metrics")}, now, name)
    if body.metrics is not None:
        documents = Documents(call.home, SETTINGS)
        metrics = {**now["metrics"], **_metrics(body.metrics)}
        documents.put(name, {**(documents.find(name) or {}), "metrics": metrics})
        call.state.metrics_changed.set()
    return Answer()


@resource("POST", f"{_BASE}/{{deployment}}", role=Role.ADMINISTRATOR, summary="Not supported", body=DeploymentBody)
def create_deployment(call: Call, name: str) -> Answer:
    raise not_here("creating a deployment", _INSTEAD)


@resource("DELETE", f"{_BASE}/{{deployment}}", role=Role.ADMINISTRATOR, summary="Not supported")
def delete_deployment(call: Call, name: str) -> Answer:
    raise not_here("deleting a deployment", "run STOP SERVICE, stop the processes, and delete the folder of the home")


def require_unchanged(given: Object, now: Object, what: str, hint: str = "") -> None:
    """Raise UsageError for the first field of a body that differs from the current value; fields without value are ignored."""
    for key, value in given.items():
        if value is None or now.get(key) == value:
            continue
        if isinstance(value, dict) and isinstance(now.get(key), dict):
            require_unchanged(value, now[key], f"{what}: {key}", hint)
        else:
            raise UsageError(f"{what}: {key} cannot be changed", hint=hint or _hint(key))


def _hint(key: str) -> str:
    return "use STOP SERVICE or RESTART SERVICE in ggshell" if key == "status" else _INSTEAD


def _fields(call: Call, name: str) -> Object:
    """Return the properties of a deployment. Raises NotFoundError."""
    if not services_of(call.state.settings, name):
        raise NotFoundError(f"deployment {name} does not exist", hint="list them with GET deployments")
    root = call.home.root
    return {
        "id": identifier(call.home, name),
        "enabled": True,
        "status": "running",
        "oggHome": str(root),
        "oggEtcHome": str(root),
        "oggConfHome": str(root / "dirprm"),
        "oggSslHome": str(root / "dirwlt"),
        "oggVarHome": str(root),
        "oggDataHome": str(root / "dirdat"),
        "metrics": _current_metrics(call, name),
    }


def _current_metrics(call: Call, name: str) -> Object:
    """Return where metrics go: as clients set it, otherwise as STATSD in service.prm says."""
    stored = (Documents(call.home, SETTINGS).find(name) or {}).get("metrics")
    if isinstance(stored, dict):
        return stored
    statsd = call.state.settings.statsd
    if statsd is None or name == MANAGER:
        return {"enabled": False, "servers": []}
    return {"enabled": True, "servers": [{"type": "statsd", "host": statsd.host, "port": statsd.port}]}


def _metrics(metrics: Metrics) -> Object:
    """Return the given parts of a metrics setting. Raises UsageError."""
    servers = [server for server in metrics.servers or () if server is not None]
    for server in servers:
        if server.type.lower() != "statsd" or not server.host or not 0 < server.port < 65_536:
            raise UsageError(
                f"{server.type[:40]} server {server.host[:80]!a}, port {server.port} is not a valid server for metrics",
                hint="use type statsd, a host, and a port from 1 to 65535",
            )
    found: Object = {} if metrics.enabled is None else {"enabled": metrics.enabled}
    if metrics.servers is not None:
        found["servers"] = [{"type": "statsd", "host": each.host, "port": each.port} for each in servers]
    return found
