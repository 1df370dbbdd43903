"""A private MariaDB server on a data folder, for the tests and CI, without installation as a service.

The programs are taken from the first of: ``GGSHELL_MARIADB_BIN`` (a folder with mariadbd), the PATH, ``/usr/sbin``. The
server does not run as root: root starts it as the unprivileged user ``nobody`` on a data folder that this user owns. No
option file of the machine is read.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ggshell.demo.server_user import NOBODY, give_to_server
from ggshell.errors import DatabaseError, NotFoundError

BINARIES_VARIABLE = "GGSHELL_MARIADB_BIN"
SUPERUSER = "root"
USUAL_PLACE = Path("/usr/sbin/mariadbd")
START_SECONDS, STOP_SECONDS, PAUSE_SECONDS = 60.0, 60.0, 0.02

REPLICATION_SETTINGS: Mapping[str, str] = {
    "log-bin": "binlog",
    "server-id": "1",
    "binlog-format": "ROW",
    "binlog-row-image": "FULL",
    "binlog-row-metadata": "FULL",
    "gtid-strict-mode": "1",
    "character-set-server": "utf8mb4",
    "max-connections": "200",
    "innodb-buffer-pool-size": "64M",
    "innodb-log-file-size": "64M",
    "skip-name-resolve": "1",
    "performance-schema": "0",
}
"""What capture requires of a server, and settings for a small one."""


@dataclass(frozen=True, slots=True)
class MariadbServer:
    """The location of a server: its data folder, the folder of its socket, its port and its programs.

    Keep the socket folder's path short: the path of a socket is limited to 107 bytes.
    """

    data: Path
    sockets: Path
    port: int
    binaries: Path
    program: ClassVar[str] = "mariadbd"

    @property
    def socket(self) -> Path:
        return self.sockets / "mariadb.sock"

    def login(self, database: str = "", user: str = SUPERUSER, password: str = "") -> str:
        """A login over the loopback port, as DBLOGIN SOURCEDB takes it."""
        secret = f":{password}" if password else ""
        return f"mysql://{user}{secret}@127.0.0.1:{self.port}/{database}"

    def initialize(self) -> None:
        """Create the data folder unless it exists. The user ``root`` has no password; other machines cannot connect."""
        if (self.data / "mysql").exists():
            return
        for folder in (self.data, self.sockets):
            folder.mkdir(parents=True, exist_ok=True)
            give_to_server(folder)
        options = ["--no-defaults", f"--datadir={self.data}", "--auth-root-authentication-method=normal"]
        options += ["--skip-test-db", "--skip-name-resolve", "--innodb-log-file-size=64M"]
        program = find_program("mariadb-install-db", self.binaries)
        with tempfile.TemporaryFile() as output:
            result = subprocess.run(
                [str(program), *options],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                check=False,
                **server_user(),
            )
            output.seek(0)
            text = output.read().decode(errors="replace").strip()
        if result.returncode:
            raise DatabaseError(f"mariadb-install-db failed: {text}", where=str(self.data))

    def start(self, settings: Mapping[str, str] = REPLICATION_SETTINGS) -> None:
        """Start the server and wait until it accepts connections. Does nothing if the server is already running."""
        if self.pid() is not None:
            return
        given = {
            "datadir": str(self.data),
            "socket": str(self.socket),
            "port": str(self.port),
            "bind-address": "127.0.0.1",
            "pid-file": str(self.data / "mariadb.pid"),
            "log-error": str(self.data / "server.log"),
            "tmpdir": str(self.data),
            **settings,
        }
        command = [str(self.binaries / self.program), "--no-defaults", *(f"--{name}={given[name]}" for name in given)]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            **server_user(),
        )
        threading.Thread(target=process.wait, daemon=True).start()  # no zombie remains after the server has ended
        self._await(process)

    def _await(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until the server listens. Raises DatabaseError if it ends before."""
        pause = threading.Event()
        for _ in range(int(START_SECONDS / PAUSE_SECONDS)):
            if process.poll() is not None:
                break
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                if self.pid() is not None:
                    return
            pause.wait(PAUSE_SECONDS)
        log = self.data / "server.log"
        text = log.read_text(errors="replace")[-2000:] if log.exists() else ""
        raise DatabaseError(f"{self.program} did not start: {text}", where=str(self.data))

    def stop(self) -> None:
        """Stop the server and wait until it has ended."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the server as a crash does, and wait until it has ended."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        pid = self.pid()
        if pid is None:
            return
        pause = threading.Event()
        os.kill(pid, number)
        for _ in range(int(STOP_SECONDS / PAUSE_SECONDS)):
            if not self._lives(pid):
                return
            pause.wait(PAUSE_SECONDS)
        raise DatabaseError(f"{self.program}, process {pid}, did not end within {STOP_SECONDS:.0f} seconds")

    def pid(self) -> int | None:
        """The process id of the running server, or None."""
        try:
            pid = int((self.data / "mariadb.pid").read_text())
        except (OSError, ValueError):
            return None
        return pid if self._lives(pid) else None

    def _lives(self, pid: int) -> bool:
        """Whether a process is a server that runs; a process that has ended and was not awaited does not."""
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return False
        return self.program.encode() in command


def server_user() -> dict[str, Any]:
    """The arguments of ``subprocess`` that start a program as an unprivileged user, if this process is root."""
    environment = {"PATH": "/usr/bin:/bin:/usr/sbin", "LC_ALL": "C", "TZ": "UTC", "HOME": "/nonexistent"}
    if os.geteuid() != 0:
        return {"env": environment}
    return {"env": environment, "user": NOBODY, "group": NOBODY, "extra_groups": []}


def find_binaries() -> Path:
    """The folder that holds ``mariadbd``. Raises NotFoundError with the ways to get one."""
    named = os.environ.get(BINARIES_VARIABLE)
    if named:
        return Path(named)
    found = shutil.which("mariadbd")
    if found:
        return Path(found).parent
    if USUAL_PLACE.exists():
        return USUAL_PLACE.parent
    raise NotFoundError(
        "no MariaDB server found",
        hint=f"install Debian's package mariadb-server, or set {BINARIES_VARIABLE} to the folder of mariadbd",
    )


def find_program(name: str, binaries: Path) -> Path:
    """A program of the same installation, such as ``mariadb-binlog``. Raises NotFoundError."""
    beside = (binaries / name, binaries.parent / "bin" / name, binaries.parent.parent / "bin" / name)
    found = next((path for path in beside if path.exists()), None) or shutil.which(name)
    if found is None:
        raise NotFoundError(f"{name} does not exist next to {binaries / 'mariadbd'}")
    return Path(found)
