"""The installation as the vendor's API sees it: one deployment with its four services, and the Service Manager.

ggshell serves all of them with one process on one port. Clients that look up the port of a service find this one.
"""

from __future__ import annotations

import hashlib
import uuid
from typing import Final

from ggshell.home.home import Home
from ggshell.home.identity import ensure_identity
from ggshell.parameters.service_parameters import ServiceParameters

MANAGER: Final = "ServiceManager"
ADMINISTRATION: Final = "adminsrvr"
SERVICES: Final = (ADMINISTRATION, "distsrvr", "recvsrvr", "pmsrvr")


def deployments(settings: ServiceParameters) -> tuple[str, ...]:
    """Return the names of the deployments: this home, and the one of the Service Manager."""
    return (settings.deployment, MANAGER)


def services_of(settings: ServiceParameters, deployment: str) -> tuple[str, ...]:
    """Return the names of a deployment's services; none if the deployment does not exist."""
    if deployment == MANAGER:
        return (MANAGER,)
    return SERVICES if deployment == settings.deployment else ()


def deployment_of(settings: ServiceParameters, service: str) -> str:
    """Return the name of the deployment that a service belongs to."""
    return MANAGER if service == MANAGER else settings.deployment


def identifier(home: Home, name: str) -> str:
    """Return the UUID of a deployment or a service, which stays the same for a home."""
    digest = hashlib.sha256(f"{ensure_identity(home.root).id} {name}".encode()).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))
