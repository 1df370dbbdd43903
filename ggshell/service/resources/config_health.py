"""The health of the service and of the groups that clients marked as critical, and what the service is."""

from __future__ import annotations

import platform
from typing import Any

from ggshell import __version__
from ggshell.cli.groups import View, shown_state, view
from ggshell.connectors.registry import connectors
from ggshell.errors import GgsError
from ggshell.home.checkpoint import GroupKind
from ggshell.home.documents import Documents
from ggshell.home.users import Role
from ggshell.parameters.process_profiles import GROUP_SETTINGS
from ggshell.service.answers import Answer, utc_text
from ggshell.service.call import Call
from ggshell.service.group_facts import status_text
from ggshell.service.installation import ADMINISTRATION, MANAGER, deployment_of, identifier
from ggshell.service.responses import Response
from ggshell.service.routes import resource

_TYPES = {
    GroupKind.EXTRACT: "extract",
    GroupKind.REPLICAT: "replicat",
    GroupKind.PATH: "distPath",
    GroupKind.RECVPATH: "recvPath",
}


class ServiceFacts(Response):
    """The service that the address names."""

    deployment_name: str
    service_name: str
    started: str | None


class CriticalResource(Response):
    """The service, or a group that a client marked as critical."""

    name: str
    type: str
    status: str
    healthy: bool


class Health(ServiceFacts, tag_field="$schema", tag="ogg:health"):
    """Whether the service and the critical groups run."""

    healthy: bool
    critical_resources: list[CriticalResource]


class HealthSummary(ServiceFacts, tag_field="$schema", tag="ogg:healthSummary"):
    """Whether all run, without their names."""

    healthy: bool
    deployment_id: str
    service_id: str
    service_manager_id: str


class Build(Response):
    """The program."""

    label: str
    platform: str
    version: str
    dbms: str


class Runtime(Response):
    """The machine."""

    hostname: str
    platform: str


class ConfigSummary(ServiceFacts, tag_field="$schema", tag="ogg:configSummary"):
    """The version and the start time of the service."""

    title: str
    build: Build
    runtime: Runtime


@resource(
    "GET",
    "/config/health",
    role=Role.USER,
    summary="Show the health of the service and of critical groups",
    returns=Health,
)
def get_health(call: Call) -> Answer:
    service = call.request.service or ADMINISTRATION
    own = CriticalResource(name=service, type="service", status="running", healthy=True)
    found = [own, *_critical(call)]
    return Answer(Health(**_facts(call), healthy=all(each.healthy for each in found), critical_resources=found))


@resource(
    "GET",
    "/config/health/check",
    role=Role.ANYONE,
    summary="Show whether the service and critical groups run",
    returns=HealthSummary,
)
def check_health(call: Call) -> Answer:
    service = call.request.service or ADMINISTRATION
    found = HealthSummary(
        **_facts(call),
        healthy=all(each.healthy for each in _critical(call)),
        deployment_id=identifier(call.home, deployment_of(call.state.settings, service)),
        service_id=identifier(call.home, service),
        service_manager_id=identifier(call.home, MANAGER),
    )
    return Answer(found)


@resource(
    "GET",
    "/config/summary",
    role=Role.USER,
    summary="Show the version and the start time of the service",
    returns=ConfigSummary,
)
def get_summary(call: Call) -> Answer:
    system = f"{platform.system()} {platform.machine()}"
    build = Build(label=f"ggshell {__version__}", platform=system, version=__version__, dbms=_databases())
    runtime = Runtime(hostname=platform.node(), platform=system)
    return Answer(ConfigSummary(**_facts(call), title="ggshell", build=build, runtime=runtime))


def _databases() -> str:
    """The kinds of database, as the heading of a report names them."""
    return ", ".join(dict.fromkeys(each.vendor for each in connectors()))


def _facts(call: Call) -> dict[str, Any]:
    """Return the fields of ServiceFacts."""
    service = call.request.service or ADMINISTRATION
    return {
        "deployment_name": deployment_of(call.state.settings, service),
        "service_name": service,
        "started": utc_text(call.state.started),
    }


def _critical(call: Call) -> list[CriticalResource]:
    """Return the state of each group that a client or CRITICAL of a path marked as critical.

    A group that cannot be read is not healthy.
    """
    settings = Documents(call.home, GROUP_SETTINGS)
    names = {name for name in settings.names() if settings.get(name).get("critical")}
    found = []
    for entry in call.home.groups():
        critical = f"{entry.type} {entry.group}" in names
        try:
            shown: View | None = view(call.home, entry)
        except GgsError:
            shown = None
        if shown is not None and not (critical or shown.checkpoint.options.path.critical):
            continue
        status = str(shown_state(call.home, entry)[0]).lower() if shown is None else status_text(shown)
        healthy = shown is not None and shown.runs
        kind = _TYPES[entry.type]
        found.append(CriticalResource(name=entry.group, type=kind, status=status, healthy=healthy))
    return found
