"""Carries out requests in processes that kill themselves: at the n-th sync of a file, begin or end of a statement.

It reads a line for each request from standard input, as JSON: the home, the method, the path, the body, and n. Each request
has a process of its own, forked from this one. The answer is a line with its exit code, negative for a signal.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from ggshell.cli.execute import parse
from ggshell.clock import SystemClock
from ggshell.home.home import Home
from ggshell.home.users import Role
from ggshell.parameters.service_parameters import ServiceParameters
from ggshell.service import routes
from ggshell.service.answers import Answer, RawAnswer
from ggshell.service.app import Application, decode_body
from ggshell.service.call import Call, Request
from ggshell.service.sign_in import Principal
from ggshell.service.state import ServiceState


def carry_out(state: ServiceState, method: str, path: str, body: Any) -> Answer | RawAnswer:
    """Carry out a request as a worker of the service does. Raises GgsError."""
    route, values = routes.find(method, path)
    decoded = decode_body(route, json.dumps(body).encode()) if body is not None else None
    request = Request(method, f"http://h/services/v2{path}", "http://h/services/v2", {}, {}, decoded, False, "h")
    return Application(state)._handled(route, Call(state, request, Principal("admin", Role.SECURITY)), values)


def service_state(home: Path) -> ServiceState:
    return ServiceState(Home(home), ServiceParameters(), SystemClock())


class InterruptedRequests:
    """The process that carries out requests."""

    def __enter__(self) -> InterruptedRequests:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def send(self, home: Path, method: str, path: str, body: Any, number: int) -> int:
        """Carry out a request that is killed at a point; return the exit code, 0 if it had fewer points."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(home), method, path, body, number]) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


def _kill_at(number: int) -> Callable[[], None]:
    left = [number]

    def point() -> None:
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1

    return point


def _carry_out_and_die(home: str, method: str, path: str, body: Any, number: int) -> None:
    point, fsync, run = _kill_at(number), os.fsync, Call.run

    def synced(descriptor: int) -> None:
        point()
        fsync(descriptor)

    def carried_out(call: Call, statement: str, **options: Any) -> Any:
        point()
        outcome = run(call, statement, **options)
        point()
        return outcome

    os.fsync, Call.run = synced, carried_out  # type: ignore[assignment,method-assign]
    carry_out(service_state(Path(home)), method, path, body)


def load_libraries() -> None:
    """Load what every request needs, so that the forked processes do not do it again."""
    import duckdb
    import psycopg

    assert duckdb.__version__, psycopg.__version__
    parse("ADD EXTRACT ext1, TRANLOG, BEGIN NOW")
    routes.find("POST", "/extracts/EXT1")


def main() -> None:
    load_libraries()
    for line in sys.stdin:
        process = os.fork()
        if not process:
            try:
                _carry_out_and_die(*json.loads(line))
            except BaseException as error:  # noqa: BLE001 - the exit code tells it, not a second answer
                sys.stderr.write(f"{error!r}\n")
                os._exit(1)
            os._exit(0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
