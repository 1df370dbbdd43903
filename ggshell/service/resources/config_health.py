"""The health of the service and of the groups that clients marked as critical, and what the service is."""

from __future__ import annotations

import platform

from ggshell import __version__
from ggshell.cli.groups import View, shown_state, view
from ggshell.errors import GgsError
from ggshell.home.checkpoint import GroupKind
from ggshell.home.documents import Documents
from ggshell.home.users import Role
from ggshell.parameters.process_profiles import GROUP_SETTINGS
from ggshell.service.answers import Answer, Object, utc_text
from ggshell.service.call import Call
from ggshell.service.group_facts import status_text
from ggshell.service.installation import ADMINISTRATION, MANAGER, deployment_of, identifier
from ggshell.service.routes import resource

_TYPES = {GroupKind.EXTRACT: "extract", GroupKind.REPLICAT: "replicat", GroupKind.PATH: "distPath"}


@resource("GET", "/config/health", role=Role.USER, summary="Show the health of the service and of critical groups")
def get_health(call: Call) -> Answer:
    service = call.request.service or ADMINISTRATION
    own = {"name": service, "type": "service", "status": "running", "healthy": True}
    resources: list[Object] = [own, *_critical(call)]
    fields = {**_facts(call), "healthy": all(each["healthy"] for each in resources), "criticalResources": resources}
    return Answer({"$schema": "ogg:health", **fields})


@resource("GET", "/config/health/check", role=Role.ANYONE, summary="Show whether the service and critical groups run")
def check_health(call: Call) -> Answer:
    service = call.request.service or ADMINISTRATION
    fields = {
        **_facts(call),
        "healthy": all(each["healthy"] for each in _critical(call)),
        "deploymentId": identifier(call.home, deployment_of(call.state.settings, service)),
        "serviceId": identifier(call.home, service),
        "serviceManagerId": identifier(call.home, MANAGER),
    }
    return Answer({"$schema": "ogg:healthSummary", **fields})


@resource("GET", "/config/summary", role=Role.USER, summary="Show the version and the start time of the service")
def get_summary(call: Call) -> Answer:
    system = f"{platform.system()} {platform.machine()}"
    build = {"label": f"ggshell {__version__}", "platform": system, "version": __version__, "dbms": "PostgreSQL"}
    fields: Object = {
        "$schema": "ogg:configSummary",
        "title": "ggshell",
        "build": build,
        "started": utc_text(call.state.started),
        "runtime": {"hostname": platform.node(), "platform": system},
        **_facts(call),
    }
    return Answer(fields)


def _facts(call: Call) -> Object:
    service = call.request.service or ADMINISTRATION
    return {
        "deploymentName": deployment_of(call.state.settings, service),
        "serviceName": service,
        "started": utc_text(call.state.started),
    }


def _critical(call: Call) -> list[Object]:
    """Return the state of each group that a client marked as critical, and of each that cannot be read: it is not healthy."""
    settings = Documents(call.home, GROUP_SETTINGS)
    names = {name for name in settings.names() if settings.get(name).get("critical")}
    found = []
    for entry in call.home.groups():
        critical = f"{entry.type} {entry.group}" in names
        try:
            shown: View | None = view(call.home, entry)
        except GgsError:
            shown = None
        if shown is not None and not critical:
            continue
        status = str(shown_state(call.home, entry)[0]).lower() if shown is None else status_text(shown)
        healthy = shown is not None and shown.runs
        found.append({"name": entry.group, "type": _TYPES[entry.type], "status": status, "healthy": healthy})
    return found
