"""A target home on a machine of its own, as far as the network is concerned: a network namespace with a veth pair."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from service_client import RunningService
from two_homes import Line, TwoHomes


@cache
def why_not() -> str:
    """Why this machine cannot make namespaces; empty if it can."""
    if shutil.which("ip") is None:
        return "there is no command ip"
    name = f"ggst{os.getpid()}"
    done = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip()
    ip("netns", "del", name)
    return ""


def ip(*words: str) -> None:
    """Run ``ip`` with these words."""
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Cable:
    """A veth pair between this namespace and a new one; only this process's number is in the names and addresses."""

    def __init__(self) -> None:
        number = os.getpid() % 60_000
        self.name, self._near, self._far = f"ggs{number}", f"ggn{number}", f"ggf{number}"
        network = f"10.{200 + number // 16_384}.{number // 64 % 256}.{number % 64 * 4}"
        begin, _, last = network.rpartition(".")
        near, self.host = f"{begin}.{int(last) + 1}", f"{begin}.{int(last) + 2}"
        ip("netns", "add", self.name)
        ip("link", "add", self._near, "type", "veth", "peer", "name", self._far, "netns", self.name)
        ip("addr", "add", f"{near}/30", "dev", self._near)
        ip("-n", self.name, "addr", "add", f"{self.host}/30", "dev", self._far)
        ip("-n", self.name, "link", "set", "lo", "up")
        ip("-n", self.name, "link", "set", self._far, "up")
        self.up()

    def up(self) -> None:
        ip("link", "set", self._near, "up")

    def down(self) -> None:
        """Take the cable out: nothing passes, and neither side gets a reset."""
        ip("link", "set", self._near, "down")

    def mtu(self, size: int) -> None:
        ip("link", "set", self._near, "mtu", str(size))
        ip("-n", self.name, "link", "set", self._far, "mtu", str(size))

    def remove(self) -> None:
        ip("netns", "del", self.name)


class LoopbackCable:
    """The same on a machine without namespaces: a proxy that passes nothing on. Packets have the size that they have."""

    host = "127.0.0.1"

    def __init__(self, port: int) -> None:
        self.line = Line(port)
        self.up, self.down, self.remove = self.line.resume, self.line.stall, self.line.close

    def mtu(self, size: int) -> None:
        """Loopback has one size of packets."""


class _FarService(RunningService):
    """A service that START SERVICE starts in a namespace."""

    cable: Cable

    def run(self, statement: str, code: int = 0) -> str:
        words = ["ip", "netns", "exec", self.cable.name, sys.executable, "-m", "ggshell"]
        done = subprocess.run(
            [*words, "--home", str(self.home), "-c", statement], capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr


class DistantHomes(TwoHomes):
    """Two homes with a cable between them. Without namespaces, both are on a loopback address with a proxy in between."""

    cable: Cable | LoopbackCable

    def __init__(self, folder: Path) -> None:
        self._namespace = Cable() if not why_not() else None
        self.host = self._namespace.host if self._namespace is not None else LoopbackCable.host
        super().__init__(folder, f"ADDRESS {self.host}\n")
        self.cable = self._namespace or LoopbackCable(self.target.port)

    def service(self, home: Path, parameters: str) -> RunningService:
        if self._namespace is None:
            return super().service(home, parameters)
        return type("FarService", (_FarService,), {"cable": self._namespace})(home, parameters)  # type: ignore[no-any-return]

    def start_path(self, port: int = 0) -> None:
        if isinstance(self.cable, LoopbackCable):
            port = self.cable.line.port
            self.trust(port)
        super().start_path(port)

    def close(self) -> None:
        super().close()
        self.cable.remove()
