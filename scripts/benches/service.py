"""``service``: answers of the REST API and of /metrics with 50 groups, what the service costs when idle, and slow clients.

The limits are those that the project sets itself; there is no peer. Rates are per core of the service's processor time, so that
the load generator on the same machine does not count.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import select
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benches.figures import Figure, less_is_better, more_is_better, percentile
from benches.ground import Failed, ggshell
from ggshell.clock import pause

GROUPS = 50
PASSWORD = "correct-horse-7"  # noqa: S105 - of a service that lives as long as the bench
_TICKS = os.sysconf("SC_CLK_TCK")
_LIMIT = "the limit"


class Place(NamedTuple):
    """A home with groups and a running service."""

    home: Path
    port: int
    pid: int

    def cpu(self) -> float:
        """Processor seconds of the service."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def megabytes(self) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def run(rounds: int, quick: bool) -> list[Figure]:
    requests = 200 if quick else 2000
    with _service() as place:
        lists = [_requests(place, "/services/v2/extracts", requests) for _ in range(rounds)]
        scrapes = [_requests(place, "/metrics", max(20, requests // 20)) for _ in range(rounds)]
        idle = [_idle_share(place, 3 if quick else 20) for _ in range(rounds)]
        slow = [_beside_slow_clients(place, 100 if quick else 1000, requests // 10) for _ in range(rounds)]
        refused = [_megabytes_before_refusal(place) for _ in range(rounds)]
        size = place.megabytes()
    return [
        less_is_better("service", "GET extracts, p99", "ms", [each.p99 for each in lists], [20.0], _LIMIT, 1.0),
        more_is_better("service", "GET extracts", "1/s", [each.rate for each in lists], [200.0], "the goal", 1.0),
        less_is_better("service", "/metrics, p99", "ms", [each.p99 for each in scrapes], [50.0], _LIMIT, 1.0),
        less_is_better("service", "idle", "% core", idle, [1.0], _LIMIT, 1.0),
        less_is_better("service", "memory", "MB", [size], [120.0], _LIMIT, 1.0),
        less_is_better("service", "with slow clients, p99", "ms", slow, [100.0], _LIMIT, 1.0),
        less_is_better("service", "1 GB body", "MB read", refused, [2.0], _LIMIT, 1.0),
    ]


class _Answers(NamedTuple):
    """The 99th percentile of the times in ms, and requests per second of the service's processor time."""

    p99: float
    rate: float


@contextmanager
def _service() -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="ggshell-bench-") as folder:
        home = Path(folder)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        (home / "dirprm").mkdir()
        (home / "dirprm" / "service.prm").write_text(f"PORT {port}\nPLAINTEXT\nMETRICS OPEN\n")
        groups = [f"ADD EXTRACT E{number:03}, EXTTRAILSOURCE ./dirdat/ea" for number in range(GROUPS)]
        _shell(home, f"ADD USER admin, ROLE SECURITY, PASSWORD {PASSWORD}", *groups, "START SERVICE")
        entry = json.loads((home / "dirpcs" / "SERVICE.pcs").read_text())
        try:
            yield Place(home, port, entry["pid"])
        finally:
            _shell(home, "STOP SERVICE")


def _shell(home: Path, *statements: str) -> None:
    words = [ggshell(), "--home", str(home), "-c", "\n".join(statements)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(done.stdout + done.stderr)


def _requests(place: Place, path: str, count: int) -> _Answers:
    """Send requests one after the other over one connection."""
    login = base64.b64encode(f"admin:{PASSWORD}".encode()).decode()
    client = http.client.HTTPConnection("127.0.0.1", place.port, timeout=60)
    times = []
    _get(client, path, login)
    before = place.cpu()
    for _ in range(count):
        began = time.perf_counter()
        _get(client, path, login)
        times.append(1000 * (time.perf_counter() - began))
    spent = max(place.cpu() - before, 1 / _TICKS)
    client.close()
    return _Answers(percentile(times, 0.99), count / spent)


def _get(client: http.client.HTTPConnection, path: str, login: str) -> None:
    client.request("GET", path, headers={"Authorization": f"Basic {login}"})
    answer = client.getresponse()
    answer.read()
    if answer.status != 200:
        raise Failed(f"GET {path}: {answer.status}")


def _idle_share(place: Place, seconds: float) -> float:
    """Percent of a core that the service uses without requests."""
    before, began = place.cpu(), time.monotonic()
    pause(seconds)
    return max(0.01, 100 * (place.cpu() - before) / (time.monotonic() - began))


def _beside_slow_clients(place: Place, clients: int, count: int) -> float:
    """The 99th percentile of requests while so many clients each send their header byte by byte."""
    slow = [socket.create_connection(("127.0.0.1", place.port)) for _ in range(clients)]
    try:
        for place_in_header in range(4):
            for connection in slow:
                connection.send(b"GET /services/v2/version HTTP/1.1\r\n"[place_in_header : place_in_header + 1])
        return _requests(place, "/services/v2/extracts", count).p99
    finally:
        for connection in slow:
            connection.close()


def _megabytes_before_refusal(place: Place) -> float:
    """How much of a body of 1 GB the service lets a client send before it answers or closes the connection."""
    login = base64.b64encode(f"admin:{PASSWORD}".encode()).decode()
    fields = f"Host: x\r\nAuthorization: Basic {login}\r\nTransfer-Encoding: chunked"
    head = f"POST /services/v2/extracts/X HTTP/1.1\r\n{fields}\r\n\r\n"
    block, sent = b"10000\r\n" + bytes(1 << 16) + b"\r\n", 0
    with socket.create_connection(("127.0.0.1", place.port), timeout=60) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)  # what the kernel holds is not read
        client.sendall(head.encode())
        while sent < 1 << 30:
            if select.select([client], [], [], 0)[0]:
                break
            try:
                client.sendall(block)
            except OSError:
                break
            sent += 1 << 16
    return sent / (1 << 20)
