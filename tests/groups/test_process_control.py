"""The control socket: requests, refusals, and clients that misbehave."""

from __future__ import annotations

import errno
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import until

from ggshell.clock import Clock, FakeClock, SystemClock
from ggshell.errors import ConflictError, GgsError, ProcessError
from ggshell.groups.control import CHECK_SECONDS, ControlServer
from ggshell.groups.obstacles import Obstacles
from ggshell.groups.process_request import request
from ggshell.groups.runner import Answering, Runner
from ggshell.links import Links


def handle(verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The answers of the process in these tests."""
    if verb == "ECHO":
        return arguments
    if verb == "LONG":
        return {"text": "x" * arguments["length"]}
    if verb == "REFUSE":
        raise ConflictError("it runs already", code="OGG-01454", where="EXT1", hint="stop it")
    raise RuntimeError(f"a bug in {verb}")


class ServerThread:
    """A control server in a thread, so that the test can be its client."""

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self.server = ControlServer(path, handle, clock=clock)
        self.runner = Runner(self.server, SystemClock())
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self) -> None:
        while not self.runner.stop_requested:
            self.runner.wait([], 0.05)

    def close(self) -> None:
        self.runner.stop()
        self.thread.join()
        self.server.close()
        self.runner.close()


@pytest.fixture
def server_thread(tmp_path: Path) -> Iterator[ServerThread]:
    server_thread = ServerThread(tmp_path / "EXT1.pce.sock")
    yield server_thread
    server_thread.close()


def ask(server_thread: ServerThread, verb: str, **arguments: Any) -> dict[str, Any]:
    return request(str(server_thread.server.path), verb, timeout=10, **arguments)


def test_only_the_owner_can_send_requests(server_thread: ServerThread) -> None:
    assert server_thread.server.path.stat().st_mode & 0o777 == 0o600


def test_a_request_is_answered(server_thread: ServerThread) -> None:
    assert ask(server_thread, "ECHO", reset=True, table="shop.itéms") == {"reset": True, "table": "shop.itéms"}


def test_an_error_reaches_the_client_unchanged(server_thread: ServerThread) -> None:
    with pytest.raises(ConflictError) as caught:
        ask(server_thread, "REFUSE")
    error = caught.value
    assert (error.code, error.message, error.where, error.hint) == ("OGG-01454", "it runs already", "EXT1", "stop it")


def test_an_unexpected_exception_in_a_handler_does_not_end_the_process(
    server_thread: ServerThread, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ProcessError, match="a bug in DANCE"):
        ask(server_thread, "DANCE")
    assert ask(server_thread, "ECHO", a=1) == {"a": 1}
    assert "RuntimeError: a bug in DANCE" in capfd.readouterr().err


@pytest.mark.parametrize(
    "line", [b"\n", b"{\n", b"[1]\n", b'{"args": {}}\n', b'{"verb": "ECHO", "args": 3}\n', b"\xff\n"]
)
def test_an_invalid_request_is_refused(server_thread: ServerThread, line: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(str(server_thread.server.path))
        client.sendall(line)
        answer = json.loads(client.makefile().readline())
    assert (answer["status"], answer["code"]) == ("error", "GGS-00601")


def test_requests_can_arrive_in_pieces_or_several_at_once(server_thread: ServerThread) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(str(server_thread.server.path))
        client.sendall(b'{"verb": "ECHO", ')
        assert ask(server_thread, "ECHO", other=1) == {"other": 1}
        client.sendall(b'"args": {"n": 1}}\n{"verb": "ECHO", "args": {"n": 2}}\n')
        lines = client.makefile()
        assert [json.loads(lines.readline())["result"]["n"] for _ in range(2)] == [1, 2]


@pytest.mark.parametrize(("busy", "waits"), [(None, 0.6), (0.0, 0.6), (0.4, 0.2), (0.6, 0.05), (90.0, 0.05)])
def test_a_busy_worker_gets_less_time_to_answer(server_thread: ServerThread, busy: float | None, waits: float) -> None:
    answering = Answering("EXTRACT EXT1", lambda: 100.0, Obstacles(Links(), SystemClock(), print))
    answering.runner = Runner(server_thread.server, SystemClock())
    answering.runner.busy_since = None if busy is None else 100.0 - busy
    assert answering.patience("STATUS") == pytest.approx(waits)


def test_a_connecting_process_gets_more_time_for_answers_that_only_it_has() -> None:
    answering = Answering("EXTRACT EXT1", lambda: 100.0, Obstacles(Links(), SystemClock(), print))
    assert answering.patience("GETLAG") == pytest.approx(3.0)
    answering.live["GETLAG"] = lambda _: {}
    assert answering.patience("GETLAG") == pytest.approx(0.6)


def test_a_client_that_does_not_read_blocks_no_other_client(server_thread: ServerThread) -> None:
    with socket.socket(socket.AF_UNIX) as lazy:
        lazy.settimeout(10)
        lazy.connect(str(server_thread.server.path))
        lazy.sendall(b'{"verb": "LONG", "args": {"length": 5000000}}\n' * 2)
        assert ask(server_thread, "ECHO", a=1) == {"a": 1}
        lines = lazy.makefile()
        assert [len(json.loads(lines.readline())["result"]["text"]) for _ in range(2)] == [5_000_000] * 2


def test_an_endless_request_is_disconnected(server_thread: ServerThread) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(str(server_thread.server.path))
        with pytest.raises(OSError):
            for _ in range(100):
                client.sendall(b"x" * 65536)
    assert ask(server_thread, "ECHO") == {}


def test_a_missing_socket_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ProcessError) as caught:
        request(str(tmp_path / "none.sock"), "STATUS")
    assert caught.value.code == "GGS-00602"


def test_a_process_that_does_not_answer_is_reported(tmp_path: Path) -> None:
    path = str(tmp_path / "silent.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        with pytest.raises(ProcessError, match=r"within 0\.05 seconds"):
            request(path, "STATUS", timeout=0.05)


def test_a_home_with_a_long_path_has_its_socket_in_it(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    server_thread = ServerThread(folder / "EXT1.pce.sock")
    try:
        assert [(path.name, path.stat().st_mode & 0o777) for path in folder.iterdir()] == [("EXT1.pce.sock", 0o600)]
        assert ask(server_thread, "ECHO", a=1) == {"a": 1}
    finally:
        server_thread.close()
    assert not list(folder.iterdir())


def test_a_file_that_is_not_a_socket_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "EXT1.pce.sock"
    path.write_text("kept")
    with pytest.raises(ProcessError, match="cannot listen"):
        ControlServer(path, handle)
    assert path.read_text() == "kept"


def test_a_socket_left_by_a_killed_process_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "EXT1.pce.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    server_thread = ServerThread(path)
    try:
        assert ask(server_thread, "ECHO") == {}
    finally:
        server_thread.close()


def test_a_path_where_no_socket_can_be_created_is_reported(tmp_path: Path) -> None:
    with pytest.raises(GgsError, match="cannot listen"):
        ControlServer(tmp_path / "nowhere" / "EXT1.pce.sock", handle)


class FullListener:
    """A listener of a process that has no free descriptor until it ``has_room``."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self.has_room = False
        self.asked = 0

    def fileno(self) -> int:
        return self._listener.fileno()

    def accept(self) -> tuple[socket.socket, Any]:
        self.asked += 1
        if not self.has_room:
            raise OSError(errno.EMFILE, "Too many open files")
        return self._listener.accept()

    def close(self) -> None:
        self._listener.close()


def test_a_client_that_cannot_be_accepted_waits_without_using_the_processor(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Regression: without a free descriptor the thread asked for the client again and again."""
    clock = FakeClock()
    thread = ServerThread(tmp_path / "EXT1.pce.sock", clock)
    server = thread.server
    with socket.socket(socket.AF_UNIX) as early, socket.socket(socket.AF_UNIX) as late:
        early.connect(str(server.path))
        exchange(early)
        full = server._listener = FullListener(server._listener)  # type: ignore[assignment]
        late.connect(str(server.path))
        for _ in range(5):  # each is at least one turn of the thread
            exchange(early)
        assert full.asked <= 1  # type: ignore[attr-defined]
        until("the system refuses the client", lambda: full.asked == 1)  # type: ignore[attr-defined]
        full.has_room = True  # type: ignore[attr-defined]
        clock.advance(CHECK_SECONDS)
        exchange(late)
        assert capfd.readouterr().err.count("no client can connect: Too many open files") == 1
    thread.close()


def exchange(client: socket.socket) -> None:
    """Send a request and wait for the answer."""
    client.settimeout(60)
    client.sendall(json.dumps({"verb": "ECHO", "arguments": {}}).encode() + b"\n")
    assert client.recv(1000).startswith(b"{")
