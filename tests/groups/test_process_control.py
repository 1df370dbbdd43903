"""The control socket: requests, refusals, and clients that misbehave."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ggshell.clock import SystemClock
from ggshell.errors import ConflictError, GgsError, ProcessError
from ggshell.groups.control import ControlServer, request
from ggshell.groups.obstacles import Obstacles
from ggshell.groups.runner import Answering, Runner
from ggshell.links import Links


def handle(verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What the process of these tests answers."""
    if verb == "ECHO":
        return arguments
    if verb == "LONG":
        return {"text": "x" * arguments["length"]}
    if verb == "REFUSE":
        raise ConflictError("it runs already", code="OGG-01454", where="EXT1", hint="stop it")
    raise RuntimeError(f"a bug in {verb}")


class Serving:
    """A server that answers in a thread, so that the test can be its client."""

    def __init__(self, path: Path) -> None:
        self.server = ControlServer(path, handle)
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
def serving(tmp_path: Path) -> Iterator[Serving]:
    serving = Serving(tmp_path / "EXT1.pce.sock")
    yield serving
    serving.close()


def ask(serving: Serving, verb: str, **arguments: Any) -> dict[str, Any]:
    return request(str(serving.server.path), verb, timeout=10, **arguments)


def test_only_the_owner_may_ask(serving: Serving) -> None:
    assert serving.server.path.stat().st_mode & 0o777 == 0o600


def test_a_request_is_answered(serving: Serving) -> None:
    assert ask(serving, "ECHO", reset=True, table="shop.itéms") == {"reset": True, "table": "shop.itéms"}


def test_a_refusal_comes_as_the_error_that_it_was(serving: Serving) -> None:
    with pytest.raises(ConflictError) as caught:
        ask(serving, "REFUSE")
    error = caught.value
    assert (error.code, error.message, error.where, error.hint) == ("OGG-01454", "it runs already", "EXT1", "stop it")


def test_a_bug_in_an_answer_does_not_end_the_process(serving: Serving, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ProcessError, match="a bug in DANCE"):
        ask(serving, "DANCE")
    assert ask(serving, "ECHO", a=1) == {"a": 1}
    assert "RuntimeError: a bug in DANCE" in capfd.readouterr().err


@pytest.mark.parametrize(
    "line", [b"\n", b"{\n", b"[1]\n", b'{"args": {}}\n', b'{"verb": "ECHO", "args": 3}\n', b"\xff\n"]
)
def test_what_is_no_request_is_refused(serving: Serving, line: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(str(serving.server.path))
        client.sendall(line)
        answer = json.loads(client.makefile().readline())
    assert (answer["status"], answer["code"]) == ("error", "GGS-00601")


def test_requests_may_come_in_pieces_and_several_at_once(serving: Serving) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(str(serving.server.path))
        client.sendall(b'{"verb": "ECHO", ')
        assert ask(serving, "ECHO", other=1) == {"other": 1}
        client.sendall(b'"args": {"n": 1}}\n{"verb": "ECHO", "args": {"n": 2}}\n')
        lines = client.makefile()
        assert [json.loads(lines.readline())["result"]["n"] for _ in range(2)] == [1, 2]


@pytest.mark.parametrize(("busy", "waits"), [(None, 0.6), (0.0, 0.6), (0.4, 0.2), (0.6, 0.05), (90.0, 0.05)])
def test_a_worker_that_is_stuck_already_is_not_waited_for_again(
    serving: Serving, busy: float | None, waits: float
) -> None:
    answering = Answering("EXTRACT EXT1", lambda: 100.0, Obstacles(Links(), SystemClock(), print))
    answering.runner = Runner(serving.server, SystemClock())
    answering.runner.busy_since = None if busy is None else 100.0 - busy
    assert answering.patience("STATUS") == pytest.approx(waits)


def test_a_process_that_is_still_connecting_gets_time_for_what_only_it_can_answer() -> None:
    answering = Answering("EXTRACT EXT1", lambda: 100.0, Obstacles(Links(), SystemClock(), print))
    assert answering.patience("GETLAG") == pytest.approx(3.0)
    answering.live["GETLAG"] = lambda _: {}
    assert answering.patience("GETLAG") == pytest.approx(0.6)


def test_a_client_that_does_not_read_holds_nobody_up(serving: Serving) -> None:
    with socket.socket(socket.AF_UNIX) as lazy:
        lazy.settimeout(10)
        lazy.connect(str(serving.server.path))
        lazy.sendall(b'{"verb": "LONG", "args": {"length": 5000000}}\n' * 2)
        assert ask(serving, "ECHO", a=1) == {"a": 1}
        lines = lazy.makefile()
        assert [len(json.loads(lines.readline())["result"]["text"]) for _ in range(2)] == [5_000_000] * 2


def test_a_request_without_end_is_cut_off(serving: Serving) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(str(serving.server.path))
        with pytest.raises(OSError):
            for _ in range(100):
                client.sendall(b"x" * 65536)
    assert ask(serving, "ECHO") == {}


def test_nobody_there_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(ProcessError) as caught:
        request(str(tmp_path / "none.sock"), "STATUS")
    assert caught.value.code == "GGS-00602"


def test_a_silent_process_is_an_error_of_ours(tmp_path: Path) -> None:
    path = str(tmp_path / "silent.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        with pytest.raises(ProcessError, match=r"within 0\.05 seconds"):
            request(path, "STATUS", timeout=0.05)


def test_a_home_with_a_long_path_has_its_socket_in_it_all_the_same(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    serving = Serving(folder / "EXT1.pce.sock")
    try:
        assert [(path.name, path.stat().st_mode & 0o777) for path in folder.iterdir()] == [("EXT1.pce.sock", 0o600)]
        assert ask(serving, "ECHO", a=1) == {"a": 1}
    finally:
        serving.close()
    assert not list(folder.iterdir())


def test_what_is_not_a_socket_is_not_removed_for_one(tmp_path: Path) -> None:
    path = tmp_path / "EXT1.pce.sock"
    path.write_text("kept")
    with pytest.raises(ProcessError, match="cannot listen"):
        ControlServer(path, handle)
    assert path.read_text() == "kept"


def test_a_socket_left_by_a_killed_process_is_no_hindrance(tmp_path: Path) -> None:
    path = tmp_path / "EXT1.pce.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    serving = Serving(path)
    try:
        assert ask(serving, "ECHO") == {}
    finally:
        serving.close()


def test_where_no_socket_can_be_is_said(tmp_path: Path) -> None:
    with pytest.raises(GgsError, match="cannot listen"):
        ControlServer(tmp_path / "nowhere" / "EXT1.pce.sock", handle)
