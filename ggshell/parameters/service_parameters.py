"""The parameters of the service: dirprm/service.prm as typed settings."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

from ggshell.errors import ParameterError
from ggshell.hosts import is_loopback
from ggshell.parameters.lines import Parameter

PORT = 7810
STATSD_PORT = 8125
_DEPLOYMENT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class MetricsAccess(StrEnum):
    """Who can read /metrics."""

    USERS = "USERS"
    TOKEN = "TOKEN"  # noqa: S105 - a word of the parameter
    OPEN = "OPEN"
    OFF = "OFF"


class StatsdSettings(NamedTuple):
    """Where metrics are sent as StatsD gauges. ``interval``: seconds."""

    host: str
    port: int = STATSD_PORT
    interval: float = 10
    prefix: str = "ggshell"


class ServiceParameters(NamedTuple):
    """The service's parameters. ``certificate`` and ``key`` are empty for the certificate that the service makes.

    ``session_seconds``: how long a session stays open without requests. ``metrics_token``: set for MetricsAccess.TOKEN.
    ``allowed``: the folders of ALLOWPATH.
    """

    port: int = PORT
    address: str = "127.0.0.1"
    plaintext: bool = False
    certificate: str = ""
    key: str = ""
    client_authority: str = ""
    client_certificate_required: bool = False
    session_seconds: float = 1800
    deployment: str = "Local"
    metrics: MetricsAccess = MetricsAccess.USERS
    metrics_token: str = ""
    statsd: StatsdSettings | None = None
    allowed: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """A checksum by which a process and a file compare their settings without showing the token."""
        return hashlib.sha256(repr(self).encode()).hexdigest()

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect."""
        return is_loopback(self.address)


def service_parameters(found: Sequence[Parameter], path: Path) -> ServiceParameters:
    """Return the settings of a parameter file. Raises ParameterError for settings that exclude each other."""
    given = {item.name: item.args for item in found}
    certificate, authority, metrics = given.get("CERTIFICATE", {}), given.get("CLIENTCA", {}), given.get("METRICS", {})
    settings = ServiceParameters(
        port=given.get("PORT", {}).get("number", PORT),
        address=given.get("ADDRESS", {}).get("host", "127.0.0.1"),
        plaintext="PLAINTEXT" in given,
        certificate=certificate.get("file", ""),
        key=certificate.get("key", "") or certificate.get("file", ""),
        client_authority=authority.get("file", ""),
        client_certificate_required=bool(authority.get("required")),
        session_seconds=float(given.get("SESSIONTIMEOUT", {}).get("interval", 1800)),
        deployment=given.get("DEPLOYMENT", {}).get("deployment_name", "Local"),
        metrics=_metrics_access(metrics),
        metrics_token=metrics.get("password", ""),
        statsd=_statsd(given.get("STATSD")),
        allowed=tuple(str(item.args["directory"]) for item in found if item.name == "ALLOWPATH"),
    )
    if not _DEPLOYMENT.fullmatch(settings.deployment):
        raise ParameterError(
            f"{settings.deployment[:80]!a} is not a valid DEPLOYMENT, because it is a part of addresses",
            where=str(path),
            hint="use letters, digits and _ . -",
        )
    if settings.plaintext and settings.client_certificate_required:
        raise ParameterError(
            "CLIENTCA with REQUIRED is not possible with PLAINTEXT, because only TLS has client certificates",
            where=str(path),
            hint="remove one of them",
        )
    for name, wrong in (("PLAINTEXT", settings.plaintext), ("METRICS OPEN", settings.metrics is MetricsAccess.OPEN)):
        if wrong and not settings.is_local:
            raise ParameterError(
                f"{name} is not allowed with ADDRESS {settings.address}, because other machines could connect",
                code="GGS-00901",
                where=str(path),
                hint=f"remove {name}, or use ADDRESS 127.0.0.1",
            )
    return settings


def _metrics_access(arguments: dict[str, Any]) -> MetricsAccess:
    if "password" in arguments:
        return MetricsAccess.TOKEN
    return next((each for each in MetricsAccess if arguments.get(each.value.lower())), MetricsAccess.USERS)


def _statsd(arguments: dict[str, Any] | None) -> StatsdSettings | None:
    if arguments is None:
        return None
    return StatsdSettings(
        arguments["host"],
        arguments.get("port", STATSD_PORT),
        float(arguments.get("interval", 10)),
        arguments.get("prefix", "ggshell"),
    )
