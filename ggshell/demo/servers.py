"""The two demo servers, north and south: where they live, their ports, their roles.  No rows here, and no groups.

Ports are chosen once and remembered in ``<home>/demo/demo.json``.  Sockets live in a short folder named after the home's
path (a socket's path may have 107 bytes).  Data folders live in the home, unless PostgreSQL's user could not reach them
there: root's servers run as an unprivileged user, and a home below a closed folder (``/root``) is out of that user's reach.
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

from ggshell.databases.postgres.server import PostgresServer, find_binaries
from ggshell.errors import ConflictError, StoreError
from ggshell.files import write_atomically

ADMIN = "ggadmin"
ADMIN_PASSWORD = "north-to-south"  # noqa: S105 - a demo's password: the servers listen on this machine only
NAMES = ("north", "south")
_LOCAL_ACCESS = f"""# The replication role logs in with its password, everybody else on this machine without one.
local   all          {ADMIN}  scram-sha-256
local   replication  {ADMIN}  scram-sha-256
local   all          all      trust
local   replication  all      trust
"""


@dataclass(frozen=True, slots=True)
class DemoServers:
    """The pair of servers of one home, each with a database of its own name."""

    home: Path
    sockets: Path
    north: PostgresServer
    south: PostgresServer

    def both(self) -> tuple[tuple[str, PostgresServer], ...]:
        return (("north", self.north), ("south", self.south))

    def dsn(self, name: str) -> str:
        """The superuser's connection string to the database of a server (``north`` or ``south``)."""
        return dict(self.both())[name].dsn(name)

    def login(self, name: str) -> str:
        """The replication role's login as a credential store takes it: ``user@folder:port/database``."""
        server = dict(self.both())[name]
        return f"{ADMIN}@{server.sockets}:{server.port}/{name}"

    def running(self) -> dict[str, bool]:
        return {name: server.pid() is not None for name, server in self.both()}

    def start(self) -> None:
        """Start what does not run yet.  Raises DatabaseError with the server's own words."""
        for _, server in self.both():
            fresh = not (server.data / "PG_VERSION").exists()
            server.initialise()
            if fresh:
                (server.data / "pg_hba.conf").write_text(_LOCAL_ACCESS)
            server.start()

    def stop(self, mode: str = "fast") -> None:
        """Stop what runs and wait for its end."""
        for _, server in self.both():
            server.stop(mode)

    def remove(self) -> None:
        """Stop the servers at once and delete every byte of them."""
        self.stop("immediate")
        for _, server in self.both():
            shutil.rmtree(server.data, ignore_errors=True)
        shutil.rmtree(self.sockets, ignore_errors=True)
        _note(self.home).unlink(missing_ok=True)


def exists(home: Path) -> bool:
    """Whether this home has demo servers (running or not)."""
    return _note(home).exists()


def open_servers(home: Path) -> DemoServers:
    """The home's two servers, as remembered or newly chosen; nothing is started."""
    home = home.resolve()
    short = _short_folder(home)
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
    """Decide once where the servers live and where they listen."""
    folder = home / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    data = folder if _reachable(folder) else short
    note = {"data": str(data), **dict(zip(NAMES, _free_ports(len(NAMES)), strict=True))}
    write_atomically(_note(home), json.dumps(note).encode())


def _read_note(home: Path) -> tuple[Path, dict[str, int]]:
    try:
        found = json.loads(_note(home).read_text())
        return Path(found["data"]), {name: int(found[name]) for name in NAMES}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{_note(home)} cannot be read: {error}", hint="delete the folder demo and run 'ggshell demo up' again"
        ) from error


def _short_folder(home: Path) -> Path:
    """A folder for this home alone, named so that no other home meets it; owned by the present user or refused."""
    key = hashlib.sha256(os.fsencode(home)).hexdigest()[:10]
    folder = Path(tempfile.gettempdir()) / f"ggs-{os.geteuid()}-{key}"
    folder.mkdir(mode=0o755, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
        raise ConflictError(f"{folder} belongs to another user", hint="remove it, or choose another --home")
    folder.chmod(0o755)
    return folder


def _reachable(folder: Path) -> bool:
    """Whether the servers' user can enter every folder on the way."""
    if os.geteuid() != 0:
        return True
    return all(place.stat().st_mode & 0o001 for place in (folder, *folder.parents))


def _free_ports(count: int) -> list[int]:
    with ExitStack() as open_probes:
        probes = [open_probes.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
