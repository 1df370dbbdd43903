"""Two homes for paths that the target starts: a source with a trail and a service, and a target that reads the trail."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from command_line import run_ggshell
from service_client import RunningService
from two_homes import CopiedTrail, fingerprint

from ggshell.demo.processes import end_processes
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.peers import Peers
from ggshell.home.process_file import read_process_file
from ggshell.trail.name import TrailName


class ReadingHomes(CopiedTrail):
    """A source home with a running service, and a target home whose path RP1 reads a trail there; each is the other's peer."""

    def __init__(self, folder: Path) -> None:
        self.source = RunningService(folder / "source", "")
        self.target = folder / "target"
        Home(self.target).ensure()
        self.read, self.written = TrailName(self.source.home / "dirdat", "ea"), TrailName(self.target / "dirdat", "eb")
        self.copy = TrailName(self.target / "dirtmp" / "RP1", "ea")
        self.trust(self.source.port)
        Peers(Home(self.source.home)).add("target", "", fingerprint(self.target))

    def trust(self, port: int) -> None:
        """Make the source a peer of the target at this port."""
        Peers(Home(self.target)).add(f"source{port}", f"127.0.0.1:{port}", fingerprint(self.source.home))

    def url(self, port: int = 0, trail: str = "ea") -> str:
        return f"wss://127.0.0.1:{port or self.source.port}/services/v2/sources?trail={trail}"

    def run(self, statement: str, code: int = 0) -> str:
        """Run a statement on the target home."""
        done = run_ggshell("--home", self.target, "--auto-manager", "-c", statement)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def add_path(self, port: int = 0, trail: str = "ea") -> None:
        target = "trail://localhost:9103/services/v2/targets?trail=eb"
        self.run(f"ADD RECVPATH rp1, SOURCE {self.url(port, trail)}, TARGET {target}")

    def start_path(self, port: int = 0) -> None:
        self.add_path(port)
        self.run("START RECVPATH rp1")

    def report(self) -> str:
        return (self.target / "dirrpt" / "RP1.rpt").read_text()

    def kill_path(self) -> None:
        found = read_process_file(Home(self.target).process("RP1", GroupKind.RECVPATH))
        assert found is not None
        os.kill(found.pid, signal.SIGKILL)

    def kill_service(self) -> None:
        found = read_process_file(Home(self.source.home).service)
        assert found is not None
        os.kill(found.pid, signal.SIGKILL)

    def close(self) -> None:
        end_processes(self.target)
        self.source.close()
