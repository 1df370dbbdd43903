"""Two homes for the bench ``path``: a source with a trail, and a target with a running service."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benches.ground import Failed, ggshell, wait_until
from ggshell.cli.received_paths import received_paths
from ggshell.clock import SystemClock
from ggshell.demo.processes import end_processes
from ggshell.home.certificate import CERTIFICATE, KEY, read_certificate
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.peers import Peers
from ggshell.network.proof import home_key
from ggshell.trail.durable import MarkReader
from ggshell.trail.name import TrailName
from ggshell.types import TrailPosition


class TwoHomes(NamedTuple):
    """``port``: of the target's service."""

    source: Path
    target: Path
    port: int

    @property
    def certificate(self) -> list[str]:
        """The certificate and the key of the target's service."""
        return [str(self.target / CERTIFICATE), str(self.target / KEY)]

    def trail(self, prefix: str) -> TrailName:
        return TrailName(self.source / "dirdat", prefix)

    def written(self, prefix: str) -> TrailName:
        return TrailName(self.target / "dirdat", prefix)

    def add_path(self, path: str, source: str, target: str, *options: str, port: int = 0) -> None:
        """Add a path between two trails, with a statement ``ALTER DISTPATH`` for each option."""
        if port:
            self.trust(port)
        url = f"wss://127.0.0.1:{port or self.port}/services/v2/targets?trail={target}"
        altered = [f"ALTER DISTPATH {path} {each}" for each in options]
        shell(self.source, f"ADD DISTPATH {path}, SOURCE ./dirdat/{source}, TARGET {url}", *altered)

    def trust(self, port: int) -> None:
        """Make the target a peer of the source at this port."""
        Peers(Home(self.source)).add(f"target{port}", f"127.0.0.1:{port}", _fingerprint(self.target))

    def copied_in(self, path: str, source: str, target: str) -> float:
        """Start a path and return the seconds from its connection to the last durable byte of a copy of the whole trail."""
        end = durable_end(self.trail(source))
        if end is None:
            raise Failed(f"the source trail {source} is empty")
        shell(self.source, f"START DISTPATH {path}")
        name = self.written(target)
        wait_until(f"{path} has copied {source}", lambda: durable_end(name) == end, every=0.02)
        began = next(each.since for each in received_paths(Home(self.target)) if each.place == name)
        files = [name.file(seqno) for seqno in name.sequences()]
        ended = max(each.stat().st_mtime for each in (*files, name.folder / f".{target}.durable"))
        return ended - began / 1e6

    def stop(self, path: str, target: str) -> None:
        """Stop and delete a path, and remove what it wrote."""
        shell(self.source, f"STOP DISTPATH {path}", f"DELETE DISTPATH {path}")
        for file in self.written(target).folder.glob(f"{target}?????????"):
            file.unlink()

    def path_process(self, path: str) -> int:
        return _process(Home(self.source).process(path.upper(), GroupKind.PATH))

    def service_process(self) -> int:
        return _process(Home(self.target).service)

    def restart_service(self) -> None:
        shell(self.target, "STOP SERVICE", "START SERVICE")


def _process(file: Path) -> int:
    return int(json.loads(file.read_text())["pid"])


def size_of(name: TrailName) -> int:
    """The bytes of all files of a trail."""
    return sum(name.file(seqno).stat().st_size for seqno in name.sequences())


def durable_end(name: TrailName) -> TrailPosition | None:
    """The end of what a trail's readers see."""
    if not name.folder.is_dir():
        return None
    reader = MarkReader(name)
    try:
        mark = reader.read()
        return None if mark is None else mark.position
    finally:
        reader.close()


def shell(home: Path, *statements: str) -> str:
    """Run statements in a home; the output. Raises Failed."""
    words = [ggshell(), "--home", str(home), "--auto-manager", "-c", "\n".join(statements)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        raise Failed(done.stdout + done.stderr)
    return done.stdout


@contextmanager
def two_homes(source: Path | None = None) -> Iterator[TwoHomes]:
    """A target home with a service, and a source home that trusts it (``source``: one that already exists)."""
    folder = Path(tempfile.mkdtemp(prefix="ggshell-bench-"))
    origin, target = source or folder / "source", folder / "target"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    for home in (origin, target):
        Home(home).ensure()
    (target / "dirprm").mkdir(exist_ok=True)
    (target / "dirprm" / "service.prm").write_text(f"PORT {port}\n")
    try:
        shell(target, "START SERVICE")
        homes = TwoHomes(origin, target, port)
        homes.trust(port)
        Peers(Home(target)).add("source", "", _fingerprint(origin))
        yield homes
    finally:
        for home in (origin, target):
            end_processes(home)
        shutil.rmtree(folder, ignore_errors=True)


def _fingerprint(home: Path) -> str:
    return read_certificate(home_key(Home(home), SystemClock()).certificate).fingerprint


@contextmanager
def delayed_line(port: int, milliseconds: int, window: int) -> Iterator[int]:
    """A proxy with a delay in front of a port; its own port."""
    program = str(Path(__file__).with_name("delayed_line.py"))
    words = [sys.executable, program, str(port), str(milliseconds), str(window)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield int(_line(process))
        finally:
            process.terminate()


def plain_copy(homes: TwoHomes, source: str, *, secure: bool, milliseconds: int = 0, window: int = 0) -> float:
    """Copy the files of a trail through a plain socket, with TLS or through a line with a delay; the seconds it takes."""
    program = [sys.executable, str(Path(__file__).with_name("plain_copy.py"))]
    name, folder = homes.trail(source), homes.target / "plain"
    folder.mkdir(exist_ok=True)
    files = [str(name.file(seqno)) for seqno in name.sequences()]
    words = [*program, "receive", str(folder), *(homes.certificate if secure else [])]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as receiver:
        port = int(_line(receiver))
        if milliseconds:
            with delayed_line(port, milliseconds, window) as near:
                subprocess.run([*program, "send", str(near), "plain", *files], check=True)
        else:
            subprocess.run([*program, "send", str(port), "tls" if secure else "plain", *files], check=True)
        taken = float(_line(receiver))
    shutil.rmtree(folder)
    return taken


def _line(process: subprocess.Popen[str]) -> str:
    line = process.stdout.readline() if process.stdout is not None else ""
    if not line:
        raise Failed(f"{process.args!r} has ended")
    return line
