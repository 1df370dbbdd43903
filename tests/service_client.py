"""A running service and a client of it, for tests."""

from __future__ import annotations

import json
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import requests
import uvicorn
from command_line import run_ggshell
from processes import until

from ggshell.clock import SystemClock
from ggshell.demo.processes import end_processes
from ggshell.files import write_atomically
from ggshell.home.home import Home
from ggshell.home.users import Role, Users
from ggshell.parameters.service_parameters import ServiceParameters
from ggshell.service.app import Application
from ggshell.service.process import configuration
from ggshell.service.state import ServiceState

PASSWORD = "correct-horse-7"


class Reply(NamedTuple):
    """An answer: its status, its headers, and its decoded body (None if it is not JSON)."""

    status: int
    headers: dict[str, str]
    body: Any
    text: str

    @property
    def response(self) -> Any:
        return self.body["response"]

    @property
    def codes(self) -> list[str]:
        return [each["code"] for each in self.body["messages"]]


class ServiceClient:
    """Sends requests as one user. A new connection and session for each client."""

    def __init__(self, url: str, user: str = "admin", password: str = PASSWORD, **options: Any) -> None:
        self.url = url
        self.session = requests.Session()
        if user:
            self.session.auth = (user, password)
        self.options = options

    def send(self, method: str, path: str, body: Any = None, **options: Any) -> Reply:
        """Send a request to an address below ``/services/v2``, or to the address itself if it begins with two slashes."""
        address = f"{self.url}{path[1:]}" if path.startswith("//") else f"{self.url}/services/v2{path}"
        data = body if body is None or isinstance(body, bytes | str) else json.dumps(body)
        given = {"timeout": 60, **self.options, **options}
        answer = self.session.request(method, address, data=data, **given)
        is_json = answer.headers.get("content-type", "").startswith("application/json") and bool(answer.content)
        return Reply(answer.status_code, dict(answer.headers), answer.json() if is_json else None, answer.text)

    def get(self, path: str, **options: Any) -> Reply:
        return self.send("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> Reply:
        return self.send("POST", path, body, **options)

    def patch(self, path: str, body: Any = None) -> Reply:
        return self.send("PATCH", path, body)

    def put(self, path: str, body: Any = None, **options: Any) -> Reply:
        return self.send("PUT", path, body, **options)

    def delete(self, path: str) -> Reply:
        return self.send("DELETE", path)


def initial_load(group: str) -> dict[str, Any]:
    """The body that creates an Extract of tables."""
    return {"source": "tables", "config": [f"EXTRACT {group.lower()}", "TABLE s.*;"]}


def free_port() -> int:
    """A port that nothing uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def add_users(root: Path) -> None:
    """Add a user of each role to a home, with the password ``PASSWORD``."""
    Home(root).ensure()
    for name, content in _stored_users().items():
        write_atomically(root / name, content, mode=0o600)


@cache
def _stored_users() -> dict[str, bytes]:
    """Return the files of a home that contain these users, by their places in the home.

    They are made once for each worker: hashing five passwords takes a third of a second by design.
    """
    with tempfile.TemporaryDirectory(prefix="ggs-users-") as folder:
        home = Home(Path(folder))
        home.ensure()
        before = {path for path in home.root.rglob("*") if path.is_file()}
        for name, role in (
            ("admin", Role.SECURITY),
            ("jane", Role.ADMINISTRATOR),
            ("otto", Role.OPERATOR),
            ("uma", Role.USER),
            ("dora", Role.DISTRIBUTION),
        ):
            Users(home).add(name, role, PASSWORD)
        made = {path for path in (home.root / "dirwlt").iterdir() if path.is_file()} - before
        return {path.relative_to(home.root).as_posix(): path.read_bytes() for path in made}


@contextmanager
def service_here(root: Path, deadline: float, silence: float = 15.0) -> Iterator[tuple[str, ServiceState]]:
    """A service in this process, its URL and its state. ``deadline``, ``silence``: seconds of a request and of a database."""
    add_users(root)
    port = free_port()
    state = ServiceState(Home(root), ServiceParameters(port=port, plaintext=True), SystemClock())
    state.silence_seconds = silence
    server = uvicorn.Server(configuration(Application(state, deadline=deadline), None))
    listener = socket.create_server(("127.0.0.1", port))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    until("the service to start", lambda: server.started)
    try:
        yield f"http://127.0.0.1:{port}", state
    finally:
        server.should_exit = True
        thread.join()
        state.close()


class RunningService:
    """A home with a user of each role and a running service without TLS, or with it if ``parameters`` do not say PLAINTEXT."""

    def __init__(self, home: Path, parameters: str = "PLAINTEXT\nMETRICS OPEN\n") -> None:
        self.home = home
        self.port = free_port()
        self.tls = "PLAINTEXT" not in parameters
        file = home / "dirprm" / "service.prm"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"PORT {self.port}\n{parameters}")
        add_users(home)
        self.run("START SERVICE")

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def run(self, statement: str, code: int = 0) -> str:
        """Run a statement in a shell on this home; returns its output."""
        done = run_ggshell("--home", self.home, "-c", statement)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def client(self, user: str = "admin", password: str = PASSWORD, **options: Any) -> ServiceClient:
        return ServiceClient(self.url, user, password, **options)

    def close(self) -> None:
        """Stop the processes. Fails if an answer was not as its route declares it, whoever received it."""
        run_ggshell("--home", self.home, "-c", "STOP SERVICE")
        end_processes(self.home)
        log = self.home / "ggserr.log"
        wrong = [line for line in log.read_text().splitlines() if "not as declared" in line] if log.exists() else []
        assert not wrong, wrong
