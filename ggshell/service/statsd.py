"""Sends the metrics of a home as gauges to StatsD servers, with the labels as tags (``name:value|g|#label:value``).

The servers are those of STATSD in dirprm/service.prm, and those that a client set for the deployment (``metrics.servers``).
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, Final

from ggshell.errors import GgsError, StoreError
from ggshell.home.documents import Documents
from ggshell.parameters.service_parameters import STATSD_PORT, StatsdSettings
from ggshell.service.background import Background, Problems
from ggshell.service.state import ServiceState

DEPLOYMENT: Final = "deployment"
"""The kind of the document with the settings of the deployment."""
_LONGEST_DATAGRAM: Final = 1400
_LAST_PORT: Final = 65_535


class StatsdSender:
    """A thread that sends the metrics at an interval until it is closed."""

    def __init__(self, state: ServiceState) -> None:
        self._state = state
        self._problems = Problems("statsd", state.report)
        self._thread = Background("statsd", self._turn, state.report, state.metrics_changed)
        self._thread.start()

    def close(self) -> None:
        self._thread.close()

    def _turn(self) -> float | None:
        """Send the metrics to each server; without one, wait until a client sets one."""
        own = self._state.settings.statsd
        servers = [*([own] if own is not None else []), *self._of_deployment()]
        for server in servers:
            self._send(server)
        return min((server.interval for server in servers), default=None)

    def _of_deployment(self) -> list[StatsdSettings]:
        """The servers that a client has set; a document that cannot be read is reported, and the other servers are used."""
        try:
            found = list(_servers(Documents(self._state.home, DEPLOYMENT).find(self._state.settings.deployment) or {}))
        except Exception as error:  # noqa: BLE001 - the server of service.prm is used whatever the document contains
            self._problems.tell(DEPLOYMENT, error)
            return []
        self._problems.over(DEPLOYMENT)
        return found

    def _send(self, server: StatsdSettings) -> None:
        """Send all metrics to a server. A server that cannot be reached is reported once."""
        try:
            family, _, _, _, address = socket.getaddrinfo(server.host, server.port, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, socket.SOCK_DGRAM) as out:
                for datagram in datagrams(self._lines(server.prefix)):
                    out.sendto(datagram, address)
            self._problems.over(server)
        except (OSError, GgsError) as error:
            self._problems.tell(server, _not_sent(server.host, server.port, str(error)))

    def _lines(self, prefix: str) -> Iterator[bytes]:
        tag = f"deploymentName:{self._state.settings.deployment}"
        for metric in self._state.collector.collect():
            for sample in metric.samples:
                if isfinite(sample.value):
                    tags = ",".join([tag, *(f"{name}:{_clean(value)}" for name, value in sample.labels.items())])
                    name = sample.name.removeprefix("ggshell_")
                    yield f"{prefix}.{name}:{sample.value:.15g}|g|#{tags}".encode()


def _servers(deployment: Mapping[str, Any]) -> Iterator[StatsdSettings]:
    """The StatsD servers in the settings of a deployment. Raises StoreError for one with a port that is not valid."""
    metrics = deployment.get("metrics") or {}
    for each in metrics.get("servers", ()) if metrics.get("enabled") else ():
        if each.get("type") != "statsd" or not each.get("host"):
            continue
        port = each.get("port", STATSD_PORT)
        if type(port) is not int or not 0 <= port <= _LAST_PORT:
            raise _not_sent(str(each["host"]), port, "the port is not a number from 1 to 65535")
        yield StatsdSettings(str(each["host"]), port)


def _not_sent(host: str, port: object, reason: str) -> GgsError:
    return StoreError(f"Metrics cannot be sent to {host}:{port}: {reason}.", code="GGS-00940")


def _clean(value: str) -> str:
    """Return a label without the characters that have a meaning in StatsD."""
    return "".join("_" if each in ":|@#,\n" else each for each in value)


def datagrams(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Join lines to datagrams that fit into one packet."""
    held = b""
    for line in lines:
        if held and len(held) + len(line) + 1 > _LONGEST_DATAGRAM:
            yield held
            held = b""
        held = held + b"\n" + line if held else line
    if held:
        yield held
