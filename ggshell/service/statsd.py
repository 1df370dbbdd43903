"""Sends the metrics of a home as gauges to StatsD servers, with the labels as tags (``name:value|g|#label:value``).

The servers are those of STATSD in dirprm/service.prm, and those that a client set for the deployment (``metrics.servers``).
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from math import isfinite
from typing import Final

from ggshell.errors import DiskError, GgsError
from ggshell.home.documents import Documents
from ggshell.home.events import Severity
from ggshell.parameters.service_parameters import STATSD_PORT, StatsdSettings
from ggshell.service.state import ServiceState

DEPLOYMENT: Final = "deployment"
"""The kind of the document with the settings of the deployment."""
_LONGEST_DATAGRAM: Final = 1400
_CHECK_SECONDS: Final = 10.0
"""How often the sender checks whether a client has set a server, while there is none."""


class StatsdSender:
    """A thread that sends the metrics at an interval until it is closed."""

    def __init__(self, state: ServiceState) -> None:
        self._state = state
        self._ended = threading.Event()
        self._refused: dict[StatsdSettings, str] = {}
        self._thread = threading.Thread(target=self._run, name="statsd", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        wait = 0.0
        while not self._ended.wait(wait):
            servers = self._servers()
            for server in servers:
                self._send(server)
            wait = min((server.interval for server in servers), default=_CHECK_SECONDS)

    def _servers(self) -> list[StatsdSettings]:
        own = self._state.settings.statsd
        return [*([own] if own is not None else []), *self._of_deployment()]

    def _of_deployment(self) -> list[StatsdSettings]:
        try:
            found = Documents(self._state.home, DEPLOYMENT).find(self._state.settings.deployment) or {}
        except GgsError:
            return []
        metrics = found.get("metrics") or {}
        if not metrics.get("enabled"):
            return []
        servers = [each for each in metrics.get("servers", ()) if each.get("type") == "statsd" and each.get("host")]
        return [StatsdSettings(str(each["host"]), int(each.get("port", STATSD_PORT))) for each in servers]

    def _send(self, server: StatsdSettings) -> None:
        """Send all metrics to a server. A server that cannot be reached is reported once."""
        try:
            family, _, _, _, address = socket.getaddrinfo(server.host, server.port, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, socket.SOCK_DGRAM) as out:
                for datagram in datagrams(self._lines(server.prefix)):
                    out.sendto(datagram, address)
            self._refused.pop(server, None)
        except (OSError, GgsError) as error:
            text = f"Metrics cannot be sent to {server.host}:{server.port}: {error}."
            if text != self._refused.get(server):
                with contextlib.suppress(DiskError):  # a disk that is full must not end the thread
                    self._state.event(Severity.WARNING, "GGS-00940", text)
                    self._refused[server] = text

    def _lines(self, prefix: str) -> Iterator[bytes]:
        tag = f"deploymentName:{self._state.settings.deployment}"
        for metric in self._state.collector.collect():
            for sample in metric.samples:
                if isfinite(sample.value):
                    tags = ",".join([tag, *(f"{name}:{_clean(value)}" for name, value in sample.labels.items())])
                    name = sample.name.removeprefix("ggshell_")
                    yield f"{prefix}.{name}:{sample.value:.15g}|g|#{tags}".encode()


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
