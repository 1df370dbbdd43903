"""The two demo servers, north and south: their folders, ports and roles. Tables and groups are created elsewhere.

Ports are chosen once and saved in ``<home>/demo/demo.json``. Sockets are in a short folder whose name is derived from
the home's path, because a socket path may have at most 107 bytes. Data folders are in the home, unless PostgreSQL's
user cannot reach it: under root, the servers run as an unprivileged user, which cannot enter a home below a closed
folder (``/root``).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ggshell.demo.postgres_server import PostgresServer, find_binaries
from ggshell.errors import ConflictError, StoreError
from ggshell.files import read_json, write_atomically

ADMIN = "ggadmin"
ADMIN_PASSWORD = "north-to-south"  # noqa: S105 - the password of a demo: the servers listen on this machine only
NAMES = ("north", "south")
_LOCAL_ACCESS = f"""# The replication role logs in with its password, everybody else on this machine without one.
local   all          {ADMIN}  scram-sha-256
local   replication  {ADMIN}  scram-sha-256
local   all          all      trust
local   replication  all      trust
"""


@dataclass(frozen=True, slots=True)
class DemoServers:
    """The two servers of a home; the database of each has the server's name."""

    home: Path
    sockets: Path
    north: PostgresServer
    south: PostgresServer

    def both(self) -> tuple[tuple[str, PostgresServer], ...]:
        return (("north", self.north), ("south", self.south))

    @property
    def data(self) -> Path:
        """The folder of both data folders: ``demo`` in the home, or the folder for sockets if the home is closed."""
        return self.north.data.parent

    def dsn(self, name: str) -> str:
        """The superuser's connection string for the database of a server (``north`` or ``south``)."""
        return dict(self.both())[name].dsn(name)

    def login(self, name: str) -> str:
        """The replication role's login in the form of the credential store: ``user@folder:port/database``."""
        server = dict(self.both())[name]
        return f"{ADMIN}@{server.sockets}:{server.port}/{name}"

    def running(self) -> dict[str, bool]:
        return {name: server.pid() is not None for name, server in self.both()}

    def start(self) -> None:
        """Start the servers that are not running. Raises DatabaseError with the server's message."""
        for _, server in self.both():
            fresh = not (server.data / "PG_VERSION").exists()
            server.initialize()
            if fresh:
                (server.data / "pg_hba.conf").write_text(_LOCAL_ACCESS)
            server.start()

    def stop(self, mode: str = "fast") -> None:
        """Stop the running servers and wait until they have ended."""
        for _, server in self.both():
            server.stop(mode)

    def remove(self) -> None:
        """Stop the servers immediately and delete all their files."""
        self.stop("immediate")
        for _, server in self.both():
            shutil.rmtree(server.data, ignore_errors=True)
        shutil.rmtree(self.sockets, ignore_errors=True)
        _note(self.home).unlink(missing_ok=True)


def exists(home: Path) -> bool:
    """Whether the home has demo servers, running or not."""
    return _note(home).exists()


def open_servers(home: Path) -> DemoServers:
    """Return the home's two servers with saved or newly chosen settings; starts nothing."""
    home = home.resolve()
    short = short_folder(home)
    if not exists(home):
        _choose(home, short)
    data, ports = _read_note(home)
    binaries = find_binaries()
    pair = {
        name: PostgresServer(data=data / f"data-{name}", sockets=short / name, port=ports[name], binaries=binaries)
        for name in NAMES
    }
    return DemoServers(home, short, **pair)


def _note(home: Path) -> Path:
    return home / "demo" / "demo.json"


def _choose(home: Path, short: Path) -> None:
    """Choose and save the folders and ports of the servers."""
    folder = home / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    data = folder if reachable(folder) else short
    note = {"data": str(data), **dict(zip(NAMES, free_ports(len(NAMES)), strict=True))}
    write_atomically(_note(home), json.dumps(note).encode())


def _read_note(home: Path) -> tuple[Path, dict[str, int]]:
    try:
        found = read_json(_note(home).read_text())
        return Path(found["data"]), {name: int(found[name]) for name in NAMES}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{_note(home)} cannot be read: {error}", hint="delete the folder demo and run 'ggshell demo up' again"
        ) from error


def short_folder(home: Path) -> Path:
    """Return a folder that belongs to this home alone. Raises ConflictError if another user owns it."""
    key = hashlib.sha256(os.fsencode(home)).hexdigest()[:10]
    folder = Path(tempfile.gettempdir()) / f"ggs-{os.geteuid()}-{key}"
    folder.mkdir(mode=0o755, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
        raise ConflictError(f"{folder} belongs to another user", hint="remove it, or choose another --home")
    folder.chmod(0o755)
    return folder


def reachable(folder: Path) -> bool:
    """Whether the servers' user can enter the folder and all its parents."""
    if os.geteuid() != 0:
        return True
    return all(place.stat().st_mode & 0o001 for place in (folder, *folder.parents))


def free_ports(count: int) -> list[int]:
    with ExitStack() as open_probes:
        probes = [open_probes.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
