"""Two homes and a path between them, for tests: a source with a trail, a target with a service, and a proxy in between."""

from __future__ import annotations

import hashlib
import select
import socket
import threading
from contextlib import suppress
from pathlib import Path

from command_line import run_ggshell
from processes import until
from service_client import RunningService, free_port
from trail_kit import PRODUCER, read_all, small

from ggshell.clock import SystemClock
from ggshell.demo.processes import end_processes
from ggshell.home.certificate import read_certificate
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.peers import Peers
from ggshell.home.process_file import read_process_file
from ggshell.network.proof import home_key
from ggshell.trail.name import TrailName
from ggshell.trail.writer import TrailWriter


class CopiedTrail:
    """A trail that a path copies from one home to another: ``read`` at the source, ``written`` at the target."""

    read: TrailName
    written: TrailName
    _next = 1

    def write(self, transactions: int, rows: int = 2, max_bytes: int = 1 << 30, size: int = 9) -> None:
        """Append transactions to the source trail; ``size``: bytes of the text in each row."""
        writer = TrailWriter.open(self.read, clock=SystemClock(), producer=PRODUCER, max_bytes=max_bytes)
        for csn in range(self._next, self._next + transactions):
            writer.write(small(csn, rows, size))
        self._next += transactions
        writer.flush()
        writer.close()

    def rows(self) -> list[tuple[object, ...]]:
        """The rows that the target trail shows."""
        return read_all(self.written) if self.written.folder.is_dir() else []

    def until_equal(self, seconds: float = 60) -> None:
        """Wait until the target has every row of the source, in order and once."""
        wanted = read_all(self.read)
        until("the target has all rows", lambda: len(self.rows()) >= len(wanted), seconds)
        assert self.rows() == wanted


class TwoHomes(CopiedTrail):
    """A source home and a target home with a running service; each is the other's peer."""

    host = "127.0.0.1"
    """Where the target's service listens."""

    def service(self, home: Path, parameters: str) -> RunningService:
        """Start the target's service."""
        return RunningService(home, parameters)

    def __init__(self, folder: Path, parameters: str = "", *, manager_port: bool = False) -> None:
        """``parameters``: of the target's service. ``manager_port``: the target has a Manager with a port, where its service
        listens too."""
        self.source = folder / "source"
        self.manager_port = 0
        if manager_port:
            self.manager_port = free_port()
            Home(folder / "target").ensure()
            Home(folder / "target").parameters("mgr").write_text(f"PORT {self.manager_port}\n")
        self.target = self.service(folder / "target", parameters)
        Home(self.source).ensure()
        self.read, self.written = TrailName(self.source / "dirdat", "ea"), TrailName(self.target.home / "dirdat", "da")
        if self.target.tls:
            self.trust(self.target.port)
        Peers(Home(self.target.home)).add("source", "", fingerprint(self.source))

    def trust(self, port: int) -> None:
        """Make the target a peer of the source at this port."""
        Peers(Home(self.source)).add(f"target{port}", f"{self.host}:{port}", fingerprint(self.target.home))

    def url(self, port: int = 0, trail: str = "da") -> str:
        return f"wss://{self.host}:{port or self.target.port}/services/v2/targets?trail={trail}"

    def run(self, statement: str, code: int = 0) -> str:
        """Run a statement on the source home."""
        done = run_ggshell("--home", self.source, "--auto-manager", "-c", statement)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def start_path(self, port: int = 0) -> None:
        self.run(f"ADD DISTPATH dp1, SOURCE ./dirdat/ea, TARGET {self.url(port)}; START DISTPATH dp1")

    def report(self) -> str:
        return (self.source / "dirrpt" / "DP1.rpt").read_text()

    def close(self) -> None:
        end_processes(self.source)
        self.target.close()


def path_pid(homes: TwoHomes) -> int:
    found = read_process_file(Home(homes.source).process("DP1", GroupKind.PATH))
    assert found is not None
    return found.pid


def service_pid(homes: TwoHomes) -> int:
    found = read_process_file(Home(homes.target.home).service)
    assert found is not None
    return found.pid


def fingerprint(root: Path) -> str:
    """The fingerprint of a home's certificate, made if there is none."""
    return read_certificate(home_key(Home(root), SystemClock()).certificate).fingerprint


def digest(name: TrailName) -> list[str]:
    """The SHA-256 of each file of a trail."""
    return [hashlib.sha256(name.file(seqno).read_bytes()).hexdigest() for seqno in name.sequences()]


class Line:
    """A TCP proxy in front of a port: cuts, stalls and delays what it passes on. Each connection has its own thread."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cut_after: list[int] = []
        """For the next connections: after how many bytes from the sender each is cut."""
        self.passing = threading.Event()
        self.passing.set()
        self.delay = 0.0
        self.stall_after: int | None = None
        """Stall after this many bytes from the sender of one connection."""
        self.connections = 0
        self._open: list[socket.socket] = []
        self._closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Reset every connection."""
        for stream in self._open:
            with suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)

    def stall(self) -> None:
        """Pass nothing on, without closing anything: a half-open connection."""
        self.passing.clear()

    def resume(self) -> None:
        self.passing.set()

    def close(self) -> None:
        self._closed = True
        self._listener.close()
        self.resume()
        self.cut()

    def _accept(self) -> None:
        while not self._closed:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return  # the listener was closed
            try:
                far = socket.create_connection(("127.0.0.1", self._to))
                for stream in (near, far):  # small messages pass on at once
                    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError:
                near.close()
                continue
            self.connections += 1
            limit = self.cut_after.pop(0) if self.cut_after else None
            self._open += [near, far]
            threading.Thread(target=self._pass, args=(near, far, limit), daemon=True).start()

    def _pass(self, near: socket.socket, far: socket.socket, limit: int | None) -> None:
        passed, count, pause = 0, 0, threading.Event()
        with near, far, suppress(OSError):
            while True:
                ready, _, _ = select.select([near, far], [], [])
                for stream in ready:
                    data = stream.recv(1 << 16)
                    self.passing.wait()
                    if self.delay:
                        pause.wait(self.delay)
                    if not data:
                        return
                    count += len(data) if stream is near else 0
                    if self.stall_after is not None and count >= self.stall_after:
                        self.stall()
                    if stream is near and limit is not None:
                        data = data[: limit - passed]
                        passed += len(data)
                    (far if stream is near else near).sendall(data)
                    if limit is not None and passed >= limit:
                        return
